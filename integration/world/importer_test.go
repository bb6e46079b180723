package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/machine"
)

const journalPath = "/import/run.journal"

var users = []uuid.UUID{uuid.MustParse("c1b7e0d4-58a2-4f9e-8d36-90f5b2a4e617"), uuid.MustParse("0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4")}

func record(sampleID string, user uuid.UUID) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           user,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("5d2a8f31-b6c4-4e07-a9d8-13f7c05e6b42")}},
		CollectionMethod: labhealth.CollectionMethodOnSiteCollection,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: sampleID,
	}
}

// runImporter runs and restarts the import until it is done.
func (w *world) runImporter() {
	for n := 1; ; n++ {
		p := w.importer.start()
		w.importing.Store(p)
		done := w.importOnce(p, n)
		died := p.isDead()
		p.kill(false)
		p.running.Wait()
		if done && !died || w.failed() {
			return
		}
		if n == 40 {
			w.report("the import is not done after 40 runs")
			return
		}
		time.Sleep(w.restartAfter("restart importer", n))
	}
}

// importOnce is one run of the importer. It reports whether the import is done.
func (w *world) importOnce(p *process, n int) bool {
	journal, err := openJournal(p)
	if err != nil {
		if !p.isDead() && !errors.Is(err, errDisk) {
			w.report("the journal cannot be opened: " + err.Error())
		}
		return false
	}
	defer journal.Close()
	client, err := w.newAPIClient(p)
	if err != nil {
		panic(err)
	}
	report, err := bulk.Run(p.ctx, client, w.source(), journal, bulk.Options{
		Timeout: 10 * time.Second, Settle: settle, Outage: time.Hour, RejectionLimit: -1,
		Concurrency: w.plan.concurrency, ListByUser: w.plan.listByUser, TrustJournal: w.plan.trustJournal,
		Now: w.importer.now,
	})
	if p.isDead() {
		return false
	}
	w.history.add(p.name, n, fmt.Sprintf("%v, error: %v", report, err))
	if err != nil || !report.Done() {
		return false
	}
	w.finalReport = report
	return true
}

func openJournal(m machine.Machine) (*bulk.File, error) {
	journal, err := machine.OpenJournal(m, journalPath)
	if err != nil {
		return nil, err
	}
	return journal.(*bulk.File), nil
}

func (w *world) newAPIClient(p *process) (*labhealth.Client, error) {
	return labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("http://"+serviceAddress), labhealth.WithHTTPClient(newClient(p)), w.observeCalls(p))
}

func (w *world) source() bulk.Source {
	return func(yield func(bulk.Record, error) bool) {
		for _, r := range w.plan.records {
			if !yield(bulk.Record{Body: r}, nil) {
				return
			}
		}
	}
}
