package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// generate writes count orders of invented patients. A few of them are invalid or rejected, so that
// there is something to report.
func generate(file string, count int, users []uuid.UUID, tests labhealthtest.LabTests) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	encoder := json.NewEncoder(w)
	firstNames := []string{"Ada", "Grace", "Alan", "Edsger", "Barbara"}
	for i := 1; i <= count && err == nil; i++ {
		name := firstNames[i%len(firstNames)]
		body := labhealth.ImportOrderBody{
			UserID:           users[i%len(users)],
			BillingType:      labhealth.BillingClientBill,
			OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{tests.WalkIn}},
			CollectionMethod: labhealth.CollectionMethodWalkInTest,
			PatientDetails: labhealth.PatientDetailsWithValidation{
				FirstName: name, LastName: "Example", DOB: labhealth.Date{Year: 1950 + i%40, Month: 3, Day: 1 + i%28},
				Gender: labhealth.GenderUnknown, PhoneNumber: "+14155550123", Email: fmt.Sprintf("patient-%d@example.com", i),
			},
			PatientAddress: labhealth.PatientAddress{
				ReceiverName: name + " Example", FirstLine: fmt.Sprintf("%d Example Street", i), City: "Monterey", State: "CA", Zip: "93940", Country: "US",
			},
			SampleID: fmt.Sprintf("SAMPLE-%06d", i),
		}
		switch i {
		case 7:
			body.PatientDetails.Email = "none"
		case 11:
			body.PatientDetails.LastName = ""
		case 13:
			body.SampleID = fmt.Sprintf("SAMPLE-%06d", i-1) // of another patient
		case 17:
			body.UserID = uuid.UUID{0xee} // does not exist
		case 19:
			body.OrderSet.LabTestIDs[0] = tests.Inactive
		}
		err = encoder.Encode(body)
	}
	return errors.Join(err, w.Flush(), f.Close())
}
