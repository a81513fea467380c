package driver

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// ErrNoTable reports that a table is missing though other tables of its space exist: the
// store is damaged. A store never creates such a table again, because a package must not
// take lost rows for rows that never existed. It matches [pawl.ErrCorrupt].
var ErrNoTable = fmt.Errorf("%w: a table is missing", pawl.ErrCorrupt)

// Space names the tables of one package. A store creates all of them with the first row.
type Space struct {
	name   []byte
	tables []*Table
}

// NewSpace returns a space without tables. No two spaces of a program have the same name.
func NewSpace(name string) *Space { return &Space{name: []byte(name)} }

// Bytes returns the name of the space. The caller must not change it.
func (s *Space) Bytes() []byte { return s.name }

// Tables returns the tables of the space.
func (s *Space) Tables() []*Table { return s.tables }

// Table is an ordered table of keys and values. Make one with [Space.Table].
type Table struct {
	space *Space
	name  []byte
	index bool
}

// Table adds a table to the space. Call it only to initialize package variables: a space in use
// must not change.
func (s *Space) Table(name string) *Table {
	t := &Table{space: s, name: []byte(name)}
	s.tables = append(s.tables, t)
	return t
}

// Index is [Space.Table] for a table whose rows nobody owns: every mutation may write them, and a
// mutation that reads them runs alone. See [Declared].
func (s *Space) Index(name string) *Table {
	t := s.Table(name)
	t.index = true
	return t
}

// Space returns the space of the table.
func (t *Table) Space() *Space { return t.space }

// IsIndex reports whether [Space.Index] made the table.
func (t *Table) IsIndex() bool { return t.index }

// Bytes returns the name of the table. The caller must not change it.
func (t *Table) Bytes() []byte { return t.name }

// String returns the name of the table.
func (t *Table) String() string { return string(t.name) }

// Span is a range of the rows of a table. The zero value is all of them.
type Span struct {
	Prefix  []byte // of the keys
	From    []byte // the first key, inclusive; nil means from the beginning
	Limit   int    // the most rows; 0 means no limit
	Reverse bool   // last row first; From must be nil
}

// After returns the key that follows key directly, for [Span.From].
func After(key []byte) []byte { return append(append(make([]byte, 0, len(key)+1), key...), 0) }

// Reader reads rows as one transaction sees them, its own writes included. Keys and values
// are valid until the transaction ends or writes, and the caller must not change them.
type Reader interface {
	// Get returns the value of a row, nil if there is none.
	Get(t *Table, key []byte) ([]byte, error)

	// Scan calls fn for the rows of a span in key order until fn returns false. A nil
	// value means that the row is damaged. Fn must not write.
	Scan(t *Table, s Span, fn func(key, value []byte) bool) error
}

// Writer writes rows. All mutations of one transaction get the same Writer, compared by ==.
// Another transaction has another Writer.
type Writer interface {
	Reader

	// Put stores a row. The value must not change until the transaction ends.
	Put(t *Table, key, value []byte) error

	// Delete removes a row if there is one.
	Delete(t *Table, key []byte) error

	// DeleteSpan removes the rows of a span in key order, and stops after size bytes. It returns
	// how many rows, and how many bytes, it removed.
	DeleteSpan(t *Table, s Span, size int) (rows, bytes int, err error)

	// OnCommit calls fn once the transaction is durable. Fn must be short and must not call the
	// store.
	OnCommit(fn func())
}
