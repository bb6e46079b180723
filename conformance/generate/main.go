// Command generate writes signatures.json into the current directory: deliveries with what a
// verifier of signatures must decide about each of them. It shares no code with package webhooks:
// it signs with crypto/hmac, and every decision is typed by hand. Run it in conformance:
//
//	go run ./generate
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("generate: ")
	document, err := encode(vectors())
	if err == nil {
		err = os.WriteFile("signatures.json", document, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// vector is a delivery, the secrets of its receiver, and the decision of a verifier.
type vector struct {
	Name    string      `json:"name"`
	Secrets []string    `json:"secrets"`
	Now     string      `json:"now"`     // seconds since 1970, with a fraction if there is one
	Headers [][2]string `json:"headers"` // names and values, in the order of their lines
	Body    []byte      `json:"body"`    // base64 in JSON
	Valid   bool        `json:"valid"`
	Reason  string      `json:"reason"`       // why it is not valid
	ID      string      `json:"id,omitempty"` // of a valid delivery
}

// encode returns the document, with one vector per line. It fails if two have the same name.
func encode(list []vector) ([]byte, error) {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	document.WriteString("{\"version\": 1, \"vectors\": [\n")
	seen := map[string]bool{}
	for i, v := range list {
		if seen[v.Name] {
			return nil, fmt.Errorf("two vectors are named %q", v.Name)
		}
		seen[v.Name] = true
		if i > 0 {
			document.WriteByte(',')
		}
		if err := encoder.Encode(v); err != nil {
			return nil, err
		}
	}
	document.WriteString("]}\n")
	return document.Bytes(), nil
}
