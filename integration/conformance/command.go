package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// command returns a client that runs a command for each call.
func command(line []string) func(context.Context, call) (answer, error) {
	return func(ctx context.Context, c call) (answer, error) {
		encoded, err := json.Marshal(c)
		if err != nil {
			return answer{}, err
		}
		// The command ends its call at the deadline. A command that does not end is killed.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(c.DeadlineMS)*time.Millisecond+30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(limited, line[0], line[1:]...)
		cmd.Stdin = bytes.NewReader(append(encoded, '\n'))
		cmd.Stderr = os.Stderr
		output, err := cmd.Output()
		if err != nil {
			return answer{}, fmt.Errorf("%s: %w", line[0], err)
		}
		var a answer
		if err := json.Unmarshal(output, &a); err != nil {
			return answer{}, fmt.Errorf("%s wrote %q: %w", line[0], output, err)
		}
		return a, nil
	}
}
