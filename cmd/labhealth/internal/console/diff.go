package console

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Limits of the differences of two bodies.
const (
	maxDiffBody  = 4 << 20 // bytes of either body
	maxDiffLines = 120_000 // lines of either body that are compared
	diffContext  = 3       // equal lines shown before and after a change
	diffHead     = 200     // lines shown of a body that does not differ
	maxDiffShown = 600     // lines shown
)

// viewDiff compares two bodies, line by line of the indented JSON. Hidden values are compared, but
// not shown.
func viewDiff(before, after []byte, hideBefore, hideAfter jsonOptions) jsonView {
	if len(before) > maxDiffBody || len(after) > maxDiffBody {
		return jsonView{Note: "The bodies are larger than 4 MiB each: they are not compared."}
	}
	old, ok := newDiffBody(before, hideBefore)
	now, ok2 := newDiffBody(after, hideAfter)
	if !ok || !ok2 {
		return jsonView{Note: "One of the two bodies is not JSON, or has more than 120,000 lines: they are not compared."}
	}
	edits := udiff.Lines(old.text, now.text)
	all, err := udiff.ToUnifiedDiff("", "", old.text, edits, diffContext)
	if err != nil {
		return jsonView{Note: "The bodies cannot be compared: " + err.Error()}
	}
	view := jsonView{Hidden: old.hidden || now.hidden, Same: len(all.Hunks) == 0}
	if view.Same {
		view.Lines = now.lines[:min(len(now.lines), diffHead)]
	}
	y := len(view.Lines) // lines of now that are shown
	for _, hunk := range all.Hunks {
		view.fold(hunk.ToLine - 1 - y)
		y = hunk.ToLine - 1
		view.compare(old.lines[hunk.FromLine-1:], now.lines[y:], hunk.Lines)
		for _, line := range hunk.Lines {
			if line.Kind != udiff.Delete {
				y++
			}
		}
	}
	view.fold(len(now.lines) - y)
	if len(view.Lines) > maxDiffShown {
		view.More, view.Lines = len(view.Lines)-maxDiffShown, view.Lines[:maxDiffShown]
	}
	return view
}

// diffBody is one of the bodies: the lines that are shown, and their complete text.
type diffBody struct {
	lines  []jsonLine
	text   string
	hidden bool
}

func newDiffBody(body []byte, o jsonOptions) (diffBody, bool) {
	o.MaxLines = maxDiffLines
	shown := viewJSON(body, o)
	o.Reveal = true
	full := viewJSON(body, o)
	if shown.Text || shown.More > 0 {
		return diffBody{}, false
	}
	var text strings.Builder
	for i, line := range full.Lines {
		shown.Lines[i].Kept = ""
		last := len(line.Tokens) - 1
		for n, t := range line.Tokens {
			if n == last {
				t.Text = strings.TrimSuffix(t.Text, ",") // whether another element follows is no difference
			}
			text.WriteString(t.Text)
		}
		text.WriteByte('\n')
	}
	return diffBody{shown.Lines, text.String(), shown.Hidden}, true
}

// compare adds the lines of a hunk. Versions of each other follow each other.
func (v *jsonView) compare(old, now []jsonLine, lines []udiff.Line) {
	for len(lines) > 0 {
		if lines[0].Kind == udiff.Equal {
			v.show("", now[0])
			old, now, lines = old[1:], now[1:], lines[1:]
			continue
		}
		del := slices.IndexFunc(lines, func(l udiff.Line) bool { return l.Kind != udiff.Delete })
		if del < 0 {
			del = len(lines)
		}
		ins := slices.IndexFunc(lines[del:], func(l udiff.Line) bool { return l.Kind != udiff.Insert })
		if ins < 0 {
			ins = len(lines) - del
		}
		for n := range max(del, ins) {
			if n < del && n < ins {
				markDifferences(&old[n], &now[n], lines[n].Content != lines[del+n].Content)
			}
			if n < del {
				v.show("del", old[n])
			}
			if n < ins {
				v.show("ins", now[n])
			}
		}
		old, now, lines = old[del:], now[ins:], lines[del+ins:]
	}
}

// fold shows how many equal lines are not shown.
func (v *jsonView) fold(n int) {
	if n > 0 {
		v.Lines = append(v.Lines, jsonLine{Op: "fold", Tokens: []jsonToken{{Text: countOf(n, "line") + " the same"}}})
	}
}

func (v *jsonView) show(op string, line jsonLine) {
	line.Op = op
	v.Lines = append(v.Lines, line)
}

// markDifferences marks the tokens that differ in two lines of the same form. Of hidden values that
// differ, it marks the last.
func markDifferences(a, b *jsonLine, differ bool) {
	if len(a.Tokens) != len(b.Tokens) {
		return
	}
	last, marked := -1, false
	a.Tokens, b.Tokens = slices.Clone(a.Tokens), slices.Clone(b.Tokens)
	for i := range a.Tokens {
		if a.Tokens[i] != b.Tokens[i] && a.Tokens[i].Class != "p" {
			a.Tokens[i].Mark, b.Tokens[i].Mark, marked = true, true, true
		}
		if a.Tokens[i].Class == "pii-m" {
			last = i
		}
	}
	if last >= 0 && !marked && differ {
		a.Tokens[last].Mark, b.Tokens[last].Mark = true, true
	}
}
