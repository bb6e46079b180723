package labhealth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// stable writes the texts of WithDebug without what differs from run to run.
type stable struct{}

var varies = regexp.MustCompile(`127\.0\.0\.1:[0-9]+|, [0-9.]+(µ|m)s\n|Traceresponse: .*\n`)

func (stable) Write(p []byte) (int, error) {
	os.Stdout.Write(varies.ReplaceAllFunc(p, func(found []byte) []byte {
		switch found[0] {
		case ',':
			return []byte(", 12ms\n")
		case 'T':
			return []byte("Traceresponse: 00-5f0c\n")
		}
		return []byte("localhost")
	}))
	return len(p), nil
}

// Show what was sent and received. The values of the patient are not shown, and the reason why the
// request was rejected is.
func ExampleWithDebug() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"detail": [{"type": "missing", "loc": ["body", "patient_details", "last_name"], "input": {"first_name": "Ada"}}]}`)
	}))
	defer service.Close()
	apiKey, baseURL, stderr := "sk_us_0123456789", service.URL, stable{} // os.Stderr, in a program

	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(baseURL), labhealth.WithDebug(stderr))
	if err != nil {
		log.Fatal(err)
	}
	body := json.RawMessage(`{"billing_type": "client_bill", "patient_details": {"first_name": "Ada", "dob": "1990-01-31"}}`)
	err = client.Do(context.Background(), http.MethodPost, "/v3/order/import", body, nil)
	fmt.Println(labhealth.OutcomeOf(err))
	// Output:
	// --> POST http://localhost/v3/order/import (attempt 1)
	//     Accept: application/json
	//     Content-Type: application/json
	//     X-Service-Api-Key: <redacted>
	//     and 1 other header
	//
	//     {
	//       billing_type: "client_bill",
	//       patient_details: {
	//         first_name: <string>,
	//         dob: <date>
	//       }
	//     }
	// <-- 422 Unprocessable Entity, outcome rejected, 12ms
	//     Content-Type: application/json
	//     and 2 other headers
	//
	//     {
	//       detail: [
	//         {
	//           type: "missing",
	//           loc: ["body", "patient_details", "last_name"],
	//           input: {
	//             first_name: <string>
	//           }
	//         }
	//       ]
	//     }
	//
	// rejected
}

// In full: the token proves that the embedded service, and not the real one, sent a response.
func ExampleWithDebug_full() {
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	stderr := stable{} // os.Stderr, in a program

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithDebug(stderr, srv.DebugToken))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Users.Resolve(context.Background(), "ada")
	fmt.Println(labhealth.OutcomeOf(err))
	// Output:
	// --> GET http://localhost/v2/user/resolve/ada (attempt 1)
	//     Accept: application/json
	//     X-Service-Api-Key: <redacted>
	//     and 1 other header
	// <-- 404 Not Found, outcome rejected, 12ms
	//     Content-Type: application/json
	//     Traceresponse: 00-5f0c
	//     X-Labhealthtest-Proof: <redacted>
	//     and 2 other headers
	//
	//     {
	//       "detail": "User not found"
	//     }
	//
	// rejected
}
