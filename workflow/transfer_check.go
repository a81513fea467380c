package workflow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// The input of RestoreRows comes from another process and may be forged, so the checks trust nothing in it.

// Carried describes a run, from its parts.
type Carried struct {
	Info               // from the row of the run
	Children []pawl.ID // the children that an open run waits for
}

// RowsCheck checks the parts of runs, in order, before any is stored. The zero value is ready
// to use. Its memory is limited by [MaxEntries].
type RowsCheck struct {
	run       pawl.ID // the current run, zero between two runs
	part      int
	all       int // rows so far
	last      Row // the previous row
	seed      maphash.Seed
	blobs     map[uint32]int  // sizes
	apart     int             // entries whose value is in blobs
	calls     map[place]bool  // value: the call is pending
	most      map[uint64]int  // by scope: the position of its last call
	begun     map[uint64]bool // scopes for which an entry marks the start
	child     []pawl.ID
	journals  [2]bool // journals that have entries
	unread    int
	signals   uint64 // the highest number
	streams   carriedStreams
	isBlocked bool
	head      *runRow
}

// place identifies an entry: the hash of its scope, and its position in the scope.
type place struct {
	scope uint64
	at    int
}

// Within reports whether the last part of a run is still missing.
func (c *RowsCheck) Within() bool { return !c.run.IsZero() }

// Add checks the next part. For the last part of a run it returns a description of the run, and for
// earlier parts nil. Its errors match [pawl.ErrInvalid] or [pawl.ErrNewerFormat].
func (c *RowsCheck) Add(p *Rows) (*Carried, error) {
	if p.Form > RowsForm {
		return nil, fmt.Errorf("%w: the rows of run %s have form %d, this build reads up to %d", pawl.ErrNewerFormat, p.Run, p.Form, RowsForm)
	}
	if p.Part == 1 && !c.Within() {
		*c = RowsCheck{run: p.Run, seed: maphash.MakeSeed(), blobs: make(map[uint32]int), calls: make(map[place]bool), most: make(map[uint64]int), begun: make(map[uint64]bool)}
	}
	if p.Run.IsZero() || p.Form < 1 {
		return nil, noRows("run", "it has no ID, or no form")
	}
	if c.part++; p.Run != c.run || p.Part != c.part {
		return nil, noRows("part", "part %d of run %s stands where part %d of run %s is due", p.Part, p.Run, c.part, c.run)
	}
	for _, row := range p.Rows {
		if err := c.row(row); err != nil {
			return nil, err
		}
	}
	if c.all += len(p.Rows); c.all > maxRows {
		return nil, noRows("rows", "run %s has more than %d", p.Run, maxRows)
	}
	if c.head == nil && !p.Last() {
		return nil, nil
	}
	if c.head == nil || !p.Last() || p.All != c.all {
		return nil, noRows("part", "run %s has %d rows, and its last part counts %d, or is not the one with the row of the run", p.Run, c.all, p.All)
	}
	return c.end()
}

func noRows(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// row checks one row and its place after the previous one.
func (c *RowsCheck) row(row Row) error {
	n, before := tableNumber(row.In), tableNumber(c.last.In)
	switch {
	case n < 0:
		return noRows("in", "%q is no table of a run's rows", ellipsis.Truncate(row.In, MaxName))
	case n < before || n == before && bytes.Compare(row.Key, c.last.Key) <= 0:
		return noRows("rows", "a row of %s stands out of order", row.In)
	case len(row.Key) > maxRowKey:
		return noRows("key", "one of %s has %d bytes, at most %d are possible", row.In, len(row.Key), maxRowKey)
	case len(row.Value) > MaxValue+maxCases:
		return noRows("value", "one of %s has %d bytes, at most %d are stored", row.In, len(row.Value), MaxValue+maxCases)
	}
	c.last = Row{In: row.In, Key: row.Key}
	switch row.In {
	case tableBlobs.String():
		return c.blob(row)
	case tableSteps.String():
		return c.step(row)
	case tableSignals.String():
		return c.signal(row)
	case tableSeen.String():
		if len(row.Key) == 0 || len(row.Key) > MaxID {
			return noRows("key", "a deduplication ID has %d bytes", len(row.Key))
		}
	case tableAnswers.String():
		return c.answer(row)
	case tablePublished.String():
		if isCount(row.Key) {
			if err := soundCount(row.Key, row.Value); err != nil {
				return noRows("key", "a count of what was published: %v", err)
			}
			return nil
		}
		return validName("published name", string(row.Key))
	case tableStreams.String():
		return c.streams.head(row)
	case tableItems.String():
		return c.streams.item(row)
	case tableBlocked.String():
		c.isBlocked = true
		return keyless(row)
	case tableRuns.String():
		var err error
		if c.head, err = decodeRow(row.Value); err != nil {
			return noRows("value", "the row of the run: %v", err)
		}
		return keyless(row)
	}
	return nil
}

func keyless(row Row) error {
	if len(row.Key) > 0 {
		return noRows("key", "one of %s has %d bytes behind the run", row.In, len(row.Key))
	}
	return nil
}

func (c *RowsCheck) blob(row Row) error {
	if len(row.Key) != 4 {
		return noRows("key", "one of %s has %d bytes behind the run", row.In, len(row.Key))
	}
	c.blobs[binary.BigEndian.Uint32(row.Key)] = len(row.Value)
	if len(c.blobs) > maxCarried {
		return noRows("rows", "a run has more than %d values", maxCarried)
	}
	return nil
}

// maxCarried limits the entries of a transferred run: [MaxEntries], as many calls of undo steps, and the undo steps.
const maxCarried = 3*MaxEntries + 2

// maxCount is more than any counter of a run reaches.
const maxCount = 1 << 40

func (c *RowsCheck) step(row Row) error {
	if len(row.Key) != 4 {
		return noRows("key", "one of %s has %d bytes behind the run", row.In, len(row.Key))
	}
	e := entry{seq: binary.BigEndian.Uint32(row.Key)}
	if err := driver.DecodePayload(row.Value, &e); err != nil {
		return noRows("value", "entry %d: %v", e.seq, err)
	}
	size, there := c.blobs[e.seq]
	kinds := []EntryKind{KindStep, KindStepTx, KindSleep, KindWait, KindSelect, KindChild, KindRace, KindCancel, KindAll, KindVersion, KindUndo, KindBranch, KindEach, KindDecide,
		KindShare, KindChange, KindCondition}
	bad := ""
	switch {
	case ordinal(e.seq) == 0 || journalOf(e.seq) > 1:
		bad = "has a number that none has"
	case !slices.Contains(kinds, e.Kind):
		bad = "has a kind that is none"
	case !e.soundState():
		bad = "has a state that is none"
	case e.Name == "" || len(e.Name) > MaxName || len(e.Build) > maxLong || len(e.Scope) > maxLong || len(e.Key) > maxLong:
		bad = "has a name that is none"
	case e.Order > maxCarried || e.Order != 0 && (e.State != EntryDone || e.Kind != KindChange && e.Kind != KindCondition && e.Kind != KindSelect):
		bad = "has a change that is none"
	case e.Occurrence < 1 || e.Occurrence > maxCarried || e.Attempts < 0 || int64(e.Attempts) > maxCount || e.At < -1 || e.At > maxCarried:
		bad = "has a count that is none"
	case e.Apart != there || there && e.Size != size || !e.Apart && e.Size != len(e.Result):
		bad = "has not the value that it says"
	case !soundTexts(e.Error, e.Chain):
		bad = "has a text that is too long"
	case (e.Kind == KindVersion) != (e.At == -1):
		bad = "has a place that is none"
	case len(c.calls) > maxCarried:
		bad = "is one too many"
	}
	if bad != "" {
		return noRows("value", "entry %d %s", e.seq, bad)
	}
	c.journals[journalOf(e.seq)] = true
	if there {
		c.apart++
	}
	c.signals = max(c.signals, e.Signal)
	if !e.Child.IsZero() && e.State == EntryPending {
		c.child = append(c.child, e.Child)
	}
	if (e.Kind == KindUndo) != (e.Scope == undoScope) {
		return noRows("value", "entry %d, of kind %s, is of scope %q", e.seq, e.Kind, e.Scope)
	}
	scope := maphash.String(c.seed, e.Scope)
	if e.Scope != "" && e.Scope != undoScope && !c.begun[scope] {
		return noRows("value", "entry %d is of a branch that did not begin", e.seq)
	}
	if e.State == EntryBegun || e.Kind == KindUndo {
		c.begun[maphash.String(c.seed, stepName(e.Scope, e.Name, e.Occurrence))] = true
	}
	if e.Kind == KindVersion {
		return nil
	}
	at := place{scope, e.At}
	if _, twice := c.calls[at]; twice {
		return noRows("value", "entry %d is not the only call %d of its scope", e.seq, e.At)
	}
	c.calls[at] = e.State == EntryPending
	c.most[at.scope] = max(c.most[at.scope], e.At)
	return nil
}

// maxLong limits names without a limit of their own: nested branches and builds.
const maxLong = 64 << 10

func soundTexts(text string, chain []errorText) bool {
	long := len(text) > maxErrorText || len(chain) > 2*maxChain
	for _, each := range chain {
		long = long || len(each.Type) > maxErrorText || len(each.Text) > maxErrorText
	}
	return !long
}

func (c *RowsCheck) signal(row Row) error {
	p, err := parseSignalKey(append(make([]byte, len(pawl.ID{})), row.Key...))
	if err != nil {
		return noRows("key", "one of %s is no name and number", row.In)
	}
	if c.unread++; c.unread > MaxSignals+MaxEntries { // signals that losers of races gave back count, too
		return noRows("rows", "a run has more than %d signals", MaxSignals+MaxEntries)
	}
	c.signals = max(c.signals, p.N)
	return validName("signal", p.Name)
}

func (c *RowsCheck) answer(row Row) error {
	if len(row.Key) != 8 {
		return noRows("key", "one of %s is no number", row.In)
	}
	c.signals = max(c.signals, number(row.Key))
	var a answer
	if err := driver.DecodePayload(row.Value, &a); err != nil || !soundTexts(a.Error, a.Chain) {
		return noRows("value", "answer %d is none, or has a text that is too long: %v", number(row.Key), err)
	}
	return nil
}

// end checks the row of the run and all rows together.
func (c *RowsCheck) end() (*Carried, error) {
	if err := c.head.sound(); err != nil {
		return nil, err
	}
	_, input := c.blobs[inputSeq]
	_, output := c.blobs[outputSeq]
	own := 0
	for _, there := range [...]bool{input, output} {
		if there {
			own++
		}
	}
	inRow, outRow := c.head.Input != nil, c.head.Output != nil
	bad := ""
	switch {
	case !input && !inRow:
		bad = "has no input"
	case (output || outRow) != (c.head.Status == Done):
		bad = "has an output, or none, against its status"
	case input && inRow || output && outRow:
		bad = "has its input or output twice"
	case len(c.blobs) != c.apart+own:
		bad = "has a value of no entry"
	case c.unread != c.head.Unread || c.signals > c.head.Signals:
		bad = "counts other signals than it has"
	case c.journals[c.head.spare()]:
		bad = "has entries in a journal that is not in use"
	case !c.streams.whole():
		bad = "has other items of streams than their rows say"
	case c.isBlocked != (c.head.Status == Blocked):
		bad = "is blocked, or not, against its status"
	}
	scopes := make(map[uint64]int, len(c.most))
	for at, pending := range c.calls {
		if scopes[at.scope]++; pending && at.at < c.most[at.scope] {
			bad = "has a call that is pending, and others that follow it"
		}
	}
	for scope, most := range c.most {
		if most != scopes[scope]-1 {
			bad = "has a scope in which a call is missing"
		}
	}
	if bad != "" {
		return nil, noRows("rows", "run %s %s", c.run, bad)
	}
	all := &Carried{Info: c.head.info(c.run)}
	if c.head.open() {
		all.Children = c.child
	}
	*c = RowsCheck{}
	return all, nil
}

// sound refuses a run row that no engine would have written.
func (row *runRow) sound() error {
	if err := validName("flow", row.Flow); err != nil {
		return err
	}
	if err := driver.CheckKind(KindPrefix + row.Flow); err != nil {
		return err
	}
	if err := validID(row.ID); err != nil {
		return err
	}
	if err := driver.CheckQueue(row.Queue); err != nil && row.Queue != "" {
		return err
	}
	bad := ""
	switch {
	case !row.Status.Ended() && !slices.Contains([]Status{Running, Sleeping, Waiting, Blocked}, row.Status):
		bad = "a status that none has"
	case row.open() == (row.Ended != 0):
		bad = "an end, or none, against its status"
	case len(row.Build) > maxLong || len(row.Fingerprint) > maxLong || len(row.Cancel) > maxErrorText || len(row.Terminate) > maxErrorText:
		bad = "a text that is too long"
	case !soundTexts(row.Error, row.Chain):
		bad = "an error that is too long"
	case len(row.Waits) > MaxEntries || slices.ContainsFunc(row.Waits, func(name string) bool { return len(name) > MaxName }):
		bad = "signals to wait for that none has"
	case len(row.Declared) > MaxDeclared || slices.ContainsFunc(row.Declared, func(name string) bool { return validName("signal", name) != nil }):
		bad = "declared signals that none has"
	case row.Steps < 0 || row.Steps > maxCarried || row.Bytes < 0 || row.Bytes > maxCount || row.Unread < 0 || row.Restarts < 0 || row.Signals > 1<<62:
		bad = "a count that is none"
	case row.Journal > 1:
		bad = "a journal that none has"
	case row.Key != "" && validKey(row.Key) != nil:
		bad = "a key that none has"
	case !soundAttributes(row.Attributes):
		bad = "attributes that none has"
	case row.Places > placeOfFlow|placeOfKey|started || row.Line > placeOfFlow|placeOfKey || !row.open() && row.Places|row.Line != 0 ||
		row.Places&started != 0 && row.Line != 0 || row.Key == "" && (row.Places|row.Line)&placeOfKey != 0:
		bad = "a place that none has"
	case !row.soundValues():
		bad = "an input or output that none has"
	case row.OutputBytes < -1 || row.OutputBytes > MaxValue:
		bad = "an output of no size"
	}
	if bad != "" {
		return noRows("value", "the row of workflow %s %q has %s", row.Flow, row.ID, bad)
	}
	return nil
}

// soundValues reports whether the row has an input and an output only as a build writes them.
func (row *runRow) soundValues() bool {
	return (row.Input == nil || fitsRow(row.Input)) &&
		(row.Output == nil || fitsRow(row.Output) && row.Status == Done && row.OutputBytes == len(row.Output))
}
