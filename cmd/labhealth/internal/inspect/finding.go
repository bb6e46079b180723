package inspect

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// slow is the time after which a response is close to the limit of the sender, 15 s.
const slow = 10 * time.Second

// Finding says what the result of forwarding shows for certain: a mistake of the application or of
// its address. It is empty if there is nothing to say.
func (d *Delivery) Finding() string {
	f := d.Forward
	switch {
	case f == nil:
		return ""
	case f.StatusCode == 0:
		return f.Err
	case f.StatusCode >= 300 && f.StatusCode < 400:
		return f.redirect()
	case f.StatusCode == 401 || f.StatusCode == 403:
		if d.Verdict == Verified {
			return fmt.Sprintf("the signature is valid, and the application responded %d: it has another secret, does not decode it (the key is what follows whsec_, decoded from base64), verifies a body that it has parsed and encoded again, or asks for other credentials", f.StatusCode)
		}
		return fmt.Sprintf("the application responded %d: this delivery is not signed", f.StatusCode)
	case f.StatusCode == 404 || f.StatusCode == 405:
		return fmt.Sprintf("the application responded %d: is the path of the URL right, and does it accept POST?", f.StatusCode)
	case f.StatusCode == 413:
		return fmt.Sprintf("the application does not accept bodies of %d bytes (413)", d.Size)
	case f.StatusCode < 200 || f.StatusCode > 299:
		return fmt.Sprintf("the application responded %d: the sender repeats the delivery", f.StatusCode)
	case f.Took > slow:
		return fmt.Sprintf("the response took %.1f s: after 15 s the sender gives up and repeats the delivery. Store it first, and process it afterwards", f.Took.Seconds())
	}
	return ""
}

// redirect describes where a redirect points to. The sender does not follow it.
func (f *Forward) redirect() string {
	text := fmt.Sprintf("the application responded %d, a redirect, which the sender does not follow", f.StatusCode)
	from, err := url.Parse(f.URL)
	to, err2 := url.Parse(f.Location)
	switch {
	case err != nil || err2 != nil || f.Location == "":
		return text
	case from.Scheme == "http" && to.Scheme == "https" && from.Hostname() == to.Hostname():
		return text + ": it wants https"
	case from.Host == to.Host && from.Path+"/" == to.Path:
		return text + ": it wants a slash at the end of the path"
	case from.Host == to.Host && from.Path == to.Path+"/":
		return text + ": it wants no slash at the end of the path"
	}
	return text + ": it points to " + f.Location
}

// findingSample is the number of latest deliveries that Finding looks at.
const findingSample = 20

// Finding says what the latest deliveries have in common, if that shows a mistake: none has a valid
// signature, or the application fails with each. It is empty if there is nothing to say.
func (i *Inspector) Finding(ctx context.Context) (string, error) {
	list, err := i.List(ctx, Filter{}, findingSample)
	if err != nil {
		return "", err
	}
	rejected, forwarded, results := 0, 0, map[string]int{}
	for n := range list {
		d := &list[n]
		switch {
		case d.Verdict == Rejected:
			if strings.HasPrefix(d.Reason, "no signature matches") {
				rejected++
			}
		case d.Forward != nil && d.ReplayOf == 0:
			forwarded++
			results[d.Finding()]++
		}
	}
	if rejected >= 3 && rejected == len(list) {
		return fmt.Sprintf("none of the latest %d deliveries has a valid signature: the secret is not that of this endpoint, or a proxy changes the body", rejected), nil
	}
	for text, n := range results {
		if text != "" && n >= 3 && n == forwarded {
			return fmt.Sprintf("all of the latest %d forwarded deliveries: %s", n, text), nil
		}
	}
	return "", nil
}
