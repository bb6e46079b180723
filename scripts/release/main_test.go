package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A user can install the command at a tag, through a module proxy, and a program that is built at
// the tag has the checksums that it needs. The proxy is made of the tags.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped in short mode: it builds the command")
	}
	repo, version := clone(t)
	before := read(t, repo, "cmd/labhealth/go.mod")
	var out strings.Builder
	if err := release(repo, version, &out); err != nil {
		t.Fatal(err)
	}
	all := []string{version, "cmd/labhealth/" + version, "labhealthotel/" + version, "labhealthprom/" + version}
	if want := "tagged " + strings.Join(all, ", ") + "\npush   git push --atomic origin main " + strings.Join(all, " ") + "\n"; out.String() != want {
		t.Errorf("printed %q, not %q", out.String(), want)
	}
	// Main is as before.
	if after := read(t, repo, "cmd/labhealth/go.mod"); after != before || !strings.Contains(after, "replace ") {
		t.Errorf("go.mod on main is %s", after)
	}
	if changed := mustGit(t, repo, "diff", "--stat", "HEAD~2", "HEAD"); changed != "" {
		t.Errorf("main has changed: %s", changed)
	}
	if commits := mustGit(t, repo, "rev-list", "--count", "HEAD"); commits != "3" {
		t.Errorf("%s commits", commits)
	}
	for _, tag := range all {
		if of := mustGit(t, repo, "rev-parse", tag+"^{commit}"); of != mustGit(t, repo, "rev-parse", "HEAD~1") {
			t.Errorf("%s is at %s", tag, of)
		}
	}
	for _, dir := range published {
		if file := mustGit(t, repo, "show", version+":"+dir+"/go.mod"); strings.Contains(file, "replace") || !strings.Contains(file, rootPath+" "+version+"\n") {
			t.Errorf("%s/go.mod is %s", dir, file)
		}
	}
	env := proxy(t, repo, version)
	checkModules(t, repo, version, env)
	install(t, version, env)
}

// What is not released is said, and nothing has changed.
func TestReleaseRefuses(t *testing.T) {
	repo, version := clone(t)
	start := mustGit(t, repo, "rev-parse", "HEAD")
	refused := func(version, want string) {
		t.Helper()
		if err := release(repo, version, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", version, err, want)
		}
		if at := mustGit(t, repo, "rev-parse", "HEAD"); at != start || mustGit(t, repo, "tag") != "" {
			t.Errorf("%s: something has changed", version)
		}
	}
	refused("1.2.3", `"1.2.3" is not a version such as v0.2.0`)
	refused("v1.2", `"v1.2" is not a version such as v0.2.0`)
	refused("v77.0.0", `Version in client.go is not "77.0.0"`)
	write(t, repo, "new.txt", "x")
	refused(version, "there are changes that are not committed")
	os.Remove(filepath.Join(repo, "new.txt"))
	mustGit(t, repo, "mv", "labhealthprom/go.sum", "labhealthprom/old.sum") // the last module fails
	mustGit(t, repo, "commit", "--quiet", "--message", "Break")
	start = mustGit(t, repo, "rev-parse", "HEAD")
	refused(version, "labhealthprom: open ")
	if status := mustGit(t, repo, "status", "--porcelain"); status != "" {
		t.Errorf("left %s", status)
	}
}

// clone returns a repository with one commit: the files of this one, committed or not, with a
// heading for the version in CHANGELOG.md.
func clone(t *testing.T) (repo, version string) {
	t.Helper()
	top := mustGit(t, ".", "rev-parse", "--show-toplevel")
	repo = t.TempDir()
	for name := range strings.SplitSeq(mustGit(t, top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"), "\x00") {
		if b, err := os.ReadFile(filepath.Join(top, name)); err == nil && name != "" {
			write(t, repo, name, string(b))
		}
	}
	version = "v" + regexp.MustCompile(`const Version = "(.*)"`).FindStringSubmatch(read(t, repo, "client.go"))[1]
	write(t, repo, "CHANGELOG.md", strings.Replace(read(t, repo, "CHANGELOG.md"), "## Unreleased", "## ["+version[1:]+"] - 2026-01-31", 1))
	mustGit(t, repo, "init", "--quiet", "--initial-branch", "main")
	for _, setting := range [][2]string{{"user.name", "Release"}, {"user.email", "release@example.com"}, {"commit.gpgsign", "false"}, {"tag.gpgsign", "false"}, {"core.hooksPath", "/nonexistent"}} {
		mustGit(t, repo, "config", setting[0], setting[1])
	}
	mustGit(t, repo, "add", "--all")
	mustGit(t, repo, "commit", "--quiet", "--message", "All")
	return repo, version
}

// proxy makes a module proxy of the tags and returns the environment that uses it, for modules of
// this repository only.
func proxy(t *testing.T, repo, version string) []string {
	t.Helper()
	dir, cache := t.TempDir(), moduleCache(t)
	for i, tag := range tags(version) {
		sub := strings.TrimSuffix(strings.TrimSuffix(tag, version), "/")
		path := strings.TrimSuffix(rootPath+"/"+sub, "/")
		at := filepath.Join(dir, filepath.FromSlash(path), "@v")
		var archive bytes.Buffer
		if err := zip.CreateFromVCS(&archive, module.Version{Path: path, Version: version}, repo, tag, sub); err != nil {
			t.Fatal(err)
		}
		info, _ := json.Marshal(map[string]any{"Version": version, "Time": time.Date(2026, 1, 31, 0, 0, i, 0, time.UTC)})
		write(t, at, version+".zip", archive.String())
		write(t, at, version+".info", string(info))
		write(t, at, version+".mod", mustGit(t, repo, "show", tag+":"+pathOf(sub, "go.mod"))+"\n")
		write(t, at, "list", version+"\n")
	}
	// With -trimpath, what was built from the other directory of a module need not be built again.
	scratch := t.TempDir()
	return append(os.Environ(), "GOPROXY=file://"+dir+","+goEnv(t, "GOPROXY"), "GOMODCACHE="+cache, "GONOSUMDB="+rootPath+","+rootPath+"/*", "GOWORK=off",
		"GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0", "GOBIN="+filepath.Join(scratch, "bin"), "XDG_STATE_HOME="+scratch)
}

// moduleCache returns a module cache that shares the modules of others with the cache of the user,
// by symbolic links, and has its own modules of this repository.
func moduleCache(t *testing.T) string {
	t.Helper()
	cache, users := t.TempDir(), goEnv(t, "GOMODCACHE")
	own := filepath.Dir(filepath.FromSlash(rootPath)) // github.com/labhealth
	for _, dir := range []string{".", filepath.Dir(own), "cache", "cache/download", filepath.Join("cache/download", filepath.Dir(own))} {
		if err := os.MkdirAll(filepath.Join(users, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(filepath.Join(users, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := filepath.Join(dir, entry.Name())
			if slices.Contains([]string{"github.com", "cache", "cache/lock", "cache/download", "cache/download/github.com"}, filepath.ToSlash(name)) || filepath.Base(name) == filepath.Base(own) {
				continue
			}
			if err := os.Symlink(filepath.Join(users, name), filepath.Join(cache, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cache
}

// pathOf joins the parts of a path that are not empty.
func pathOf(dir, name string) string { return strings.TrimPrefix(dir+"/"+name, "/") }

// checkModules checks that go.mod and go.sum of the tag are complete and right.
func checkModules(t *testing.T, repo, version string, env []string) {
	t.Helper()
	mustGit(t, repo, "checkout", "--quiet", version)
	for _, dir := range published {
		at := filepath.Join(repo, dir)
		command(t, at, env, "go", "mod", "tidy", "-diff")
		if replaced := command(t, at, env, "go", "list", "-m", "-f", "{{with .Replace}}{{.}}{{end}}", "all"); strings.TrimSpace(replaced) != "" {
			t.Errorf("%s replaces %s", dir, replaced)
		}
	}
}

// install installs the command as a user does, and runs it.
func install(t *testing.T, version string, env []string) {
	t.Helper()
	command(t, t.TempDir(), env, "go", "install", rootPath+"/cmd/labhealth@"+version)
	var bin string
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "GOBIN="); ok {
			bin = filepath.Join(dir, "labhealth")
		}
	}
	if text := command(t, t.TempDir(), env, bin, "version"); !strings.Contains(text, strings.TrimPrefix(version, "v")) {
		t.Errorf("labhealth version prints %q", text)
	}
	if runtime.GOOS == "linux" {
		checkStatic(t, bin)
	}
	cmd := exec.Command(bin, "sandbox", "--addr", "127.0.0.1:0", "--json")
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed struct{ URL, Console string }
	if err := json.NewDecoder(out).Decode(&printed); err != nil || !strings.HasPrefix(printed.Console, printed.URL+"/console/?token=") {
		t.Errorf("labhealth sandbox printed %+v: %v", printed, err)
	}
	cmd.Process.Signal(os.Interrupt)
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("labhealth sandbox: %v: %s", err, errs.Bytes())
	}
}

// checkStatic checks that a program needs no library of the system.
func checkStatic(t *testing.T, name string) {
	t.Helper()
	file, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("%s needs %q", name, libraries)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Errorf("%s needs a loader", name)
		}
	}
	if info, err := os.Stat(name); err == nil {
		t.Logf("%d bytes", info.Size())
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(command(t, ".", os.Environ(), "go", "env", name))
}

func command(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(env, "PWD="+dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
}
