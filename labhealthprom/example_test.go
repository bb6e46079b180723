package labhealthprom_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// A program passes prometheus.DefaultRegisterer, and serves its metrics with promhttp.Handler. The
// embedded service stands for the service.
func Example() {
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	registry := prometheus.NewRegistry()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL), labhealthprom.Client(registry))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Users.List(context.Background(), labhealth.ListUsersParams{}); err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		fmt.Println(family.GetName(), family.Metric[0].Histogram.GetSampleCount())
	}
	// Output:
	// labhealth_client_call_duration_seconds 1
	// labhealth_client_request_duration_seconds 1
}
