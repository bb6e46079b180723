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

// TestDocumentCode checks that every Go block of the Markdown files is a run of consecutive lines
// of one example, which is compiled and whose output is checked.
func TestDocumentCode(t *testing.T) {
	var bodies [][]string
	for _, list := range examples(t) {
		for _, e := range list {
			bodies = append(bodies, e.lines)
		}
	}
	goBlock := regexp.MustCompile("(?s)```go\n(.*?)```")
	blocks := 0
	for _, name := range documents(t) {
		for _, match := range goBlock.FindAllStringSubmatch(readFile(t, name), -1) {
			blocks++
			block := strings.Split(strings.TrimRight(match[1], "\n"), "\n")
			if !slices.ContainsFunc(bodies, func(body []string) bool { return containsLines(body, block) }) {
				t.Errorf("this code of %s is in no example:\n%s", name, match[1])
			}
		}
	}
	if blocks < 10 {
		t.Errorf("found only %d Go blocks", blocks)
	}
}

// TestDocumentLinks checks that the relative links of the Markdown files lead to existing files and
// headings.
func TestDocumentLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]+))?\)`)
	links := 0
	for _, name := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(readFile(t, name), -1) {
			links++
			target := name
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(name), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, match[1])
				continue
			}
			if match[2] != "" && !slices.Contains(anchors(readFile(t, target)), match[2]) {
				t.Errorf("%s links to %s#%s, which does not exist", name, match[1], match[2])
			}
		}
	}
	if links < 10 {
		t.Errorf("found only %d links", links)
	}
}

// TestDocumentDefinitions checks that the links that are defined below the text of the Markdown
// files lead to files that exist, in which there is the example or the name of their title, and
// that every link that is named in brackets is defined and used.
func TestDocumentDefinitions(t *testing.T) {
	definition := regexp.MustCompile(`(?m)^\[([\w-]+)\]: (\S+)(?: "([\w.]+)")?$`)
	titles := 0
	for _, name := range documents(t) {
		text := readFile(t, name)
		defined, used := map[string]bool{}, map[string]bool{}
		for _, match := range definition.FindAllStringSubmatch(text, -1) {
			defined[match[1]] = true
			source := readFile(t, filepath.Join(filepath.Dir(name), match[2]))
			title := match[3]
			if title != "" {
				titles++
			}
			typ, method, isMethod := strings.Cut(title, ".")
			declared := regexp.MustCompile(`(?m)^(?:func|type) ` + title + `\b`)
			if isMethod {
				declared = regexp.MustCompile(`(?m)^func \(\w+ \*?` + typ + `\) ` + method + `\(`)
			}
			if title != "" && !declared.MatchString(source) {
				t.Errorf("%s: %s has no %s", name, match[2], title)
			}
		}
		for _, match := range regexp.MustCompile(`\]\[([\w-]+)\]`).FindAllStringSubmatch(text, -1) {
			used[match[1]] = true
		}
		if !maps.Equal(defined, used) {
			t.Errorf("%s defines the links %v and uses %v", name, defined, used)
		}
	}
	if titles < 20 {
		t.Errorf("found only %d titles", titles)
	}
}

// anchors returns the anchors that GitHub gives to the headings of a Markdown file.
func anchors(markdown string) (list []string) {
	dropped := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.Lines(markdown) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			text := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			list = append(list, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return list
}

// TestExamplesAreChecked checks that every example has an output, without which go test does not
// run it. The examples of sqlstore are only compiled: they need a driver, which this module lacks.
func TestExamplesAreChecked(t *testing.T) {
	found := examples(t)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		for _, e := range found[dir] {
			if e.Output == "" && !e.EmptyOutput && dir != "webhooks/sqlstore" {
				t.Errorf("%s: Example%s has no output", dir, e.Name)
			}
		}
		t.Logf("%s: %d examples", dir, len(found[dir]))
	}
}

// TestExamplesUseBothShapesOfASource checks that no example reads a field that one of the two
// shapes of a webhooks.Source lacks, so that copied code works with both.
func TestExamplesUseBothShapesOfASource(t *testing.T) {
	oneShape := regexp.MustCompile(`\.Source\.(Provider|Slug|Name)\b|\.Provider\.(Provider|Slug|Name)\b`)
	sources := map[string]string{} // source code by the name of its example or file
	for dir, list := range examples(t) {
		for _, e := range list {
			sources[dir+": Example"+e.Name] = strings.Join(e.lines, "\n")
		}
	}
	programs, err := filepath.Glob("examples/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(programs, documents(t)...) {
		sources[name] = readFile(t, name)
	}
	uses := 0
	for name, source := range sources {
		if found := oneShape.FindString(source); found != "" {
			t.Errorf("%s reads %s: use ProviderSlug or ConnectedProvider", name, found)
		}
		uses += strings.Count(source, ".ProviderSlug()")
	}
	if uses < 8 {
		t.Errorf("found only %d uses of ProviderSlug in %d examples and files", uses, len(sources))
	}
}

// documents returns the names of the Markdown files in the root and in docs.
func documents(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(root, docs...)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// example is an example and the lines of its body.
type example struct {
	*doc.Example
	lines []string
}

// examples returns the examples of this module by directory.
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
		list, err := fileExamples(name)
		dir := filepath.ToSlash(filepath.Dir(name))
		found[dir] = append(found[dir], list...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fileExamples returns the examples of one file.
func fileExamples(name string) (list []example, err error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, e := range doc.Examples(file) {
		body := source[fset.Position(e.Code.Pos()).Offset:fset.Position(e.Code.End()).Offset]
		list = append(list, example{e, strings.Split(string(body), "\n")})
	}
	return list, nil
}

// containsLines reports whether block is a run of consecutive lines of body. The lines of body may
// share an additional indentation.
func containsLines(body, block []string) bool {
	for ; len(body) >= len(block); body = body[1:] {
		indentation := body[0][:len(body[0])-len(strings.TrimLeft(body[0], "\t"))]
		if slices.EqualFunc(body[:len(block)], block, func(line, want string) bool {
			return line == indentation+want || line == "" && want == ""
		}) {
			return true
		}
	}
	return false
}
