// CSV files as a source, and their options.

package bulk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// CSVOptions configures [CSV]. The zero value uses the defaults.
type CSVOptions struct {
	// Comma separates the cells: ',' if 0. A first line such as "sep=;", which Excel writes, has
	// the same effect.
	Comma rune

	// Rename maps names of columns in the file to names that [CSV] supports: {"Sample":
	// "sample_id"}. The values of a column renamed to "-" are not sent; Row can read them.
	Rename map[string]string

	// Values replaces cells by values of the interface specification, by the name that [CSV]
	// supports: {"patient_details.gender": {"F": "female", "M": "male"}}. Case does not matter in
	// the cells. A cell that it does not have is used as it is.
	Values map[string]map[string]string

	// Compose sets fields of rows that have no cell for them, by the name that [CSV] supports, from
	// a text with names of columns in the file in braces: {"patient_address.receiver_name":
	// "{First} {Last}"}. Spaces that an empty cell leaves are removed.
	Compose map[string]string

	// DateLayouts are the layouts of dates in the file, for [time.Parse]: "01/02/2006", whose
	// leading zeros are optional. If it is empty, dates are formatted as 2006-01-02. Layouts that
	// could read one date as different days are an error, and so are years of two digits. With a
	// layout that has a time of day, a row is invalid unless the time is midnight: a time zone may
	// have moved its date to another day.
	DateLayouts []string

	// Defaults is used for fields whose cell is empty or that have no column, such as the billing
	// type, the collection method, the lab tests, or the country. It must not describe a patient:
	// a sample ID, a user ID, patient details, or an address apart from its country, are an error.
	//
	// The tests of an order belong together: the lab tests and add-ons of Defaults are used if the
	// row has neither. So does a physician, who is used if the row has no cell of a physician.
	Defaults labhealth.ImportOrderBody

	// Row changes or completes the record of a row, after Defaults. It is called for rows without
	// problems, in order, each time that the source is ranged over, and must do the same each time.
	// It may be nil.
	//
	// If it returns a [Problem], a *[RecordError] or a *[labhealth.ValidationError], or several of
	// them as [errors.Join] does, the row is invalid, and Run continues with the next one. The
	// reasons must not contain values of the row.
	// Any other error stops the run, which can be resumed.
	Row func(row Row, body *labhealth.ImportOrderBody) error

	// Users finds or creates the users of rows without user_id, by their column client_user_id. It
	// is used after Row, and only for rows that are valid otherwise, when Run checks the source:
	// before the first order is sent. It may be nil.
	Users *Users
}

// Row is a row of a CSV file. Printed or logged, it shows nothing.
type Row struct {
	labhealth.Redacted `json:"-"`

	Line int // where the row starts in its file, from 1

	header *header
	cells  []string
	state  *rowState
}

// rowState is what a row function has found by reading.
type rowState struct {
	missing  string    // a name for which there is no column
	problems []Problem // of cells that it has read
}

// Get returns the cell of a column as [CSV] reads it, without spaces around it. It can read all
// columns, also those renamed to "-". Case and spaces of the name do not matter. If the cell cannot
// be what was entered, the record is invalid, whatever the row function returns. A run stops with
// an error if its file does not have exactly one column with the name.
func (r Row) Get(name string) string {
	i, ok := r.header.byName[foldName(name)]
	if !ok || i < 0 {
		r.state.missing = cmp.Or(r.state.missing, name)
		return ""
	}
	cell, err := clean(r.cells[i])
	if err != nil {
		r.state.problems = append(r.state.problems, Problem{Reason: err.Error(), Column: r.header.columns[i].header})
	}
	return cell
}

// Has reports whether the file has exactly one column with a name.
func (r Row) Has(name string) bool {
	i, ok := r.header.byName[foldName(name)]
	return ok && i >= 0
}

// CSV returns a source that reads one record from each row of r after the header. The names of the
// columns are the paths of the fields in the interface specification:
//
//	sample_id, billing_type, collection_method, lab_account_id
//	user_id, or client_user_id with CSVOptions.Users
//
//	order_set.
//		lab_test_ids, lab_account_id, add_on.marker_ids, add_on.provider_ids
//
//	patient_details.
//		first_name, last_name, dob, gender, phone_number, email,
//		race, ethnicity, sexual_orientation, gender_identity, household_income, household_size
//
//	patient_details.medical_proxy.
//		first_name, last_name, phone_number, email, household_income, household_size,
//		address.first_line, address.second_line, address.city, address.state, address.zip,
//		address.country, address.access_notes
//
//	patient_address.
//		receiver_name, first_line, second_line, city, state, zip, country, access_notes
//
//	physician.
//		first_name, last_name, npi, email, licensed_states,
//		signature_image.content, signature_image.content_type
//
// Case does not matter in names, and spaces and hyphens equal underscores: "Sample ID" is
// sample_id. [CSVColumns] returns all names. Any other column is an [*UnknownColumnsError], unless
// [CSVOptions.Rename] has it: its values would not be sent. If columns are missing without which
// every record is invalid, and there is no [CSVOptions.Row], [Run] stops with an error that names
// them.
//
// A cell has the value of the field in the interface specification, such as "female", "client_bill"
// or "walk_in_test"; [CSVOptions.Values] can replace others, such as "F". An empty cell omits the
// field, unless [CSVOptions.Compose] or [CSVOptions.Defaults] has it. Cells with several IDs or
// codes separate them by semicolons. Spaces around a cell are ignored, and so are rows and columns
// that are empty. The marks with which spreadsheets keep digits as text, ="02139" and an apostrophe
// before them, are removed, and a no-break space is read as a space. A row is invalid if it has
// more or fewer cells than the header, or a cell that cannot be what was entered: a formula, a
// number in scientific notation, a US ZIP code without its leading zero, an error value of a
// spreadsheet, text that is not UTF-8, or a line break in a field other than access_notes. Problems
// have the name of the column.
//
// Rows follow RFC 4180: cells with commas, quotes or line breaks are quoted. A quote that is not
// closed, or is inside a cell that is not quoted, other than ="02139", leaves open where the next
// row starts. It stops the run with an error that has the line and the column of the cell, before
// anything is sent. A row longer than 16 MiB without line breaks is an invalid record.
//
// Each iteration starts at the start of r, so iterations must not overlap.
func CSV(r io.ReadSeeker, opts CSVOptions) Source {
	return func(yield func(Record, error) bool) {
		rows, err := newCSVReader(r, opts)
		if err != nil {
			yield(Record{}, err)
			return
		}
		window := newUserWindow(opts.Users, yield)
		defer window.wait()
		for {
			item := rows.next()
			if errors.Is(item.err, io.EOF) {
				window.flush()
				return
			}
			if !window.add(item) {
				return
			}
			if !item.canContinue() {
				window.flush()
				return
			}
		}
	}
}

// csvReader reads records from a CSV file.
type csvReader struct {
	opts     CSVOptions
	dates    dateLayouts
	values   map[string]map[string]string // by field and folded cell
	composed []composed
	header   *header
	rows     rowReader
}

// newCSVReader reads the header.
func newCSVReader(r io.ReadSeeker, opts CSVOptions) (*csvReader, error) {
	dates, err := newDateLayouts(opts.DateLayouts)
	if err := cmp.Or(err, checkDefaults(opts.Defaults)); err != nil {
		return nil, err
	}
	if opts.Comma < 0 || opts.Comma > 0x7e || opts.Comma == '"' || opts.Comma != 0 && opts.Comma < ' ' && opts.Comma != '\t' {
		return nil, errors.New("bulk: CSVOptions.Comma must be an ASCII character other than a quote or a line break")
	}
	buffered, err := rewind(r)
	if err != nil {
		return nil, err
	}
	values, err := foldValues(opts.Values)
	if err != nil {
		return nil, err
	}
	c := &csvReader{opts: opts, dates: dates, values: values, rows: rowReader{r: buffered, comma: cmp.Or(byte(opts.Comma), ','), line: 1}}
	if err := c.readSeparator(); err != nil {
		return nil, err
	}
	return c, c.readHeader()
}

// readSeparator reads a first line such as "sep=;", which Excel writes.
func (c *csvReader) readSeparator() error {
	start, _ := c.rows.r.Peek(6)
	if len(start) < 6 || !strings.EqualFold(string(start[:4]), "sep=") || !strings.ContainsRune("\r\n", rune(start[5])) {
		return nil
	}
	if c.opts.Comma != 0 && byte(c.opts.Comma) != start[4] {
		return fmt.Errorf("bulk: the first line of the CSV file is %q, and CSVOptions.Comma is %q", start[:5], c.opts.Comma)
	}
	c.rows.comma = start[4]
	c.rows.line++
	if _, err := c.rows.r.ReadSlice('\n'); err != nil {
		return fmt.Errorf("bulk: the CSV header cannot be read: %w", err)
	}
	return nil
}

func (c *csvReader) readHeader() error {
	cells, err := c.rows.next()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("bulk: the CSV file is empty")
	case err != nil:
		return fmt.Errorf("bulk: the CSV header cannot be read: %w", err)
	}
	if strings.ContainsRune(strings.TrimSpace(strings.Join(cells, "")), '\r') {
		return errors.New("bulk: the CSV file has line breaks that are carriage returns: save it with line feeds")
	}
	c.header, err = newHeader(cells, c.opts.Rename)
	if err != nil {
		return cmp.Or(otherComma(cells, c.rows.comma, c.opts.Rename), err)
	}
	c.header.createsUsers = c.opts.Users.creates()
	if c.header.byPath[userColumn] != "" && c.opts.Users == nil {
		return errors.New("bulk: the column client_user_id needs CSVOptions.Users; if CSVOptions.Row reads it, rename it to \"-\"")
	}
	if c.composed, err = newComposed(c.opts.Compose, c.header); err != nil {
		return err
	}
	c.header.missing = c.missingColumns()
	return nil
}

// otherComma returns an error if the header would be known with another separator.
func otherComma(cells []string, comma byte, rename map[string]string) error {
	line := strings.Join(cells, string(comma))
	for _, other := range []struct{ comma, name string }{{";", "semicolons"}, {"\t", "tabs"}, {",", "commas"}, {"|", "vertical bars"}} {
		if other.comma == string(comma) {
			continue
		}
		names := strings.Split(line, other.comma)
		if h, _ := newHeader(names, rename); len(names) > 1 && h != nil {
			return fmt.Errorf("bulk: the cells of the CSV file are separated by %s: set CSVOptions.Comma to %q", other.name, other.comma[0])
		}
	}
	return nil
}

// csvItem is what a source yields for a row.
type csvItem struct {
	record       Record
	err          error
	clientUserID string        // of the user whose ID the record needs; empty if it has one
	done         chan struct{} // closed when the user is found; nil if it need not be waited for
}

// canContinue reports whether another row may follow.
func (i *csvItem) canContinue() bool {
	var recordErr *RecordError
	return i.err == nil || errors.As(i.err, &recordErr)
}

// next reads the next row that is not empty.
func (c *csvReader) next() (item csvItem) {
	for {
		cells, err := c.rows.next()
		if err != nil {
			item.err = c.rowError(err)
			return item
		}
		if strings.TrimSpace(strings.Join(cells, "")) == "" {
			continue
		}
		item.record = Record{Line: c.rows.start, header: c.header}
		item.clientUserID, err = c.read(cells, &item.record.Body)
		if err != nil {
			item.err = recordError(err, &item.record)
		}
		return item
	}
}

// rowError returns the error for a row whose cells cannot be read.
func (c *csvReader) rowError(err error) error {
	var cell *cellError
	switch {
	case errors.Is(err, io.EOF):
		return err
	case errors.Is(err, errLineTooLong):
		return &RecordError{Line: c.rows.start, Problems: []Problem{{Reason: "is longer than 16 MiB, or has more than 65,535 cells"}}}
	case errors.As(err, &cell) && cell.column < len(c.header.columns):
		return fmt.Errorf("bulk: line %d, column %q of the CSV file: %w", cell.line, c.header.columns[cell.column].header, cell.err)
	}
	return fmt.Errorf("bulk: the CSV file cannot be read: %w", err)
}

// recordError returns the error for a row that is not a valid record, or the one that stops the
// run.
func recordError(err error, record *Record) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joinedError(joined.Unwrap(), record)
	}
	var problem Problem
	var pointer *Problem
	var recordErr *RecordError
	var invalid *labhealth.ValidationError
	e := RecordError{Line: record.Line, SampleID: record.Body.SampleID, header: record.header}
	switch {
	case errors.As(err, &problem):
		e.Problems = []Problem{problem}
	case errors.As(err, &pointer) && pointer != nil:
		e.Problems = []Problem{*pointer}
	case errors.As(err, &recordErr):
		e.SampleID = cmp.Or(e.SampleID, recordErr.SampleID)
		e.Problems = append(e.Problems, recordErr.Problems...)
	case errors.As(err, &invalid):
		e.Problems = problemsOf(err)
	default:
		return fmt.Errorf("bulk: line %d: %w", record.Line, err)
	}
	record.header.name(e.Problems)
	return &e
}

// joinedError is recordError for several errors.
func joinedError(list []error, record *Record) error {
	all := RecordError{Line: record.Line, SampleID: record.Body.SampleID, header: record.header}
	for _, err := range list {
		if err == nil {
			continue
		}
		err = recordError(err, record)
		var recordErr *RecordError
		if !errors.As(err, &recordErr) {
			return err
		}
		all.SampleID = cmp.Or(all.SampleID, recordErr.SampleID)
		all.Problems = append(all.Problems, recordErr.Problems...)
	}
	return &all
}

// read sets the fields of body from the cells of a row, and returns the client user ID if the user
// has to be found.
func (c *csvReader) read(cells []string, body *labhealth.ImportOrderBody) (clientUserID string, _ error) {
	if err := c.checkCells(cells); err != nil {
		return "", err
	}
	var problems []Problem
	for i, column := range c.header.columns {
		if err := c.swallowed(i, cells[i]); err != nil {
			return "", err
		}
		cell, err := clean(cells[i])
		switch {
		case cell == "":
		case column.header == "":
			err = errors.New("has a value in column " + columnNumber(i) + ", which has no name")
		case column.path == "": // CSVOptions.Row may read it
			err = nil
		case err != nil:
		case column.path == userColumn:
			clientUserID, err = cell, hidden(cell)
		default:
			err = c.set(body, column, cell)
		}
		if err != nil {
			problems = append(problems, Problem{Path: column.problemPath(), Reason: err.Error(), Column: column.header})
		}
	}
	problems = c.compose(problems, cells, body)
	setDefaults(body, c.opts.Defaults)
	if len(problems) > 0 {
		return "", &RecordError{Problems: appendLostZeros(problems, body)}
	}
	return c.complete(cells, body, clientUserID)
}

// problemPath returns the path of problems of the column.
func (c column) problemPath() string {
	switch c.path {
	case "":
		return ""
	case userColumn:
		return "body.user_id"
	}
	return "body." + c.path
}

// checkCells checks the number of cells. Additional cells are not ignored even if they are empty: a
// comma that is not quoted may have shifted the others.
func (c *csvReader) checkCells(cells []string) error {
	n := len(c.header.columns)
	if len(cells) == n {
		return nil
	}
	if c.rows.multiline {
		return fmt.Errorf("a row of %d lines does not have as many cells as the header, so that a quote in it may not be closed", c.rows.line-c.rows.start)
	}
	return Problem{Reason: fmt.Sprintf("has %d cells, and the header has %d", len(cells), n)}
}

// swallowed returns a problem if a cell has a line break and as many separators as a row: the quote
// at its start may be a stray one, like the next one in a later row of the same column.
func (c *csvReader) swallowed(i int, cell string) error {
	n := len(c.header.columns)
	if n == 1 || !c.rows.multiline || !strings.Contains(cell, "\n") || strings.Count(cell, string(c.rows.comma)) < n-1 {
		return nil
	}
	return Problem{Reason: "has a line break and as many separators as a row: a quote may not be closed, and other rows may be in this cell",
		Column: c.header.columns[i].header}
}

// appendLostZeros appends a problem for each ZIP code that lost its leading zero.
func appendLostZeros(problems []Problem, body *labhealth.ImportOrderBody) []Problem {
	if a := body.PatientAddress; hasLostZero(a.Zip, a.Country) {
		problems = append(problems, Problem{Path: "body.patient_address.zip", Reason: errLostZero.Error()})
	}
	if proxy := body.PatientDetails.MedicalProxy; proxy != nil && hasLostZero(proxy.Address.Zip, proxy.Address.Country) {
		problems = append(problems, Problem{Path: "body.patient_details.medical_proxy.address.zip", Reason: errLostZero.Error()})
	}
	return problems
}

// complete calls the row function, and checks the record if its user has to be found.
func (c *csvReader) complete(cells []string, body *labhealth.ImportOrderBody, clientUserID string) (string, error) {
	if err := c.callRow(cells, body); err != nil {
		return "", err
	}
	if problems := appendLostZeros(nil, body); problems != nil {
		return "", &RecordError{Problems: problems}
	}
	if c.opts.Users == nil || body.UserID != [16]byte{} {
		return "", nil
	}
	checked := *body
	checked.UserID = placeholderUser("")
	problems := problemsOfBody(&checked)
	if clientUserID == "" {
		problems = append(problems, Problem{Path: "body.user_id", Reason: "is required: the row has neither a user ID nor a client user ID"})
	}
	if len(problems) > 0 {
		return "", &RecordError{Problems: problems}
	}
	return clientUserID, nil
}

func (c *csvReader) callRow(cells []string, body *labhealth.ImportOrderBody) error {
	if c.opts.Row == nil {
		return nil
	}
	var state rowState
	err := c.opts.Row(Row{Line: c.rows.start, header: c.header, cells: cells, state: &state}, body)
	switch {
	case state.missing != "":
		return fmt.Errorf("CSVOptions.Row reads the column %q, and the file does not have exactly one with that name", state.missing)
	case len(state.problems) > 0:
		return &RecordError{Problems: state.problems}
	}
	return err
}

// checkDefaults returns an error if the defaults would describe a patient.
func checkDefaults(d labhealth.ImportOrderBody) error {
	address := d.PatientAddress
	address.Country = ""
	if d.SampleID != "" || d.UserID != [16]byte{} || !reflect.ValueOf(d.PatientDetails).IsZero() || !reflect.ValueOf(address).IsZero() {
		return errors.New("bulk: CSVOptions.Defaults must not have a sample ID, a user ID, patient details, or an address apart from its country")
	}
	return nil
}

// setDefaults completes body.
func setDefaults(body *labhealth.ImportOrderBody, d labhealth.ImportOrderBody) {
	body.BillingType = cmp.Or(body.BillingType, d.BillingType)
	body.CollectionMethod = cmp.Or(body.CollectionMethod, d.CollectionMethod)
	body.PatientAddress.Country = cmp.Or(body.PatientAddress.Country, d.PatientAddress.Country)
	setDefault(&body.LabAccountID, d.LabAccountID)
	setDefault(&body.OrderSet.LabAccountID, d.OrderSet.LabAccountID)
	setDefault(&body.Physician, d.Physician)
	if body.OrderSet.LabTestIDs == nil && body.OrderSet.AddOn == nil {
		setDefault(&body.OrderSet.LabTestIDs, d.OrderSet.LabTestIDs)
		setDefault(&body.OrderSet.AddOn, d.OrderSet.AddOn)
	}
}

// setDefault sets *p to a copy of a pointer or a slice, if *p is nil. It is a deep copy: the row
// function may change it.
func setDefault[T any](p *T, value T) {
	if v := reflect.ValueOf(p).Elem(); v.IsNil() {
		v.Set(deepCopy(reflect.ValueOf(value)))
	}
}

func deepCopy(v reflect.Value) reflect.Value {
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		c.Set(reflect.New(v.Type().Elem()))
		c.Elem().Set(deepCopy(v.Elem()))
	case reflect.Slice:
		c.Set(reflect.AppendSlice(c, v))
	case reflect.Struct:
		c.Set(v)
		for _, f := range fieldsOf(v.Type()).list {
			c.Field(f.index).Set(deepCopy(v.Field(f.index)))
		}
	default:
		c.Set(v)
	}
	return c
}
