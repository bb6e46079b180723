package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// patience is how long after its deadline a command may still take to write its line.
const patience = 30 * time.Second

// errLine reports that a command did not write the line that it must write.
var errLine = errors.New("no valid line")

// command returns a client that starts a command for each call.
func command(line []string) func(context.Context, call) (report, error) {
	return func(ctx context.Context, c call) (report, error) {
		p, err := start(line)
		if err != nil {
			return report{}, err
		}
		defer p.stop()
		if err := p.write(c); err != nil {
			return report{}, err
		}
		_ = p.input.Close() // a command that needs more input does not write its line
		return p.read(c)
	}
}

// commands returns a client that starts a command at most as often as calls run at the same time,
// and writes one line for each call.
func commands(line []string, parallel int) (do func(context.Context, call) (report, error), stop func()) {
	idle := make(chan *process, parallel)
	do = func(ctx context.Context, c call) (report, error) {
		var p *process
		select {
		case p = <-idle:
		default:
			var err error
			if p, err = start(line); err != nil {
				return report{}, err
			}
		}
		err := p.write(c)
		var r report
		if err == nil {
			r, err = p.read(c)
		}
		if err != nil {
			p.stop()
			return report{}, err
		}
		idle <- p
		return r, nil
	}
	return do, func() {
		for len(idle) > 0 {
			(<-idle).stop()
		}
	}
}

// process is a running command.
type process struct {
	name   string
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

func start(line []string) (*process, error) {
	p := &process{name: line[0], cmd: exec.Command(line[0], line[1:]...)} //nolint:noctx // stop ends it
	p.cmd.Stderr = os.Stderr
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.input, p.output = input, bufio.NewReader(output)
	return p, p.cmd.Start()
}

// write writes a call as one line of JSON.
func (p *process) write(c call) error {
	encoded, err := json.Marshal(c)
	if err == nil {
		_, err = p.input.Write(append(encoded, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%w: %s did not read its input: %w", errLine, p.name, err)
	}
	return nil
}

// read reads the line about a call. A command that does not write it is killed.
func (p *process) read(c call) (report, error) {
	limit := time.AfterFunc(milliseconds(c.DeadlineMS)+patience, func() {
		_ = p.cmd.Process.Kill() // it may have ended
	})
	defer limit.Stop()
	line, err := p.output.ReadBytes('\n')
	if err != nil && (!errors.Is(err, io.EOF) || len(bytes.TrimSpace(line)) == 0) {
		return report{}, fmt.Errorf("%w: %s wrote none: %w", errLine, p.name, err)
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return report{}, fmt.Errorf("%w: %s wrote %q: %w", errLine, p.name, line, err)
	}
	return r, nil
}

// stop ends a command that has nothing more to do.
func (p *process) stop() {
	_ = p.input.Close() // it may be closed
	limit := time.AfterFunc(patience, func() {
		_ = p.cmd.Process.Kill() // it may have ended
	})
	defer limit.Stop()
	_ = p.cmd.Wait() // its line counts, not its status
}
