package labhealth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// exampleOrdersFile writes a file with three orders, one JSON object per line, to a new directory.
func exampleOrdersFile(srv *labhealthtest.Server) (name string) {
	dir, err := os.MkdirTemp("", "labhealth")
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "orders.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	body := exampleImport(srv, srv.AddUser("ada"))
	for i := range 3 {
		body.SampleID = fmt.Sprintf("SAMPLE-%04d", i+1)
		if err := json.NewEncoder(file).Encode(body); err != nil {
			log.Fatal(err)
		}
	}
	return file.Name()
}

// Import a file with one order per line. A journal makes the import resumable.
func Example_bulkImport() {
	client, srv, _ := exampleService()
	defer srv.Close()
	ctx, baseURL, name := context.Background(), srv.URL, exampleOrdersFile(srv)
	defer os.RemoveAll(filepath.Dir(name))

	orders, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	journal, err := bulk.OpenFile(name + ".journal") // resumes where an interrupted run stopped
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()
	report, err := bulk.Run(ctx, client, bulk.JSONLines(orders), journal, bulk.Options{Target: baseURL})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report)
	// Output:
	// 3 records: 3 applied
}
