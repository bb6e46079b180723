package labhealth_test

import (
	"errors"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadme holds README.md and the examples together: each of its Go blocks is a run of lines of one example, which is compiled
// and whose output is checked. Its links into the tree lead somewhere.
func TestReadme(t *testing.T) {
	var bodies [][]string
	for _, list := range examples(t) {
		for _, e := range list {
			bodies = append(bodies, e.lines)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 5 {
		t.Errorf("README.md has %d Go blocks; is this still how they are found?", len(blocks))
	}
	for _, b := range blocks {
		block := strings.Split(strings.TrimRight(b[1], "\n"), "\n")
		if !slices.ContainsFunc(bodies, func(body []string) bool { return holds(body, block) }) {
			t.Errorf("this code of README.md is in no example:\n%s", b[1])
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(link[1]); err != nil {
			t.Errorf("README.md links to %s, which is not there", link[1])
		}
	}
}

// TestExamplesAreChecked wants an output of each example, without which it would not be run. Those of sqlstore need a driver, which
// this module does not have; they are compiled.
func TestExamplesAreChecked(t *testing.T) {
	found := examples(t)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		for _, e := range found[dir] {
			if e.Output == "" && !e.EmptyOutput && dir != "webhooks/sqlstore" {
				t.Errorf("%s: Example%s has no output to check", dir, e.Name)
			}
		}
		t.Logf("%s: %d examples", dir, len(found[dir]))
	}
}

// TestExamplesUseBothShapesOfASource wants no example to read a field that one of the two shapes of a
// webhooks.Source lacks: what readers copy has to work with both.
func TestExamplesUseBothShapesOfASource(t *testing.T) {
	oneShape := regexp.MustCompile(`\.Source\.(Provider|Slug|Name)\b|\.Provider\.(Provider|Slug|Name)\b`)
	texts := map[string]string{}
	for dir, list := range examples(t) {
		for _, e := range list {
			texts[dir+": Example"+e.Name] = strings.Join(e.lines, "\n")
		}
	}
	programs, err := filepath.Glob("examples/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, name := range slices.Concat(programs, documents, []string{"README.md"}) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		if found := oneShape.FindString(text); found != "" {
			t.Errorf("%s reads %s: use ProviderSlug or ConnectedProvider", name, found)
		}
		uses += strings.Count(text, ".ProviderSlug()")
	}
	if uses < 8 {
		t.Errorf("%d uses of ProviderSlug in %d examples; is this still how they are found?", uses, len(texts))
	}
}

// example is an example and the lines of its body.
type example struct {
	*doc.Example
	lines []string
}

// examples are those of this module, by directory.
func examples(t *testing.T) map[string][]example {
	t.Helper()
	found := map[string][]example{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || !errors.Is(err, fs.ErrNotExist) {
				return filepath.SkipDir
			}
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, e := range doc.Examples(file) {
			lines := text[files.Position(e.Code.Pos()).Offset:files.Position(e.Code.End()).Offset]
			dir := filepath.ToSlash(filepath.Dir(name))
			found[dir] = append(found[dir], example{e, strings.Split(string(lines), "\n")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// holds reports whether block is a run of lines of body, but for the indentation that all of its lines have there.
func holds(body, block []string) bool {
	for len(body) >= len(block) {
		indentation := body[0][:len(body[0])-len(strings.TrimLeft(body[0], "\t"))]
		if slices.EqualFunc(body[:len(block)], block, func(line, want string) bool {
			return line == indentation+want || line == "" && want == ""
		}) {
			return true
		}
		body = body[1:]
	}
	return false
}
