// Command smallest imports an order, and nothing else. What it is larger than the command plain is
// what the client adds to a program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/labhealth/labhealth-go"
)

func main() {
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_URL")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	resp, err := client.Orders.Import(context.Background(), labhealth.ImportOrderBody{})
	fmt.Println(resp, err)
}
