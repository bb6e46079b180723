package console

import (
	"slices"
	"strings"
)

// Limits of the differences of two bodies.
const (
	maxDiffBody  = 4 << 20 // bytes of either body
	maxDiffLines = 120_000 // lines of either body that are compared
	diffContext  = 3       // equal lines shown before and after a change
	maxDiffShown = 600     // lines shown
	maxInline    = 110     // characters of an object that is shown on one line
)

// diffView is the data of the partial "diff".
type diffView struct {
	Lines    []diffLine
	Same     bool   // nothing differs
	More     int    // lines that differ and are not shown
	Hidden   bool   // whether a value is hidden
	TooLarge string // why nothing was compared
}

// diffLine is a line of the differences. Op is del, ins, fold or empty.
type diffLine struct {
	Op     string
	Tokens []diffToken
	Text   string // of a fold
}

// diffToken is a piece of a line. It is marked if it makes the difference to the line that the
// other body has in its place.
type diffToken struct {
	jsonToken
	Mark bool
}

// viewDiff compares two bodies, line by line of the indented JSON. Hidden values are compared, but
// not shown.
func viewDiff(before, after []byte, reveal bool) diffView {
	return viewDiffOf(before, after, jsonOptions{Reveal: reveal}, jsonOptions{Reveal: reveal})
}

// viewDiffOf is viewDiff with what is hidden of each body.
func viewDiffOf(before, after []byte, hideBefore, hideAfter jsonOptions) diffView {
	if len(before) > maxDiffBody || len(after) > maxDiffBody {
		return diffView{TooLarge: "The bodies are larger than 4 MiB each: they are not compared."}
	}
	old, ok := newDiffBody(before, hideBefore)
	now, ok2 := newDiffBody(after, hideAfter)
	if !ok || !ok2 {
		return diffView{TooLarge: "One of the two bodies is not JSON, or has more than 120,000 lines: they are not compared."}
	}
	view := diffView{Hidden: old.hidden || now.hidden}
	view.fold(old, now, diffLines(old.keys, now.keys))
	return view
}

// diffBody is one of the bodies: the lines that are shown, and their complete text.
type diffBody struct {
	lines  []jsonLine
	keys   []string
	hidden bool
}

func newDiffBody(body []byte, o jsonOptions) (diffBody, bool) {
	o.MaxLines = maxDiffLines
	shown := viewJSON(body, o)
	full := shown
	if shown.Hidden {
		o.Reveal = true
		full = viewJSON(body, o)
	}
	if shown.Text || shown.More > 0 || len(shown.Lines) != len(full.Lines) {
		return diffBody{}, false
	}
	s := diffBody{hidden: shown.Hidden}
	var groups []int
	full.Lines, groups = inlineObjects(full.Lines)
	s.lines = joinLines(shown.Lines, groups)
	for _, line := range full.Lines {
		s.keys = append(s.keys, strings.TrimSuffix(lineText(line), ",")) // whether another element follows is no difference
	}
	return s, true
}

func lineText(line jsonLine) string {
	var b strings.Builder
	for _, t := range line.Tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}

// inline puts short objects without others inside on one line each. It returns how many lines each
// line was made of.
func inlineObjects(lines []jsonLine) ([]jsonLine, []int) {
	var groups []int
	for i := 0; i < len(lines); {
		n := inlineLength(lines[i:])
		groups = append(groups, n)
		i += n
	}
	return joinLines(lines, groups), groups
}

// inlineLength returns how many of the first lines make a short object, or 1.
func inlineLength(lines []jsonLine) int {
	if !lineOpens(lines[0]) {
		return 1
	}
	length := 0
	for i, line := range lines {
		for _, t := range line.Tokens {
			length += len(t.Text)
		}
		switch first := lineFirst(line); {
		case length > maxInline || line.Kept || i > 0 && lineOpens(line):
			return 1
		case i > 0 && (first == "}" || first == "]"):
			return i + 1
		}
	}
	return 1
}

func lineOpens(line jsonLine) bool {
	last := len(line.Tokens) - 1
	return last >= 0 && line.Tokens[last].Class == "p" && (line.Tokens[last].Text == "{" || line.Tokens[last].Text == "[")
}

// lineFirst returns the first punctuation of a line, after its indentation.
func lineFirst(line jsonLine) string {
	for _, t := range line.Tokens {
		if t.Class != "" {
			if t.Class == "p" {
				return t.Text
			}
			return ""
		}
	}
	return ""
}

// join makes one line of each group of lines.
func joinLines(lines []jsonLine, groups []int) []jsonLine {
	joined := make([]jsonLine, 0, len(groups))
	for _, n := range groups {
		line := lines[0]
		if n > 1 {
			line = jsonLine{Tokens: slices.Clone(line.Tokens)}
			for i, next := range lines[1:n] {
				if i > 0 && i < n-2 {
					line.Tokens = append(line.Tokens, jsonToken{"p", " "})
				}
				for _, t := range next.Tokens {
					if t.Class != "" {
						line.Tokens = append(line.Tokens, t)
					}
				}
			}
		}
		joined = append(joined, line)
		lines = lines[n:]
	}
	return joined
}

// compact returns the view with short objects on one line each.
func (v jsonView) compact() jsonView {
	if !v.Text {
		v.Lines, _ = inlineObjects(v.Lines)
	}
	return v
}

// diffRun says that n lines are equal, or that del lines were replaced by ins others.
type diffRun struct{ same, del, ins int }

// diffLines compares two lists of lines in O(n log n): lines that are in both exactly once are
// matched, as many as have the same order, and equal lines beside a match are matched too. The
// result is not always the smallest, but it does not depend on lines such as braces, which are
// equal to many others.
func diffLines(old, now []string) []diffRun {
	var runs []diffRun
	add := func(r diffRun) {
		if r != (diffRun{}) {
			runs = append(runs, r)
		}
	}
	x, y := 0, 0 // the lines before these are done
	for _, m := range append(anchors(old, now), [2]int{len(old), len(now)}) {
		if m[0] < x || m[1] < y {
			continue // matched already, beside another
		}
		head := 0
		for x+head < m[0] && y+head < m[1] && old[x+head] == now[y+head] {
			head++
		}
		add(diffRun{same: head})
		x, y = x+head, y+head
		endX, endY := m[0], m[1]
		for endX > x && endY > y && old[endX-1] == now[endY-1] {
			endX, endY = endX-1, endY-1
		}
		add(diffRun{del: endX - x, ins: endY - y})
		add(diffRun{same: m[0] - endX})
		x, y = m[0], m[1]
		if x < len(old) && y < len(now) {
			add(diffRun{same: 1})
			x, y = x+1, y+1
		}
	}
	return mergeRuns(runs)
}

func mergeRuns(runs []diffRun) []diffRun {
	var merged []diffRun
	for _, r := range runs {
		if last := len(merged) - 1; last >= 0 && (merged[last].same > 0) == (r.same > 0) {
			merged[last].same += r.same
			merged[last].del += r.del
			merged[last].ins += r.ins
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// anchors returns the positions of the lines that are in both lists exactly once: the longest
// sequence that has the same order in both.
func anchors(old, now []string) [][2]int {
	type places struct{ old, now, x, y int }
	seen := make(map[string]places, len(old))
	for i, line := range old {
		p := seen[line]
		p.old, p.x = p.old+1, i
		seen[line] = p
	}
	for i, line := range now {
		if p, ok := seen[line]; ok {
			p.now, p.y = p.now+1, i
			seen[line] = p
		}
	}
	var unique [][2]int
	for i, line := range old {
		if p := seen[line]; p.old == 1 && p.now == 1 {
			unique = append(unique, [2]int{i, p.y})
		}
	}
	// ends has the anchor with the smallest position in now that ends a sequence of each length.
	var ends []int
	before := make([]int, len(unique))
	for i, a := range unique {
		n, _ := slices.BinarySearchFunc(ends, a[1], func(end, y int) int { return unique[end][1] - y })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	sequence := make([][2]int, len(ends))
	for i, at := len(ends)-1, ends[len(ends)-1]; i >= 0; i, at = i-1, before[at] {
		sequence[i] = unique[at]
	}
	return sequence
}

// fold makes the lines that are shown: changes, with some equal lines around them.
func (v *diffView) fold(old, now diffBody, runs []diffRun) {
	v.Same = !slices.ContainsFunc(runs, func(r diffRun) bool { return r.same == 0 })
	x, y := 0, 0
	for i, r := range runs {
		if r.same > 0 {
			v.equal(now.lines[y:y+r.same], i > 0, i < len(runs)-1)
			x, y = x+r.same, y+r.same
			continue
		}
		v.changed(old.lines[x:x+r.del], now.lines[y:y+r.ins], old.keys[x:x+r.del], now.keys[y:y+r.ins])
		x, y = x+r.del, y+r.ins
	}
	if v.More > 0 {
		v.Lines = append(v.Lines, diffLine{Op: "fold", Text: number(v.More) + " more lines differ"})
	}
}

// equal shows the equal lines beside changes, and the first lines of the body.
func (v *diffView) equal(lines []jsonLine, after, before bool) {
	head, tail := diffContext, diffContext
	if !after {
		head = 8
	}
	if !before {
		tail = 4
	}
	if head+tail+1 >= len(lines) {
		head, tail = len(lines), 0
	}
	v.show("", lines[:head], nil)
	if folded := len(lines) - head - tail; folded > 0 && len(v.Lines) < maxDiffShown {
		v.Lines = append(v.Lines, diffLine{Op: "fold", Text: number(folded) + " lines are the same"})
	}
	v.show("", lines[len(lines)-tail:], nil)
}

// changed shows lines that differ. Lines that are versions of each other follow each other, with
// the tokens that differ marked.
func (v *diffView) changed(del, ins []jsonLine, delKeys, insKeys []string) {
	i, j := 0, 0
	for i < len(del) && j < len(ins) {
		if p := partner(delKeys[i], insKeys[j:]); p >= 0 {
			v.show("ins", ins[j:j+p], nil)
			j += p
			marks := differing(del[i], ins[j], delKeys[i], insKeys[j])
			v.show("del", del[i:i+1], marks)
			v.show("ins", ins[j:j+1], marks)
			i, j = i+1, j+1
			continue
		}
		v.show("del", del[i:i+1], nil)
		i++
	}
	v.show("del", del[i:], nil)
	v.show("ins", ins[j:], nil)
}

// partner returns the index of the next line that begins as another does, up to the first value
// that differs, or -1.
func partner(key string, lines []string) int {
	for i, line := range lines[:min(len(lines), 4)] {
		n := 0
		for n < len(key) && n < len(line) && key[n] == line[n] {
			n++
		}
		start := strings.TrimLeft(key[:n], " ")
		if len(start) > 3 && 5*n >= 2*min(len(key), len(line)) {
			return i
		}
	}
	return -1
}

// differing returns the indexes of the tokens that differ in two lines, or nil if the lines have
// different forms.
func differing(a, b jsonLine, aKey, bKey string) map[int]bool {
	if len(a.Tokens) != len(b.Tokens) {
		return nil
	}
	marks := map[int]bool{}
	last := -1
	for i := range a.Tokens {
		if a.Tokens[i] != b.Tokens[i] && a.Tokens[i].Class != "p" && b.Tokens[i].Class != "p" {
			marks[i] = true
		}
		if a.Tokens[i].Class == "pii-m" && b.Tokens[i].Class == "pii-m" {
			last = i
		}
	}
	if len(marks) == 0 && last >= 0 && aKey != bKey {
		marks[last] = true // the hidden values differ
	}
	return marks
}

func (v *diffView) show(op string, lines []jsonLine, marks map[int]bool) {
	for _, line := range lines {
		if len(v.Lines) >= maxDiffShown {
			if op != "" {
				v.More++
			}
			continue
		}
		shown := diffLine{Op: op, Tokens: make([]diffToken, len(line.Tokens))}
		for i, t := range line.Tokens {
			shown.Tokens[i] = diffToken{t, marks[i]}
		}
		v.Lines = append(v.Lines, shown)
	}
}
