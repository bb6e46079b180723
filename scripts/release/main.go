// Release tags a version of the modules that are published: the root, labhealthotel, labhealthprom
// and cmd/labhealth.
//
//	go run -C scripts/release . v0.2.0
//
// On main, the nested modules use the root of the same clone, by a replace directive. With one, go
// install could not install a command, and a program could not use the version that was tested. So
// the release makes two commits: one in which these modules require the root at the version, with
// its checksum, which gets the tags, and one that returns main to development. It pushes nothing.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const rootPath = "github.com/labhealth/labhealth-go"

// published are the directories of the nested modules that get a tag.
var published = []string{"cmd/labhealth", "labhealthotel", "labhealthprom"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -C scripts/release . VERSION, such as v0.2.0")
		os.Exit(2)
	}
	repo, err := git(".", "rev-parse", "--show-toplevel")
	if err == nil {
		err = release(repo, os.Args[1], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release makes the commits and the tags. After an error, the repository is as before.
func release(repo, version string, out io.Writer) (err error) {
	if err := check(repo, version); err != nil {
		return err
	}
	start, err := git(repo, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	var tagged []string
	defer func() {
		if err == nil {
			return
		}
		if len(tagged) > 0 {
			git(repo, append([]string{"tag", "--delete"}, tagged...)...)
		}
		git(repo, "reset", "--quiet", "--hard", start)
	}()
	sums, err := checksums(repo, start, version)
	if err != nil {
		return err
	}
	for _, dir := range published {
		if err := pin(filepath.Join(repo, dir), version, sums); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if _, err := git(repo, "commit", "--quiet", "--all", "--message", "Release "+version+"\n\nThe published modules require this version, without a replace directive."); err != nil {
		return err
	}
	for _, tag := range tags(version) {
		if _, err := git(repo, "tag", "--annotate", "--message", tag, tag); err != nil {
			return err
		}
		tagged = append(tagged, tag)
	}
	files := []string{"checkout", start, "--"}
	for _, dir := range published {
		files = append(files, dir+"/go.mod", dir+"/go.sum")
	}
	if _, err := git(repo, files...); err != nil {
		return err
	}
	if _, err := git(repo, "commit", "--quiet", "--message", "Develop the nested modules with the root of the clone\n\nThe tags of "+version+" are on the commit before."); err != nil {
		return err
	}
	branch, err := git(repo, "branch", "--show-current")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "tagged %s\npush   git push --atomic origin %s %s\n", strings.Join(tagged, ", "), branch, strings.Join(tagged, " "))
	return nil
}

// tags returns the tag of each published module. The version of a nested module has its directory.
func tags(version string) []string {
	all := []string{version}
	for _, dir := range published {
		all = append(all, dir+"/"+version)
	}
	return all
}

// check returns an error if the version cannot be released from this state of the repository.
func check(repo, version string) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version such as v0.2.0", version)
	}
	status, err := git(repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return errors.New("there are changes that are not committed: commit or stash them")
	}
	for _, tag := range tags(version) {
		if found, err := git(repo, "tag", "--list", tag); err != nil || found != "" {
			return errors.Join(err, fmt.Errorf("the tag %s exists", tag))
		}
	}
	return errors.Join(checkText(repo, version), checkRequired(repo))
}

// checkText returns an error if the files do not name the version.
func checkText(repo, version string) error {
	client, err := os.ReadFile(filepath.Join(repo, "client.go"))
	if err != nil {
		return err
	}
	if !bytes.Contains(client, []byte("const Version = \""+version[1:]+"\"\n")) {
		return fmt.Errorf("the constant Version in client.go is not %q", version[1:])
	}
	changes, err := os.ReadFile(filepath.Join(repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version[1:]) + `\] - \d{4}-\d{2}-\d{2}$`).Match(changes) {
		return fmt.Errorf("CHANGELOG.md has no heading ## [%s] with a date", version[1:])
	}
	return nil
}

// checkRequired returns an error if a published module requires another one: the checksum of one
// would depend on the other.
func checkRequired(repo string) error {
	for _, dir := range published {
		file, err := readModFile(filepath.Join(repo, dir, "go.mod"))
		if err != nil {
			return err
		}
		for _, r := range file.Require {
			if strings.HasPrefix(r.Mod.Path, rootPath+"/") {
				return fmt.Errorf("%s requires %s, which this program cannot release", dir, r.Mod.Path)
			}
		}
	}
	return nil
}

// checksums returns the lines of go.sum for the root module at a commit: what the module proxy will
// serve for the tag. The nested modules are no part of it, so that their changes do not change it.
func checksums(repo, commit, version string) ([]string, error) {
	var archive bytes.Buffer
	m := module.Version{Path: rootPath, Version: version}
	if err := zip.CreateFromVCS(&archive, m, repo, commit, ""); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "release-*.zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = archive.WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	sum, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(filepath.Join(repo, "go.mod")) })
	if err != nil {
		return nil, err
	}
	return []string{rootPath + " " + version + " " + sum, rootPath + " " + version + "/go.mod " + modSum}, nil
}

// pin makes the module in a directory require the root at the version.
func pin(dir, version string, sums []string) error {
	file, err := readModFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(file.Replace) {
		if r.Old.Path != rootPath {
			return fmt.Errorf("go.mod replaces %s: a published module may not", r.Old.Path)
		}
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	if err := file.AddRequire(rootPath, version); err != nil {
		return err
	}
	file.Cleanup()
	b, err := file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), b, 0o644); err != nil {
		return err
	}
	b, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	// In the order of the go command, which compares line by line.
	lines := append(strings.Split(strings.TrimSpace(string(b)), "\n"), sums...)
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
	})
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func readModFile(name string) (*modfile.File, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, b, nil)
}

// git runs a command of git and returns its output without the last newline.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
