package labhealthtest_test

import (
	"strings"
	"testing"
)

func TestOrderDocuments(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	id, err := srv.AddOrder(ada, srv.LabTests.Testkit)
	noError(t, err)
	walkIn, err := srv.AddOrder(ada, srv.LabTests.WalkIn)
	noError(t, err)
	path, other := "/v3/order/"+id.String(), "/v3/order/"+walkIn.String()
	pdf := func(path, text string) {
		t.Helper()
		got := do(t, srv, "GET", path, "")
		if got.status != 200 || got.header.Get("Content-Type") != "application/pdf" || !strings.HasPrefix(got.body, "%PDF-") ||
			!strings.Contains(got.body, "("+text+" "+id.String()) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	pdf(path+"/labels/pdf?collection_date=2025-03-04T12:00:00Z", "3 labels for order")
	pdf(path+"/labels/pdf?collection_date=2025-03-04T12:00:00%2B01:00&number_of_labels=12", "12 labels for order")
	pdf(path+"/collection_instruction_pdf", "Collection instructions for order")
	check(t, do(t, srv, "GET", other+"/collection_instruction_pdf", ""), 404, `{"detail":"Collection instructions are not available"}`)
	for _, query := range []string{"", "?collection_date=soon", "?collection_date=2025-03-04T12:00:00Z&number_of_labels=x"} {
		if got := do(t, srv, "GET", path+"/labels/pdf"+query, ""); got.status != 422 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}

	check(t, do(t, srv, "GET", path+"/abn_pdf", ""), 404, `{"detail":"ABN is not available"}`)
	noError(t, srv.SetABN(id, true))
	pdf(path+"/abn_pdf", "Advanced Beneficiary Notice for order")

	check(t, do(t, srv, "GET", path+"/result/pdf", ""), 404, `{"detail":"Results are not available yet"}`)
	noError(t, srv.SetStatus(id, "completed.testkit.completed"))
	pdf(path+"/result/pdf", "Results of order")
	for _, document := range []string{"/labels/pdf?collection_date=2025-03-04", "/abn_pdf", "/collection_instruction_pdf", "/result/pdf"} {
		check(t, do(t, srv, "GET", "/v3/order/"+unknownID+document, ""), 404, `{"detail":"This order doesn't exist"}`)
	}
}
