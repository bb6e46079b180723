// Command plain makes the call of the command smallest with net/http and encoding/json alone, which
// every program that calls a service links. Their size depends on the Go version.
package main

import (
	"bytes"
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
	resp, err := http.Post(os.Getenv("LABHEALTH_BASE_URL")+"/v3/order/import", "application/json", bytes.NewReader(body))
	if err != nil {
		return order{}, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&imported)
	return imported, err
}
