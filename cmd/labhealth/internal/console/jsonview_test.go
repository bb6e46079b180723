package console

import (
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// jsonHTML renders the partial "json".
func jsonHTML(t *testing.T, v jsonView) string {
	t.Helper()
	all := template.Must(template.New("").Funcs((&Console{}).functions()).ParseFS(templates, "templates/json.html"))
	var b strings.Builder
	if err := all.ExecuteTemplate(&b, "json", v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// text returns the lines without classes.
func (v jsonView) text() string {
	var b strings.Builder
	for _, line := range v.Lines {
		if line.Kept != "" {
			b.WriteString("!")
		}
		for _, token := range line.Tokens {
			b.WriteString(token.Text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestJSONView(t *testing.T) {
	body := `{"id":"a<b>","total":-1.5e3,"active":true,"value":"free text","note":null,"events":{},"groups":[ ],"data":[1,{"unit":"\"y\""}],` +
		`"nick":{"name":"Amazing"},"created_at":"Grace","name":"Grace","lab_test":{"name":"Panel"},"source":{"name":"Grace"},` +
		`"first_name":"Grace","patient_details":{"phone_number":"1","Grace":{"deep":[1,true,null]}},"gend\u0065r":"f","status":1}`
	const want = `{
  "id": "a<b>",
  "total": -1.5e3,
  "active": true,
  "value": "•••••",
  "note": null,
  "events": {},
  "groups": [],
  "data": [
    1,
!    {"unit": "•••••"}
  ],
  "•••••": {"name": "•••••"},
  "created_at": "•••••",
  "name": "•••••",
  "lab_test": {"name": "Panel"},
  "source": {"name": "•••••"},
  "first_name": "•••••",
  "patient_details": {
    "phone_number": "•••••",
    "•••••": {
      "deep": ["•••••", "•••••", null]
    }
  },
  "gend\u0065r": "•••••",
!  "status": "•••••"
}
`
	v := viewJSON([]byte(body), jsonOptions{Kept: map[string]string{"data.1.unit": "unknown field", "status": "malformed: no string"}})
	if got := v.text(); got != want {
		t.Errorf("got\n%s", got)
	}
	if !v.Hidden || v.Text || v.More != 0 {
		t.Errorf("got %+v", v)
	}
	html := jsonHTML(t, v)
	if !strings.HasPrefix(html, `<span class="l"><span class="p">{</span></span><span class="l">  <span class="k">&#34;id&#34;</span><span class="p">: </span>`+
		`<span class="s">&#34;a&lt;b&gt;&#34;</span><span class="p">,</span></span>`) || strings.Contains(html, "Grace") {
		t.Errorf("got %s", html)
	}
	v = viewJSON([]byte(body), jsonOptions{Reveal: true})
	if got := v.text(); v.Hidden || !strings.Contains(got, `"first_name": "Grace"`) || strings.Contains(got, mask) {
		t.Errorf("got\n%s", got)
	}
}

func TestJSONViewOfText(t *testing.T) {
	for body, want := range map[string][2]string{
		"":                                  {"", ""},
		" \n":                               {"", ""},
		"<script>alert(1)</script>\nline 2": {"••••• 32 bytes\n", "<script>alert(1)</script>\nline 2\n"},
		`{"id":"1","first_name":"Gra`:       {"••••• 27 bytes\n", `{"id":"1","first_name":"Gra` + "\n"},
		"a\x00b\xffc\u202ed":                {"••••• 9 bytes\n", `a\u0000b` + "\uFFFD" + `c\u202ed` + "\n"},
		`"only a string"`:                   {`"•••••"` + "\n", `"only a string"` + "\n"},
		`["a",[1]]`:                         {"[\n  \"•••••\",\n  [\"•••••\"]\n]\n", "[\n  \"a\",\n  [1]\n]\n"},
	} {
		for i, reveal := range []bool{false, true} {
			if got := viewJSON([]byte(body), jsonOptions{Reveal: reveal}).text(); got != want[i] {
				t.Errorf("%q: got %q, want %q", body, got, want[i])
			}
		}
	}
}

// Bodies of any size and depth are shown in bounded time and memory.
func TestJSONViewIsBounded(t *testing.T) {
	start := time.Now()
	deep := strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000)
	if v := viewJSON([]byte(deep), jsonOptions{}); len(v.Lines) != 2000 || v.More != 17_999 {
		t.Errorf("deep: %d lines, %d more", len(v.Lines), v.More)
	}
	deeper := strings.Repeat(`{"a":`, 1_000_000)
	if v := viewJSON([]byte(deeper), jsonOptions{}); !v.Text || len(jsonHTML(t, v)) > 20_000 {
		t.Errorf("deeper: %+v", v.Text)
	}
	large := `{"list":[` + strings.Repeat(`"0123456789",`, 10<<20/13) + `1]}`
	v := viewJSON([]byte(large), jsonOptions{MaxLines: 100})
	if len(v.Lines) != 100 || v.More != 10<<20/13+5-100 || !strings.HasSuffix(jsonHTML(t, v), `<span class="l fold">… 806,501 more lines</span>`) {
		t.Errorf("large: %d lines, %d more", len(v.Lines), v.More)
	}
	if v := viewJSON([]byte(`["`+strings.Repeat("é", 10<<20)+`"]`), jsonOptions{}); len(jsonHTML(t, v)) > 20_000 {
		t.Error("a long string is not shortened")
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestUnknownPaths(t *testing.T) {
	raw := []byte(`{"id":"2435c390-d2d0-498e-8ef6-b7f6eef8069a","courier_eta":null,"events":[{"id":1},{"id":2,"by":"x"}],"created_at":"bad",
		"details":{"type":"testkit","data":{"id":"2435c390-d2d0-498e-8ef6-b7f6eef8069a","shipment":{"weight":1}}},"patient_details":{"first_name":"Grace","nick":"G"}}`)
	var o labhealth.Order
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	want := []string{"courier_eta", "details.data.shipment.weight", "events.1.by", "patient_details.nick"}
	if got := inspect.UnknownFieldsOf(o, raw); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if m := o.Malformed(); len(m) != 2 && len(m) != 1 || m[0].Path != "created_at" {
		t.Errorf("malformed: %v", m)
	}
}
