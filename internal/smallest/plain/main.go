// Command plain makes the call of the command smallest with net/http and encoding/json alone, which
// every program that calls a service links. Their size depends on the Go version.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

type order struct {
	UserID string `json:"user_id"`
	ID     string `json:"id"`
}

func main() {
	resp, err := importOrder()
	fmt.Println(resp, err)
	if err != nil {
		os.Exit(1)
	}
}

func importOrder() (imported order, err error) {
	body, err := json.Marshal(order{})
	if err != nil {
		return order{}, err
	}
	url := os.Getenv("LABHEALTH_URL") + "/v3/order/import"
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return order{}, err
	}
	req.Header.Set("x-service-api-key", os.Getenv("LABHEALTH_API_KEY"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return order{}, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&imported)
	return imported, err
}
