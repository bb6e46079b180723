package powercut_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
)

// roleVariable names what a child process does: the test binary runs itself.
const roleVariable = "LABHEALTH_POWERCUT_ROLE"

var roles = map[string]func() error{"sqlite": playSQLite, "bulk": playBulk}

func TestMain(m *testing.M) {
	play := roles[os.Getenv(roleVariable)]
	if play == nil {
		os.Exit(m.Run())
	}
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var long = os.Getenv("LABHEALTH_TEST_LONG") != ""

// cutsOf returns how often a test cuts the power: by default, and in the long form.
func cutsOf(t *testing.T, byDefault, inLong int) int {
	t.Helper()
	if long {
		byDefault = inLong
	}
	if text := os.Getenv("LABHEALTH_CUTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("LABHEALTH_CUTS is %q", text)
		}
		return n
	}
	return byDefault
}

// firstSeed returns the seed of the first run. Those that follow have the next ones.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LABHEALTH_CUT_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano()) % 1e9 / 1e3 * 1e3
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("LABHEALTH_CUT_SEED is %q", text)
	}
	return seed
}

// mount mounts a disk in a new directory, or skips the test.
func mount(t *testing.T, d *cutfs.Disk) (dir string) {
	t.Helper()
	dir = t.TempDir()
	unmount, err := d.Mount(dir)
	if err != nil {
		t.Skip("no power is cut:", err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// process is a child process.
type process struct {
	disk   *cutfs.Disk
	cmd    *exec.Cmd
	lines  chan string // of its output; closed when it ends
	stderr bytes.Buffer
}

// start starts the test binary in a role. The process ends with this one.
func start(d *cutfs.Disk, role string, env ...string) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	// With its own mounts, it can have its own idea of the boot of the system.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
	return startCommand(d, cmd)
}

// startCommand starts a process that uses the disk.
func startCommand(d *cutfs.Disk, cmd *exec.Cmd) (*process, error) {
	p := &process{disk: d, cmd: cmd, lines: make(chan string, 16)}
	cmd.Stderr = &p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	return p, nil
}

var errStopped = errors.New("the process was stopped before it was ready")

// ready returns the first line of a process, unless a channel is closed before.
func (p *process) ready(gone, held <-chan struct{}) (string, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", fmt.Errorf("the process has ended: %v: %s", p.cmd.Wait(), &p.stderr)
		}
		return line, nil
	case <-gone:
	case <-held:
	}
	return "", errStopped
}

// kill kills the process with all that it has in flight, and returns when it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.disk.Release() // a process whose operation is held cannot end
	for range p.lines {
	}
	p.cmd.Wait()
}

// replay returns the command that repeats the run of a seed, in a subtest of a row.
func replay(t *testing.T, seed uint64, cuts int) string {
	row := strings.ReplaceAll(path.Dir(t.Name()), "/", "$/^")
	return fmt.Sprintf("LABHEALTH_CUT_SEED=%d LABHEALTH_CUTS=%d go test -C integration -count=20 -failfast -run '^%s$' ./powercut", seed, cuts, row)
}
