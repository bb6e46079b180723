package powercut_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// The parameters of a process that imports, beside dirVariable.
const (
	baseURLVariable = "LABHEALTH_URL"
	apiKeyVariable  = "LABHEALTH_API_KEY"
	ordersVariable  = "LABHEALTH_POWERCUT_ORDERS" // the file to import, which is not on the disk
	bootVariable    = "LABHEALTH_POWERCUT_BOOT"   // a file with the ID of the boot
)

// What a process that imports prints.
const (
	bulkOpened   = "opened"   // the journal
	bulkRejected = "rejected" // the journal, with the reason
	bulkDone     = "done"
	bulkNotDone  = "not done"
)

// playBulk imports a file with a journal on the disk. It must not take the boot for the one before
// the power failure, as it would if it read the ID of the real one.
func playBulk() error {
	if err := syscall.Mount(os.Getenv(bootVariable), "/proc/sys/kernel/random/boot_id", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("another boot ID: %w", err)
	}
	client, err := labhealth.NewClient(os.Getenv(apiKeyVariable), labhealth.WithBaseURL(os.Getenv(baseURLVariable)))
	if err != nil {
		return err
	}
	orders, err := os.Open(os.Getenv(ordersVariable))
	if err != nil {
		return err
	}
	journal, err := bulk.OpenFile(filepath.Join(os.Getenv(dirVariable), "run.journal"))
	if err != nil {
		fmt.Println(bulkRejected, err)
		return nil
	}
	fmt.Println(bulkOpened)
	opts := bulk.Options{Timeout: 500 * time.Millisecond, Settle: 700 * time.Millisecond}
	report, err := bulk.Run(context.Background(), client, bulk.JSONLines(orders), journal, opts)
	if err != nil || !report.Done() {
		fmt.Println(bulkNotDone, err)
		return nil
	}
	fmt.Println(bulkDone, report.Applied)
	return nil
}
