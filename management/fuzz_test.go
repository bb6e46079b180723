package management

import (
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

func FuzzResponses(f *testing.F) {
	responses := []func() any{
		func() any { return new(TeamPage) }, func() any { return new(WebhookHeaders) },
		func() any { return new(KeyPage) }, func() any { return new(ETLPipelinePage) },
	}
	for i, text := range []string{
		`{"teams":[{},[],{"sandbox":{"brand_information":null}}],"next_cursor":1}`, `{"headers":{"A":1,"A":"b"}}`,
		`{"data":[{"id":7,"key":"mk_1","creator":{"type":"org_member"}}]}`, ` [ ] `, `"\ud800"`, `{"id":`, "{\"a\":\"\xff\"}",
	} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		referencetest.CheckReceived(t, responses[int(which)%len(responses)](), text)
	})
}
