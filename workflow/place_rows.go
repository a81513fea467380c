package workflow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// placeKind says whether a place belongs to a flow or to a key. It is a bit of runRow.Places.
type placeKind uint8

const (
	placeOfFlow placeKind = 1
	placeOfKey  placeKind = 2

	// started is not a place. It says that the rates of the flow have counted the start of the run.
	started placeKind = 4
)

// placeKinds are the kinds, in the order in which a run takes its places.
var placeKinds = [...]placeKind{placeOfKey, placeOfFlow}

// The limits of a flow, zero for none.
type openLimits struct {
	flow, key         int
	flowPace, keyPace driver.Pace
}

func (l openLimits) of(kind placeKind) int {
	if kind == placeOfKey {
		return l.key
	}
	return l.flow
}

func (l openLimits) pace(kind placeKind) driver.Pace {
	if kind == placeOfKey {
		return l.keyPace
	}
	return l.flowPace
}

// rated reports whether the flow has a rate.
func (l openLimits) rated() bool { return l.flowPace.Limits() || l.keyPace.Limits() }

// needs returns the kinds of places, and of starts, that a run needs and lacks, in the order in which it takes them.
func (l openLimits) needs(row *runRow) (kinds []placeKind) {
	for _, kind := range placeKinds {
		lacks := l.of(kind) > 0 && row.Places&kind == 0 || l.pace(kind).Limits() && row.Places&started == 0
		if lacks && (kind != placeOfKey || row.Key != "") {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Keys of table places. The keys of the places of a flow, or of a key of its runs, begin with the key of their head.
// The names of flows and keys have no NUL. The run that has waited longest has the lowest number.
const (
	placeTaken  = 1 // followed by the run
	placeInLine = 2 // followed by the number; the content is the run
)

// placesKey returns the key of the head of the places of a flow, or of a key of its runs. The content of the head is
// the last number in its line and, if it has a rate, the time until which the starts so far use up the rate.
func placesKey(flow, key string) []byte {
	b := make([]byte, 0, len(flow)+len(key)+2+1+16)
	return append(append(append(append(b, flow...), 0), key...), 0)
}

func (row *runRow) placesKey(kind placeKind) []byte {
	if kind == placeOfKey {
		return placesKey(row.Flow, row.Key)
	}
	return placesKey(row.Flow, "")
}

func takenKey(head []byte, run pawl.ID) []byte {
	return append(append(slices.Clip(head), placeTaken), run[:]...)
}

func lineKey(head []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(slices.Clip(head), placeInLine), number)
}

func (row *runRow) lineKey(kind placeKind) []byte {
	return lineKey(row.placesKey(kind), *row.numberIn(kind))
}

// parsePlaceKey returns the parts of a key of table places. The class is 0 for a head.
func parsePlaceKey(key []byte) (head []byte, class byte, rest []byte, err error) {
	flow := bytes.IndexByte(key, 0)
	of := bytes.IndexByte(key[flow+1:], 0)
	n := flow + 1 + of + 1
	switch {
	case flow <= 0 || of < 0:
	case len(key) == n:
		return key, 0, nil, nil
	case key[n] == placeTaken && len(key) == n+1+len(pawl.ID{}), key[n] == placeInLine && len(key) == n+1+8:
		return key[:n], key[n], key[n+1:], nil
	}
	return nil, 0, nil, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tablePlaces)
}

// numberIn returns the number of the run in a line.
func (row *runRow) numberIn(kind placeKind) *uint64 {
	if kind == placeOfKey {
		return &row.KeyNumber
	}
	return &row.Number
}

// parsePlacesHead returns the content of a head.
func parsePlacesHead(content []byte) (number uint64, tat time.Time) {
	number, n := binary.Uvarint(content)
	if n > 0 && n < len(content) {
		nanos, _ := binary.Varint(content[n:])
		tat = timeOf(nanos)
	}
	return number, tat
}

func placesHead(number uint64, tat time.Time) []byte {
	b := binary.AppendUvarint(nil, number)
	if tat.IsZero() {
		return b
	}
	return binary.AppendVarint(b, unixNano(tat))
}

// apply writes the changes, and the rows of other runs.
func (p *places) apply(r rows) error {
	if err := r.putAll(p.rows); err != nil {
		return err
	}
	for _, l := range p.lots {
		for _, key := range l.deletes {
			if err := r.delete(tablePlaces, key); err != nil {
				return err
			}
		}
		for _, each := range l.puts {
			if err := r.put(tablePlaces, each.key, each.value); err != nil {
				return err
			}
		}
		if err := l.applyHead(r); err != nil {
			return err
		}
	}
	return nil
}

// applyHead writes the head. If no other row is left, and no part of the rate is used up, it removes the head.
func (l *lot) applyHead(r rows) error {
	switch empty := l.taken == 0 && len(l.line) == 0 && !l.more && !l.tat.After(l.now); {
	case empty && l.known:
		return r.delete(tablePlaces, l.head)
	case !empty && (l.changed || !l.known):
		return r.put(tablePlaces, l.head, placesHead(l.number, l.tat))
	}
	return nil
}

// restorePlaces stores the places of a run that an export had, whether they are free or not. A run that waited in line
// loses its number: its job is stored as a ready one, so it waits in line again.
func (r rows) restorePlaces(run pawl.ID, row *runRow) error {
	if !row.open() {
		return nil
	}
	for _, kind := range placeKinds {
		if row.Places&kind == 0 {
			continue
		}
		head := row.placesKey(kind)
		if known, err := r.get(tablePlaces, head); err != nil {
			return err
		} else if known == nil {
			if err := r.put(tablePlaces, head, placesHead(0, time.Time{})); err != nil {
				return err
			}
		}
		if err := r.put(tablePlaces, takenKey(head, run), nil); err != nil {
			return err
		}
	}
	if row.Line == 0 {
		return nil
	}
	row.Line, row.Number, row.KeyNumber = 0, 0, 0
	return r.putRun(run, row)
}

// waitsToBegin describes what keeps a run from beginning: the places or the rate that it waits for, as "key tenant/42"
// or "flow order". A run in both lines waits only for its flow.
func (row *runRow) waitsToBegin() (place, rate string) {
	what := ""
	switch {
	case row.Line&placeOfFlow != 0:
		what = "flow " + row.Flow
	case row.Line&placeOfKey != 0:
		what = "key " + row.Key
	}
	if row.Due != 0 && what != "" {
		return "", what
	}
	return what, ""
}

// holders returns some of the runs that have a place for which the run waits. It leaves out damaged rows, whose keys may
// name another run.
func (r rows) holders(row *runRow) (runs []pawl.ID, err error) {
	kind := placeOfKey
	if row.Line&placeOfFlow != 0 {
		kind = placeOfFlow
	}
	prefix := append(row.placesKey(kind), placeTaken)
	err = r.span(tablePlaces, driver.Span{Prefix: prefix, Limit: pawl.MaxHolders}, func(key, _ []byte, damage error) error {
		if damage == nil && len(key) == len(prefix)+len(pawl.ID{}) {
			runs = append(runs, pawl.ID(key[len(prefix):]))
		}
		return nil
	})
	return runs, err
}

// validKey checks the key of a run.
func validKey(key string) error {
	reason := ""
	switch {
	case key == "":
		reason = "is empty; leave the option out for a run without one"
	case len(key) > pawl.MaxKeyBytes:
		reason = fmt.Sprintf("has %d bytes, at most %d are allowed", len(key), pawl.MaxKeyBytes)
	case strings.ContainsRune(key, 0):
		reason = "has a NUL"
	default:
		return nil
	}
	return &pawl.InvalidError{Field: "key", Reason: reason}
}
