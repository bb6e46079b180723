package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// Limits of what the forms accept.
const (
	maxStatus = 300
	maxUserID = 200
)

// failures are the details of the status sample_error that the menu offers.
var failures = []string{
	string(labhealth.StatusDetailSampleHemolyzed), string(labhealth.StatusDetailSampleQuantityNotSufficient),
	string(labhealth.StatusDetailSampleContaminated), string(labhealth.StatusDetailSampleImproperCollection),
}

// lostStatuses are the other failures of testkits.
var lostStatuses = []string{"failed.testkit.lost", "failed.testkit.failure_to_deliver_to_customer", "failed.testkit.failure_to_deliver_to_lab"}

const ordersPath = "/console/orders"

func orderPath(id uuid.UUID) string { return ordersPath + "/" + id.String() }

// orderActions change an order and return what they did.
var orderActions = map[string]func(c *Console, id uuid.UUID, form url.Values) (done string, err error){
	"advance": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		status, err := c.Server.Advance(id)
		return "The order advanced to “" + statusWords(status, "") + "”.", err
	},
	"complete": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		state, _ := c.Server.OrderState(id)
		return "The order was completed. It has results.", c.Server.SetStatus(id, "completed."+state.Method+".completed")
	},
	"partial": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		return "The order has partial results.", c.Server.PartialResults(id)
	},
	"fail": func(c *Console, id uuid.UUID, form url.Values) (string, error) {
		status, detail := strings.TrimSpace(form.Get("status")), form.Get("detail")
		switch {
		case len(status) > maxStatus:
			return "", fmt.Errorf("status is too long: at most %d bytes are allowed", maxStatus)
		case status != "":
			return "The status is “" + statusWords(status, "") + "”.", c.Server.SetStatus(id, status)
		case detail == "":
			return "", errors.New("status is empty: enter any text, such as failed.testkit.lost")
		}
		return "The sample failed: " + strings.ToLower(words(detail)) + ".", c.Server.Fail(id, detail)
	},
	"cancel": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		return "The order was canceled.", c.Server.Cancel(id)
	},
	"delete": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		return "Order " + id.String()[:8] + " was deleted. The service sends no event of that.", c.Server.DeleteOrder(id)
	},
	"correct": func(c *Console, id uuid.UUID, form url.Values) (string, error) {
		marker, err := strconv.ParseInt(form.Get("marker"), 10, 64)
		value := strings.TrimSpace(form.Get("value"))
		switch {
		case err != nil:
			return "", errors.New("marker must be the number of a marker of the order")
		case value == "" || len(value) > maxStatus:
			return "", fmt.Errorf("value must have 1 to %d bytes, such as 5.4, <1.0 or Negative", maxStatus)
		}
		return "The result was corrected. The service sends no event of that: read the results again to see it.", c.Server.CorrectResult(id, marker, value)
	},
}

// changeOrder performs the action in the path.
func (c *Console) changeOrder(r *http.Request) (path, done string, err error) {
	id, err := c.orderID(r)
	if err != nil {
		return ordersPath, "", err
	}
	name, back := r.PathValue("action"), r.PostFormValue("back")
	if name == "redraw" {
		other, err := c.Server.Redraw(id)
		return orderPath(other), "This order repeats order " + id.String()[:8] + ".", err
	}
	do := orderActions[name]
	if do == nil {
		return orderPath(id), "", fmt.Errorf("there is no action %q of orders", name)
	}
	if done, err = do(c, id, r.PostForm); err == nil && (back != "" || name == "delete") {
		return boardBack(back), done, nil
	}
	return orderPath(id), done, err
}

// boardBack returns the view of the board that a form names, or the board.
func boardBack(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Path != ordersPath || u.Host != "" {
		return ordersPath
	}
	return boardQuery(u.Query()).Address()
}

// orderID returns the ID in the path, of an order that exists if there is a sandbox.
func (c *Console) orderID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return uuid.Nil, fmt.Errorf("the ID of an order is a UUID, not “%s”", r.PathValue("id"))
	}
	if c.sandbox() {
		if _, ok := c.Server.OrderState(id); !ok {
			return uuid.Nil, fmt.Errorf("there is no order %s: it may have been deleted", id)
		}
	}
	return id, nil
}

// orderOfPath returns the ID in the path. If there is no such order, it responds.
func (c *Console) orderOfPath(w http.ResponseWriter, r *http.Request) (uuid.UUID, bool) {
	id, err := c.orderID(r)
	if err != nil {
		c.noPage(w, r, sentence(err))
	}
	return id, err == nil
}

// noPage shows that an order does not exist.
func (c *Console) noPage(w http.ResponseWriter, r *http.Request, text string) {
	c.render(w, r, "no-order", page{Title: "Not found", Current: "orders", Status: http.StatusNotFound, Data: text})
}

// labTests returns the lab tests of which orders can be added.
func (c *Console) labTests(ctx context.Context) (tests []labhealth.LabTest) {
	for test, err := range c.Client.LabTests.All(ctx, labhealth.ListLabTestsParams{}) {
		if err != nil {
			c.Log.Error("console: cannot read the lab tests", "error", err)
			break
		}
		if test.Status == labhealth.LabTestStatusActive && len(tests) < 100 {
			tests = append(tests, *test)
		}
	}
	return tests
}

// addOrder adds an order of a user, who is created if necessary.
func (c *Console) addOrder(r *http.Request) (path, done string, err error) {
	path = boardBack(r.PostFormValue("back"))
	user := strings.TrimSpace(r.PostFormValue("user"))
	test, err := uuid.Parse(r.PostFormValue("lab_test"))
	switch {
	case user == "" || len(user) > maxUserID:
		return path, "", fmt.Errorf("user must have 1 to %d bytes: your own ID of a user, such as user-1", maxUserID)
	case err != nil:
		return path, "", errors.New("lab_test must be the ID of a lab test")
	}
	id, err := c.Server.AddOrder(c.Server.AddUser(user), test)
	return path, "Order " + id.String()[:8] + " was created.", err
}

// fillOrders adds invented users and orders.
func (c *Console) fillOrders(*http.Request) (path, done string, err error) {
	const users, orders = 20, 50
	if c.Fill != nil {
		err = c.Fill(users, orders)
	} else {
		c.Server.AddUsers(users)
		c.Server.AddOrders(orders)
	}
	return ordersPath, fmt.Sprintf("%d users and %d orders were added.", users, orders), err
}

// orderDocument serves a PDF of an order.
func (c *Console) orderDocument(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("document")
	read := map[string]func(context.Context, uuid.UUID, io.Writer, ...labhealth.CallOption) (int64, error){
		"requisition.pdf": c.Client.Orders.RequisitionPDF,
		"results.pdf":     c.Client.Orders.ResultsPDF,
	}[name]
	id, ok := c.orderOfPath(w, r)
	var b bytes.Buffer
	switch {
	case !ok:
		return
	case name == "reveal":
		http.Redirect(w, r, orderPath(id), http.StatusSeeOther)
		return
	case read == nil:
		c.noPage(w, r, "Order "+id.String()+" has no such document. It has requisition.pdf and results.pdf.")
		return
	}
	if _, err := read(r.Context(), id, &b); err != nil {
		c.noPage(w, r, "Order "+id.String()+" does not have this document yet.")
		return
	}
	w.Header().Set("Content-Type", "application/pdf")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id.String()[:8]+"-"+name+`"`)
	w.Write(b.Bytes())
}
