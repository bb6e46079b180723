package labhealthtest_test

import (
	"strings"
	"testing"
)

func TestUserInfo(t *testing.T) {
	srv := newServer(t)
	path := "/v2/user/" + srv.AddUser("ada").String() + "/info"
	const (
		details = `"first_name":"Ada","last_name":"Example","email":"ada@example.com","phone_number":"+14155550123","gender":"female","dob":"1990-01-31"`
		address = `"first_line":"1 Example St","country":"US","zip":"94105","city":"San Francisco","state":"CA"`
		more    = `,"access_notes":null,"second_line":""`
		none    = `"medical_proxy":null,"sexual_orientation":null,"gender_identity":null,"ethnicity":null,`
	)
	check(t, do(t, srv, "GET", path+"/latest", ""), 404, `{"detail":"User info not found"}`)
	check(t, do(t, srv, "GET", "/v2/user/"+unknownID+"/info/latest", ""), 404, `{"detail":"User not found"}`)

	want := `{` + none + details + `,"race":"asian","address":{` + address + more + `}}`
	check(t, do(t, srv, "PATCH", path, `{`+details+`,"race":"asian","address":{`+address+`}}`), 200, want)
	check(t, do(t, srv, "GET", path+"/latest", ""), 200, want)

	// An absent field is kept, null clears it.
	check(t, do(t, srv, "PATCH", path, `{`+details+`,"address":{`+address+`}}`), 200, want)
	want = strings.Replace(want, `"asian"`, "null", 1)
	check(t, do(t, srv, "PATCH", path, `{`+details+`,"race":null,"address":{`+address+`}}`), 200, want)
	check(t, do(t, srv, "GET", path+"/latest", ""), 200, want)

	got := do(t, srv, "PATCH", path, `{`+strings.Replace(details, "ada@example.com", "ada", 1)+`,"race":"martian"}`)
	for _, field := range []string{"email", "address", "race"} {
		if got.status != 422 || !strings.Contains(got.body, `"loc":["body","`+field+`"]`) {
			t.Errorf("%d %s lacks %s", got.status, got.body, field)
		}
	}
}
