// The strict reader of rows and cells.

package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// rowReader reads the rows of a CSV file. It is stricter than package csv, because a row that
// starts at the wrong place would be the record of another patient: after an invalid quote it does
// not continue, and it tells where the cell starts. It needs no more memory than maxLine.
type rowReader struct {
	r     *bufio.Reader
	comma byte

	line      int  // of the next byte
	start     int  // line where the row starts
	multiline bool // the row has a line break in a cell

	state     cellState
	cellStart int    // line where the cell starts
	column    int    // of the cell, from 0
	size      int    // of the row
	text      []byte // of all cells of the row
	ends      []int  // of the cells in text
}

const maxCells = 1 << 16 // of a row

// cellState is the place of the next byte.
type cellState uint8

const (
	atStart cellState = iota // of a cell
	unquoted
	quoted
	afterQuote // in a quoted cell: the quote ends the cell, or another quote follows
)

var (
	errOpenQuote = errors.New("the quote at the start of this cell is never closed, so that the rest of the file cannot be read")
	errBareQuote = errors.New("a cell that contains quotes must be quoted as a whole, with its quotes doubled; " +
		"the start of the next row is unknown")
	errAfterQuote = errors.New("the quote at the start of this cell may not be closed: the next quote is followed by other text; " +
		"the start of the next row is unknown")
	errLongQuote = errors.New("this cell and its row are longer than 16 MiB and have line breaks: the quote at its start may not be closed; " +
		"the start of the next row is unknown")
)

// cellError reports a cell after which the start of the next row is unknown.
type cellError struct {
	line   int // where the cell starts
	column int // from 0
	err    error
}

func (e *cellError) Error() string {
	return fmt.Sprintf("line %d, column %d: %v", e.line, e.column+1, e.err)
}

func (r *rowReader) cellError(err error) error { return &cellError{r.cellStart, r.column, err} }

// next returns the next row that is not an empty line, or io.EOF. After errLineTooLong it can be
// called again, and after any other error it cannot.
func (r *rowReader) next() ([]string, error) {
	r.reset()
	for {
		b, err := r.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && r.state == quoted:
			return nil, r.cellError(errOpenQuote)
		case errors.Is(err, io.EOF) && r.size > 0:
			return r.row()
		case err != nil:
			return nil, err
		}
		r.size++
		if b != '\n' {
			if err := r.add(b); err != nil {
				return nil, err
			}
			continue
		}
		r.line++
		switch {
		case r.state == quoted:
			r.multiline = true
			if err := r.add(b); err != nil {
				return nil, err
			}
		case r.size == 1 || r.size == 2 && r.endsInCR(): // an empty line
			r.reset()
		default:
			return r.row()
		}
	}
}

func (r *rowReader) reset() {
	r.text, r.ends, r.size, r.column, r.multiline = r.text[:0], r.ends[:0], 0, 0, false
	r.start, r.cellStart, r.state = r.line, r.line, atStart
}

// add adds a byte that does not end the row.
func (r *rowReader) add(b byte) error {
	switch r.state {
	case quoted:
		if b == '"' {
			r.state = afterQuote
			return nil
		}
		if b == '\n' && r.endsInCR() { // as package csv
			r.text = r.text[:len(r.text)-1]
		}
		return r.store(b)
	case afterQuote:
		return r.addAfterQuote(b)
	case atStart, unquoted:
	}
	switch {
	case b == r.comma:
		r.endCell()
		return nil
	case b == '"' && r.state == atStart:
		r.state = quoted
		return nil
	case b == '"' && !r.isFormula():
		return r.cellError(errBareQuote)
	}
	r.state = unquoted
	return r.store(b)
}

func (r *rowReader) addAfterQuote(b byte) error {
	switch b {
	case '"':
		r.state = quoted
		return r.store(b)
	case r.comma:
		r.endCell()
		return nil
	case '\r':
		if next, _ := r.r.Peek(1); len(next) == 0 || next[0] == '\n' {
			return nil
		}
	}
	return r.cellError(errAfterQuote)
}

// store adds a byte to the text of the cell.
func (r *rowReader) store(b byte) error {
	switch {
	case r.size <= maxLine:
		r.text = append(r.text, b)
	case r.multiline:
		return r.cellError(errLongQuote)
	}
	return nil
}

// isFormula reports whether the cell, at a quote, is text like ="02139". Its quotes need not be
// doubled, because they do not quote a separator or a line break: it ends at the next one.
func (r *rowReader) isFormula() bool {
	cell := bytes.TrimLeft(r.cell(), " ")
	return string(cell) == "=" || bytes.HasPrefix(cell, []byte(`="`))
}

// cell returns the text of the current cell.
func (r *rowReader) cell() []byte {
	if len(r.ends) == 0 {
		return r.text
	}
	return r.text[r.ends[len(r.ends)-1]:]
}

// endsInCR reports whether the cell ends in a carriage return.
func (r *rowReader) endsInCR() bool { return bytes.HasSuffix(r.cell(), []byte("\r")) }

func (r *rowReader) endCell() {
	if r.size <= maxLine && r.column < maxCells {
		r.ends = append(r.ends, len(r.text))
	}
	r.column++
	r.state, r.cellStart = atStart, r.line
}

// row returns the cells of the row that has ended.
func (r *rowReader) row() ([]string, error) {
	if r.size > maxLine || r.column >= maxCells {
		r.text = nil
		return nil, errLineTooLong
	}
	r.endCell()
	text, from := string(r.text), 0
	cells := make([]string, len(r.ends))
	for i, end := range r.ends {
		cells[i], from = text[from:end], end
	}
	return cells, nil
}
