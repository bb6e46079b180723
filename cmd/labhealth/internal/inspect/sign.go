package inspect

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Signed returns the header and the body that a replay of a delivery would have now: the same ID, a
// new timestamp and a new signature. It stores and sends nothing.
func (i *Inspector) Signed(ctx context.Context, number int64) (http.Header, []byte, error) {
	d, ok, err := i.Get(ctx, number)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, nil, fmt.Errorf("inspect: there is no delivery %d: it may be older than the retention", number)
	case d.Body == nil && d.Size > 0:
		return nil, nil, fmt.Errorf("inspect: the body of delivery %d was too large to be kept", number)
	}
	a := arrival{header: d.Header, body: d.Body, at: i.config.Now(), start: time.Now()}
	if err := i.sign(&a, d.ID); err != nil {
		return nil, nil, err
	}
	return a.header, a.body, nil
}
