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
	diffHead     = 8       // equal lines shown at the start
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
	text := strings.Join(old.keys, "\n") + "\n"
	edits := udiff.Lines(text, strings.Join(now.keys, "\n")+"\n")
	all, err := udiff.ToUnifiedDiff("", "", text, edits, len(old.keys))
	if err != nil {
		return jsonView{Note: "The bodies cannot be compared: " + err.Error()}
	}
	view := jsonView{Hidden: old.hidden || now.hidden, Same: len(all.Hunks) == 0}
	if view.Same {
		view.equal(now.lines, true, true)
	}
	for _, hunk := range all.Hunks {
		view.compare(old, now, hunk.Lines)
	}
	if view.More > 0 {
		view.fold(number(view.More) + " more lines differ")
	}
	view.More = 0
	return view
}

// diffBody is one of the bodies: the lines that are shown, and their complete text.
type diffBody struct {
	lines  []jsonLine
	keys   []string
	hidden bool
}

func newDiffBody(body []byte, o jsonOptions) (diffBody, bool) {
	o.MaxLines, o.Compact = maxDiffLines, true
	shown := viewJSON(body, o)
	o.Reveal = true
	full := viewJSON(body, o)
	if shown.Text || shown.More > 0 {
		return diffBody{}, false
	}
	b := diffBody{lines: shown.Lines, hidden: shown.Hidden}
	for _, line := range full.Lines {
		var text strings.Builder
		for _, t := range line.Tokens {
			text.WriteString(t.Text)
		}
		b.keys = append(b.keys, strings.TrimSuffix(text.String(), ",")) // whether another element follows is no difference
	}
	return b, true
}

// compare adds the lines of two bodies: what differs, with some equal lines around it.
func (v *jsonView) compare(old, now diffBody, ops []udiff.Line) {
	x, y := 0, 0
	for i := 0; i < len(ops); {
		length := func(kind udiff.OpKind) (n int) {
			for i+n < len(ops) && ops[i+n].Kind == kind {
				n++
			}
			i += n
			return n
		}
		first := i == 0
		if same := length(udiff.Equal); same > 0 {
			v.equal(now.lines[y:y+same], first, i == len(ops))
			x, y = x+same, y+same
			continue
		}
		del, ins := length(udiff.Delete), length(udiff.Insert)
		for n := range max(del, ins) { // versions of each other follow each other
			if n < del && n < ins {
				markDifferences(&old.lines[x+n], &now.lines[y+n], old.keys[x+n] != now.keys[y+n])
			}
			if n < del {
				v.show("del", old.lines[x+n])
			}
			if n < ins {
				v.show("ins", now.lines[y+n])
			}
		}
		x, y = x+del, y+ins
	}
}

// equal shows the equal lines beside changes, and those at the start and the end of the body.
func (v *jsonView) equal(lines []jsonLine, first, last bool) {
	head, tail := diffContext, diffContext
	if first {
		head = diffHead
	}
	if last {
		tail = diffContext + 1
	}
	if head+tail+1 >= len(lines) {
		head, tail = len(lines), 0
	}
	for i, line := range lines {
		switch {
		case i < head || i >= len(lines)-tail:
			v.show("", line)
		case i == head && len(v.Lines) < maxDiffShown:
			v.fold(number(len(lines)-head-tail) + " lines are the same")
		}
	}
}

func (v *jsonView) fold(text string) {
	v.Lines = append(v.Lines, jsonLine{Op: "fold", Tokens: []jsonToken{{Text: text}}})
}

func (v *jsonView) show(op string, line jsonLine) {
	switch {
	case len(v.Lines) < maxDiffShown:
		line.Op, line.Kept = op, false
		v.Lines = append(v.Lines, line)
	case op != "":
		v.More++
	}
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
