package console

import (
	"bytes"
	"context"
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
var failures = []labhealth.OrderStatusDetail{
	labhealth.StatusDetailSampleHemolyzed, labhealth.StatusDetailSampleQuantityNotSufficient, labhealth.StatusDetailSampleContaminated,
	labhealth.StatusDetailSampleImproperCollection,
}

// lostStatuses are the other failures of testkits.
var lostStatuses = []string{"failed.testkit.lost", "failed.testkit.failure_to_deliver_to_customer", "failed.testkit.failure_to_deliver_to_lab"}

// orderAction changes an order and returns what it did.
type orderAction func(c *Console, id uuid.UUID, form url.Values) (text string, err error)

var orderActions = map[string]orderAction{
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
	"fail": failOrder,
	"cancel": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		return "The order was canceled.", c.Server.Cancel(id)
	},
	"delete": func(c *Console, id uuid.UUID, _ url.Values) (string, error) {
		return "Order " + id.String()[:8] + " was deleted. The service sends no event of that.", c.Server.DeleteOrder(id)
	},
	"correct": correctResult,
}

// failOrder sets a failure, or any status.
func failOrder(c *Console, id uuid.UUID, form url.Values) (string, error) {
	status := strings.TrimSpace(form.Get("status"))
	switch {
	case len(status) > maxStatus:
		return "", fmt.Errorf("status is too long: at most %d bytes are allowed", maxStatus)
	case status != "":
		return "The status is “" + statusWords(status, "") + "”.", c.Server.SetStatus(id, status)
	case form.Get("detail") == "":
		return "", fmt.Errorf("status is empty: enter any text, such as failed.testkit.lost")
	}
	detail := form.Get("detail")
	return "The sample failed: " + strings.ToLower(words(detail)) + ".", c.Server.Fail(id, detail)
}

func correctResult(c *Console, id uuid.UUID, form url.Values) (string, error) {
	marker, err := strconv.ParseInt(form.Get("marker"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("marker must be the number of a marker of the order")
	}
	value := strings.TrimSpace(form.Get("value"))
	if value == "" || len(value) > maxStatus {
		return "", fmt.Errorf("value must have 1 to %d bytes, such as 5.4, <1.0 or Negative", maxStatus)
	}
	return "The result was corrected. The service sends no event of that: read the results again to see it.", c.Server.CorrectResult(id, marker, value)
}

// changeOrder performs the action in the path.
func (c *Console) changeOrder(w http.ResponseWriter, r *http.Request) {
	id, ok := c.orderOfPath(w, r)
	if !ok {
		return
	}
	switch name := r.PathValue("action"); name {
	case "reveal":
		c.revealPatient(w, r)
	case "redraw":
		c.redrawOrder(w, r, id)
	default:
		act := orderActions[name]
		if act == nil {
			c.noPage(w, r, "There is no action “"+visible(name)+"” of orders.")
			return
		}
		back := orderPath(id)
		if r.PostFormValue("back") != "" || name == "delete" {
			back = boardBack(r.PostFormValue("back"))
		}
		text, err := act(c, id, r.PostForm)
		if err != nil {
			c.backWithError(w, r, orderPath(id), err)
			return
		}
		c.back(w, r, back, "ok", text)
	}
}

func (c *Console) redrawOrder(w http.ResponseWriter, r *http.Request, id uuid.UUID) {
	other, err := c.Server.Redraw(id)
	if err != nil {
		c.backWithError(w, r, orderPath(id), err)
		return
	}
	c.back(w, r, orderPath(other), "ok", "This order repeats order "+id.String()[:8]+".")
}

func (c *Console) backWithError(w http.ResponseWriter, r *http.Request, path string, err error) {
	c.back(w, r, path, "bad", "Nothing was changed: "+strings.TrimPrefix(err.Error(), "labhealthtest: ")+".")
}

func orderPath(id uuid.UUID) string { return "/console/orders/" + id.String() }

// boardBack returns the view of the board that a form names, or the board.
func boardBack(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Path != "/console/orders" || u.Host != "" {
		return "/console/orders"
	}
	return boardView(u.Query())
}

// orderOfPath returns the ID in the path. If there is no such order, it responds.
func (c *Console) orderOfPath(w http.ResponseWriter, r *http.Request) (uuid.UUID, bool) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		c.noPage(w, r, "“"+visible(r.PathValue("id"))+"” is not the ID of an order, which is a UUID.")
		return uuid.Nil, false
	}
	if c.sandbox() {
		if _, ok := c.Server.OrderState(id); !ok {
			c.noPage(w, r, "There is no order "+id.String()+". It may have been deleted.")
			return uuid.Nil, false
		}
	}
	return id, true
}

// noPage shows that an order does not exist.
func (c *Console) noPage(w http.ResponseWriter, r *http.Request, text string) {
	c.render(w, r, "no-order", page{Title: "Not found", Current: "orders", Status: http.StatusNotFound, Data: text})
}

// addForm is the data of the form that adds an order.
type addForm struct {
	User  string
	Tests []addTest
}

type addTest struct{ ID, Name, Method string }

func (c *Console) newAddForm(ctx context.Context) *addForm {
	form := &addForm{User: "user-1"}
	for test, err := range c.Client.LabTests.All(ctx, labhealth.ListLabTestsParams{}) {
		if err != nil {
			c.Log.Error("console: cannot read the lab tests", "error", err)
			break
		}
		if test.Status == labhealth.LabTestStatusActive && len(form.Tests) < 100 {
			form.Tests = append(form.Tests, addTest{test.ID.String(), visible(test.Name), methodName(string(test.Method))})
		}
	}
	return form
}

// addOrder adds an order of a user, who is created if necessary.
func (c *Console) addOrder(w http.ResponseWriter, r *http.Request) {
	user, test := strings.TrimSpace(r.PostFormValue("user")), r.PostFormValue("lab_test")
	testID, err := uuid.Parse(test)
	switch {
	case user == "" || len(user) > maxUserID:
		err = fmt.Errorf("user must have 1 to %d bytes: your own ID of a user, such as user-1", maxUserID)
	case err != nil:
		err = fmt.Errorf("lab_test must be the ID of a lab test")
	}
	var id uuid.UUID
	if err == nil {
		id, err = c.Server.AddOrder(c.Server.AddUser(user), testID)
	}
	back := boardBack(r.PostFormValue("back"))
	if err != nil {
		c.backWithError(w, r, back, err)
		return
	}
	c.back(w, r, back, "ok", "Order "+id.String()[:8]+" was created.")
}

// fillOrders adds invented users and orders.
func (c *Console) fillOrders(w http.ResponseWriter, r *http.Request) {
	const users, orders = 20, 50
	fill := c.Fill
	if fill == nil {
		fill = func(users, orders int) error {
			c.Server.AddUsers(users)
			c.Server.AddOrders(orders)
			return nil
		}
	}
	if err := fill(users, orders); err != nil {
		c.backWithError(w, r, "/console/orders", err)
		return
	}
	c.back(w, r, "/console/orders", "ok", fmt.Sprintf("%d users and %d orders were added.", users, orders))
}

// orderDocument serves a PDF of an order.
func (c *Console) orderDocument(w http.ResponseWriter, r *http.Request) {
	read := map[string]func(context.Context, uuid.UUID, io.Writer, ...labhealth.CallOption) (int64, error){
		"requisition.pdf": c.Client.Orders.RequisitionPDF,
		"results.pdf":     c.Client.Orders.ResultsPDF,
	}[r.PathValue("document")]
	id, ok := c.orderOfPath(w, r)
	switch {
	case !ok:
		return
	case r.PathValue("document") == "reveal":
		http.Redirect(w, r, orderPath(id), http.StatusSeeOther)
		return
	case read == nil:
		c.noPage(w, r, "Order "+id.String()+" has no such document. It has requisition.pdf and results.pdf.")
		return
	}
	var b bytes.Buffer
	if _, err := read(r.Context(), id, &b); err != nil {
		c.noPage(w, r, "Order "+id.String()+" does not have this document yet.")
		return
	}
	w.Header().Set("Content-Type", "application/pdf")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id.String()[:8]+"-"+r.PathValue("document")+`"`)
	w.Write(b.Bytes())
}
