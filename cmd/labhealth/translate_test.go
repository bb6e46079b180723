package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// apiName matches names of the library and of Go.
var apiName = regexp.MustCompile(`\b(With[A-Z]\w+|[A-Z]\w+\.[A-Z]\w+|CSVColumns|strings\.\w+|http\.[A-Z]\w*)`)

// unreachable matches messages about what the command line does not use.
var unreachable = regexp.MustCompile(`^(the )?http\.RoundTripper|the http\.RoundTripper|Appointments?\.|(Link|Insurance)\.|Users\.CreateInsurance|UnmatchedResult\.|\.AppointmentType|Order\.Reschedulable|UserRefreshError|ConnectedProviders|` +
	`WithCredentials|CSVOptions\.(Row|Users|Defaults)|Options\.(Concurrency|Rate|Timeout|Settle) |Options\.Settle must|Options\.Timeout, |the provider `)

// Errors name the flags and commands that help, and not the API of the library.
func TestErrorsOfCommandLine(t *testing.T) {
	files := []string{"../../reasons.go", "../../failure.go", "../../credentials.go", "../../error_fields.go"}
	inBulk, err := filepath.Glob("../../bulk/*.go")
	if err != nil || len(inBulk) == 0 {
		t.Fatal(err, inBulk)
	}
	count := 0
	for _, file := range append(files, inBulk...) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_gen.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			if !apiName.MatchString(text) || strings.ContainsFunc(text, unicode.IsControl) || unreachable.MatchString(text) {
				return true
			}
			count++
			if got := errorText(errors.New(text)); apiName.MatchString(got) {
				t.Errorf("%s: %s", filepath.Base(file), got)
			}
			return true
		})
	}
	if count < 30 {
		t.Error("only", count, "messages")
	}
}

func TestErrorText(t *testing.T) {
	service := newService(t)
	if got := command(t, "users", "create", "u-1"); got.code != 0 {
		t.Fatal(got)
	}
	for _, c := range []struct{ args, want string }{
		{"users create u-1", "labhealth users create --if-missing prints it"},
		{"orders results " + newOrder(t, service, false).String(), "no results yet: labhealth orders get shows the status"},
		{"orders cancel --yes " + newOrder(t, service, true).String(), "does not permit this: labhealth orders get shows it"},
	} {
		if got := command(t, strings.Fields(c.args)...); got.code != exitRejected || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
	if got := errorText(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}); got != "open x: file does not exist" {
		t.Error(got)
	}
}

// A file that cannot be read is invalid input, also after an interrupted import and without a key.
func TestImportInvalidFile(t *testing.T) {
	service := newService(t)
	file := filepath.Join(t.TempDir(), "a.csv")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ text, flags, want string }{
		{"Sample,DOB\n1,2\n", "", "--separator must be right"},
		{"sample_id;user_id\n1;2\n", "", "use --separator ';'"},
		{"sample_id,Notes\n1,2\n", "", "use --rename COLUMN=FIELD"},
		{"sample_id\n\"1\n", "", "is never closed"},
		{"sample_id\n1\n", "--rename sample_id=smaple_id", "is not a field"},
	} {
		write(c.text)
		for _, run := range []string{" --dry-run", ""} {
			got := command(t, strings.Fields("orders import "+file+" "+c.flags+run)...)
			quoted := strings.Contains(c.want, "closed") && run == "" // users may have been created before
			if !strings.Contains(got.stderr, c.want) || got.code != exitUsage && !quoted || apiName.MatchString(got.stderr) {
				t.Errorf("%q%s: %+v", c.text, run, got)
			}
		}
	}
	write("sample_id,client_user_id\nS-1,u-1\n")
	const missing = "labhealth: the file cannot be read: the CSV file has no column for billing_type, collection_method, patient_details.first_name, "
	for _, c := range []struct{ key, flag string }{{service.APIKey, "--json=false"}, {service.APIKey, "--dry-run"}, {"", "--dry-run"}} {
		t.Setenv("LABHEALTH_API_KEY", c.key)
		if got := command(t, "orders", "import", file, "--country", "US", c.flag); got.code != exitUsage || got.stdout != "" || strings.Count(got.stderr, missing) != 1 {
			t.Errorf("%+v", got)
		}
	}
}

func TestAppliedUnread(t *testing.T) {
	for status, want := range map[int]string{200: "do not repeat it.\n", 502: "check before you repeat it.\n"} {
		setEnvironment(t, map[string]string{"LABHEALTH_URL": respond(t, status, "application/json", "[1,2"), "LABHEALTH_API_KEY": "sk_us_a"})
		if got := command(t, "users", "create", "u"); got.code != exitUnknown || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%d: %+v", status, got)
		}
	}
	if got := errorText(errors.New("after 0 deliveries: inspect: there is no delivery 99")); got != "after 0 deliveries: there is no delivery 99" {
		t.Error(got)
	}
}
