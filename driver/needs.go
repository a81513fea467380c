package driver

import "github.com/gopawl/pawl"

// Declared is a [Mutation] that names what it touches before it runs. A store that several processes
// share locks and reads these things in one step for all mutations of a group, and carries out
// mutations that touch different things at the same time. A mutation that declares nothing runs
// alone. A declaration is checked: a mutation that touches more than it declared runs again, alone
// unless it declares more then. A store with a single process ignores declarations.
type Declared interface {
	Mutation

	// Declare names what Check and Apply touch. It runs before each Check, and may name what an
	// earlier Check has found.
	Declare(n *Needs)
}

// Needs is what a mutation touches. An undeclared job costs a round trip. An undeclared row that no
// owner covers costs a second transaction.
type Needs struct {
	Owners []RowKey    // rows that cover all keys which begin with theirs, in all tables of the space
	Rows   []RowKey    // rows that cover themselves alone
	Spans  []TableSpan // what Check reads of covered rows; none may be reversed
	Jobs   []pawl.ID   // jobs that Check names
}

// RowKey is the place of a row.
type RowKey struct {
	Table *Table
	Key   []byte
}

// TableSpan is a range of the rows of a table.
type TableSpan struct {
	Table *Table
	Span
}

// Len returns how many declarations there are.
func (n *Needs) Len() int { return len(n.Owners) + len(n.Rows) + len(n.Spans) + len(n.Jobs) }

// Own declares that the mutation changes a row, or rows whose keys begin with its key. While there
// is no such row, only a mutation that stores it may rely on it.
func (n *Needs) Own(t *Table, key []byte) { n.Owners = append(n.Owners, RowKey{t, key}) }

// Row declares a row that has no owner.
func (n *Needs) Row(t *Table, key []byte) { n.Rows = append(n.Rows, RowKey{t, key}) }

// Read declares that Check reads a row that an owner covers.
func (n *Needs) Read(t *Table, key []byte) { n.Span(t, Span{Prefix: key, Limit: 1}) }

// Span declares that Check reads a span of rows that an owner covers.
func (n *Needs) Span(t *Table, s Span) { n.Spans = append(n.Spans, TableSpan{t, s}) }

// Job declares a job.
func (n *Needs) Job(id pawl.ID) { n.Jobs = append(n.Jobs, id) }

// Ahead is implemented by a [Reader] for which each read is a round trip.
type Ahead interface {
	// ReadAhead reads the declared spans in one round trip. Later reads of them take none.
	ReadAhead(n *Needs) error
}

// ReadAhead makes a reader read the declared spans at once, if it is [Ahead].
func ReadAhead(r Reader, n *Needs) error {
	if a, ok := r.(Ahead); ok {
		return a.ReadAhead(n)
	}
	return nil
}
