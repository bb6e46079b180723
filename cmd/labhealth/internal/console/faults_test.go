package console

import (
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// tryImport returns a valid import.
func tryImport(srv *labhealthtest.Server, user uuid.UUID, sample string) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID: user, BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodOnSiteCollection,
		OrderSet: labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.OnSite}},
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1970, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: sample,
	}
}
