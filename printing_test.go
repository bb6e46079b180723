package labhealth_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every exported type of every public package that can hold text either prints "{redacted}",
// because of what it embeds, or says so in one place: it has a printed form of its own, or stands
// in harmlessTypes.
func TestTypesWithTextRedact(t *testing.T) {
	fset, files := publicFiles(t)
	checked := &textChecker{fset: fset, files: files, packages: map[string]*types.Package{}, names: map[string]map[string]bool{}}
	checked.collectNames()
	unused := map[string]bool{}
	for _, name := range harmlessTypes {
		unused[name] = true
	}
	redacting := 0
	for _, importPath := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(importPath, modulePath+"/integration/") {
			continue // its packages serve tests
		}
		pkg, err := checked.Import(importPath)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || !obj.Exported() || obj.IsAlias() {
				continue
			}
			full := path.Base(importPath) + "." + name
			format, log := methodOwner(obj.Type(), "Format"), methodOwner(obj.Type(), "LogValue")
			isRaw := path.Base(importPath) == "labhealth-go" && (name == "RawObject" || name == "Redacted")
			switch {
			case embedsBoth(obj.Type()):
				t.Errorf("%s embeds RawObject and Redacted, which hide each other's methods: remove Redacted", full)
			case isRaw, format == name && (log == name || log == ""):
			case format != "" && format == log:
				redacting++
			case format != "" || log != "":
				t.Errorf("%s has a Format of %q and a LogValue of %q", full, format, log)
			case unused[full]:
				if !checked.hasText(obj.Type(), false, nil) && !holdsRedacted(obj.Type(), nil) {
					t.Errorf("%s has no text: remove it from harmlessTypes", full)
				}
			case checked.hasText(obj.Type(), false, nil):
				t.Errorf("%s can hold text: embed RawObject or Redacted, or list it in harmlessTypes", full)
			case holdsRedacted(obj.Type(), nil):
				t.Errorf("%s holds a type that redacts itself, which the JSON handler of slog encodes in it: give it a LogValue, or list it in harmlessTypes", full)
			}
			delete(unused, full)
		}
	}
	for name := range unused {
		t.Errorf("%s does not exist", name)
	}
	if redacting < 100 {
		t.Errorf("only %d types redact themselves: the search is broken", redacting)
	}
	t.Logf("%d types redact themselves", redacting)
}

// textChecker checks the types of packages without their dependencies, of whose types it needs
// the names only.
type textChecker struct {
	fset     *token.FileSet
	files    map[string][]*ast.File
	packages map[string]*types.Package
	names    map[string]map[string]bool // that the files use, by import path
}

func (c *textChecker) collectNames() {
	for _, list := range c.files {
		for _, f := range list {
			imports := map[string]string{}
			for _, spec := range f.Imports {
				importPath, _ := strconv.Unquote(spec.Path.Value)
				name := path.Base(importPath)
				if importPath == modulePath {
					name = "labhealth"
				}
				if spec.Name != nil {
					name = spec.Name.Name
				}
				imports[name] = importPath
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := selector.X.(*ast.Ident); ok && imports[x.Name] != "" {
						importPath := imports[x.Name]
						if c.names[importPath] == nil {
							c.names[importPath] = map[string]bool{}
						}
						c.names[importPath][selector.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
}

// Import implements [types.Importer].
func (c *textChecker) Import(importPath string) (*types.Package, error) {
	if pkg := c.packages[importPath]; pkg != nil {
		return pkg, nil
	}
	if files := c.files[importPath]; files != nil {
		conf := types.Config{IgnoreFuncBodies: true, Error: func(error) {}, Importer: c}
		pkg, _ := conf.Check(importPath, c.fset, files, nil) // names of dependencies that are no types are errors
		c.packages[importPath] = pkg
		return pkg, nil
	}
	pkg := types.NewPackage(importPath, path.Base(importPath))
	for name := range c.names[importPath] {
		obj := types.NewTypeName(token.NoPos, pkg, name, nil)
		types.NewNamed(obj, types.NewStruct(nil, nil), nil)
		pkg.Scope().Insert(obj)
	}
	pkg.MarkComplete()
	c.packages[importPath] = pkg
	return pkg, nil
}

// foreignTypes are the types of dependencies that hold no text of a person.
var foreignTypes = []string{
	"time.Time", "time.Duration", "time.Month", "time.Location", "github.com/google/uuid.UUID", "encoding/json.Number", "log/slog.Logger", "sync.Mutex", "sync.RWMutex",
}

// hasText reports whether printing a value of this type can show text. Package fmt calls no method
// of a value within an unexported field, and prints the address of a pointer there.
func (c *textChecker) hasText(t types.Type, hidden bool, seen []types.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	seen = append(seen, t)
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		pkg := t.Obj().Pkg()
		switch {
		case pkg == nil: // error, comparable
			return false
		case c.files[pkg.Path()] == nil:
			return !hidden && !slices.Contains(foreignTypes, pkg.Path()+"."+t.Obj().Name())
		case len(seen) > 1 && !hidden && t.Obj().Exported(): // it is checked itself
			_, isStruct := t.Underlying().(*types.Struct)
			return !isStruct && !isEnum(t) && c.hasText(t.Underlying(), hidden, seen)
		}
		return !isEnum(t) && c.hasText(t.Underlying(), hidden, seen)
	case *types.Basic:
		return t.Info()&types.IsString != 0
	case *types.Pointer:
		return !hidden && c.hasText(t.Elem(), hidden, seen)
	case *types.Slice:
		return c.hasText(t.Elem(), hidden, seen)
	case *types.Array:
		return c.hasText(t.Elem(), hidden, seen)
	case *types.Map:
		return c.hasText(t.Key(), hidden, seen) || c.hasText(t.Elem(), hidden, seen)
	case *types.Struct:
		for f := range t.Fields() {
			if c.hasText(f.Type(), hidden || !f.Exported() && !f.Embedded(), seen) {
				return true
			}
		}
	}
	return false
}

// holdsRedacted reports whether a value of an exported field redacts itself.
func holdsRedacted(t types.Type, seen []types.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	if seen = append(seen, t); len(seen) > 1 && methodOwner(t, "LogValue") != "" {
		return true
	}
	switch t := t.Underlying().(type) {
	case *types.Pointer:
		return holdsRedacted(t.Elem(), seen)
	case *types.Slice:
		return holdsRedacted(t.Elem(), seen)
	case *types.Map:
		return holdsRedacted(t.Elem(), seen)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() && holdsRedacted(f.Type(), seen) {
				return true
			}
		}
	}
	return false
}

// isEnum reports whether a type is text of which its package declares the usual values.
func isEnum(t *types.Named) bool {
	basic, ok := t.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsString == 0 {
		return false
	}
	scope := t.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if constant, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(constant.Type(), t) {
			return true
		}
	}
	return false
}

// methodOwner returns the name of the type that declares a method of a value: itself or one that it
// embeds.
func methodOwner(t types.Type, name string) string {
	obj, _, _ := types.LookupFieldOrMethod(t, false, nil, name)
	method, ok := obj.(*types.Func)
	if !ok {
		return ""
	}
	recv := method.Signature().Recv().Type()
	if named, ok := recv.(*types.Named); ok {
		return named.Obj().Name()
	}
	return recv.String()
}

func embedsBoth(t types.Type) bool {
	structure, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	embedded := map[string]bool{}
	for f := range structure.Fields() {
		embedded[f.Name()] = embedded[f.Name()] || f.Embedded()
	}
	return embedded["RawObject"] && embedded["Redacted"]
}

// harmlessTypes can hold text and print it: names and settings of a team, filters of lists, keys of
// wearable data, which have no value, settings with a Store, and counts with fixed phrases. Those
// of package labhealthtest hold invented data.
var harmlessTypes = strings.Fields(`
	labhealth-go.AddOnOrder labhealth-go.Consent labhealth-go.Malformed labhealth-go.ValidationError
	labhealth-go.CreateLabTestBody labhealth-go.UpdateLabTestBody
	labhealth-go.ListHistoricalPullsParams labhealth-go.ListLabTestsParams labhealth-go.ListMarkersParams labhealth-go.ListSamplesParams
	labhealth-go.ListSummariesParams labhealth-go.ListUserResourcesParams

	management.CreateKeyBody management.CreateTeamAPIKeyBody management.CreateTeamBody management.UpdateKeyBody
	management.UpdateOrganisationBody management.UpdateTeamBody management.UpsertProviderDataPullPreferences
	management.UpsertTeamDataPullPreferencesBody management.ListETLPipelinesParams management.ListKeysParams
	management.ListTeamAPIKeysParams management.ListTeamCustomCredentialsParams management.ListTeamDataPullPreferencesParams
	management.ListTeamsParams management.ListWebhooksParams

	bulk.CSVOptions bulk.Problem bulk.Progress
	labhealthtest.Delivery labhealthtest.FaultPlan labhealthtest.OrderState labhealthtest.Request labhealthtest.ResultCounts labhealthtest.Server
	webhooks.DeliveryResult webhooks.Handler webhooks.Latest webhooks.ParseError webhooks.ReadAllParams
	webhooks.SampleKey webhooks.Series webhooks.SummaryKey
	sqlstore.Reactor sqlstore.Receiver sqlstore.Reconciled sqlstore.Reconciler sqlstore.Step sqlstore.Store sqlstore.Worker`)
