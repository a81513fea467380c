package workflow

import (
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Every run reads and writes its row and its entries several times. So these two are encoded without reflection, and in
// few bytes: most numbers are 0, and most runs have no parent. If this decoder cannot read a row, for example because
// of damage, [driver.DecodePayload] reads it. That function can also read what this encoder writes.

// encodeRow returns the content of the row of a run.
func encodeRow(r *runRow) []byte {
	p := packer(make([]byte, 0, 320+len(r.ID)+len(r.Fingerprint)+len(r.Error)+len(r.Input)+len(r.Output)+32*len(r.Attributes)))
	p.list(37)
	p.text(r.Flow)
	p.text(r.ID)
	p.text(string(r.Status))
	p.text(r.Build)
	p.text(r.Queue)
	p.int64(r.Created)
	p.int64(r.Ended)
	p.int64(r.Retain)
	p.bytes(r.Fingerprint)
	p.int64(r.Due)
	p.texts(r.Waits)
	p.int64(int64(r.Steps))
	p.int64(r.Bytes)
	p.uint64(r.Signals)
	p.int64(int64(r.Unread))
	p.int64(int64(r.Restarts))
	p.text(r.Cancel)
	p.text(r.Terminate)
	p.bool(r.Paused)
	p.text(r.Error)
	p.chain(r.Chain)
	p.id(r.Parent)
	p.uint64(uint64(r.ParentSeq))
	p.int64(int64(r.OutputBytes))
	p.id(r.Forked)
	p.uint64(uint64(r.Journal))
	p.texts(r.Declared)
	p.uint64(r.Changes)
	p.int64(r.Deadline)
	p.text(r.Key)
	p.uint64(uint64(r.Places))
	p.uint64(uint64(r.Line))
	p.uint64(r.Number)
	p.attributes(r.Attributes)
	p.uint64(r.KeyNumber)
	p.bytes(r.Input)
	p.bytes(r.Output)
	return p
}

// decodeRow reads the content of the row of a run.
func decodeRow(content []byte) (*runRow, error) {
	content = completed(content)
	row := new(runRow)
	if u := (unpacker{b: content}); u.row(row) {
		return row, nil
	}
	row = new(runRow)
	return row, driver.DecodePayload(content, row)
}

// completed returns the row of a run with all 37 values. That of an older build has 35: no input and no output.
func completed(content []byte) []byte {
	u := unpacker{b: content}
	if u.count() != 35 || u.failed {
		return content
	}
	var p packer
	p.list(37)
	return append(append(p, u.b...), msgpcode.Nil, msgpcode.Nil)
}

func (u *unpacker) row(r *runRow) bool {
	u.list(37)
	r.Flow = u.text()
	r.ID = u.text()
	r.Status = Status(u.word(statusWords))
	r.Build = u.text()
	r.Queue = u.text()
	r.Created = u.int64()
	r.Ended = u.int64()
	r.Retain = u.int64()
	r.Fingerprint = u.bytes()
	r.Due = u.int64()
	r.Waits = u.texts()
	r.Steps = u.int()
	r.Bytes = u.int64()
	r.Signals = u.uint64()
	r.Unread = u.int()
	r.Restarts = u.int()
	r.Cancel = u.text()
	r.Terminate = u.text()
	r.Paused = u.bool()
	r.Error = u.text()
	r.Chain = u.chain()
	r.Parent = u.id()
	r.ParentSeq = u.uint32()
	r.OutputBytes = u.int()
	r.Forked = u.id()
	r.Journal = u.uint8()
	r.Declared = u.texts()
	r.Changes = u.uint64()
	r.Deadline = u.int64()
	r.Key = u.text()
	r.Places = placeKind(u.uint8())
	r.Line = placeKind(u.uint8())
	r.Number = u.uint64()
	r.Attributes = u.attributes()
	r.KeyNumber = u.uint64()
	r.Input = u.bytes()
	r.Output = u.bytes()
	return u.done()
}

// encodeEntry returns the content of the row of an entry.
func encodeEntry(e *entry) []byte {
	p := packer(make([]byte, 0, 192+len(e.Scope)+len(e.Error)+len(e.Result)))
	p.list(21)
	p.text(e.Scope)
	p.int64(int64(e.At))
	p.text(e.Name)
	p.int64(int64(e.Occurrence))
	p.text(string(e.Kind))
	p.text(string(e.State))
	p.int64(int64(e.Attempts))
	p.int64(e.Begun)
	p.int64(e.Started)
	p.int64(e.Finished)
	p.int64(e.Due)
	p.text(e.Error)
	p.chain(e.Chain)
	p.bytes(e.Result)
	p.bool(e.Apart)
	p.int64(int64(e.Size))
	p.bytes(e.Key)
	p.text(e.Build)
	p.id(e.Child)
	p.uint64(e.Signal)
	p.uint64(e.Order)
	return p
}

// decodeEntry reads the content of the row of an entry.
func decodeEntry(content []byte) (*entry, error) {
	e := new(entry)
	if u := (unpacker{b: content}); u.entry(e) {
		return e, nil
	}
	e = new(entry)
	return e, driver.DecodePayload(content, e)
}

func (u *unpacker) entry(e *entry) bool {
	u.list(21)
	e.Scope = u.text()
	e.At = u.int()
	e.Name = u.text()
	e.Occurrence = u.int()
	e.Kind = EntryKind(u.word(kindWords))
	e.State = EntryState(u.word(stateWords))
	e.Attempts = u.int()
	e.Begun = u.int64()
	e.Started = u.int64()
	e.Finished = u.int64()
	e.Due = u.int64()
	e.Error = u.text()
	e.Chain = u.chain()
	e.Result = u.bytes()
	e.Apart = u.bool()
	e.Size = u.int()
	e.Key = u.bytes()
	e.Build = u.text()
	e.Child = u.id()
	e.Signal = u.uint64()
	e.Order = u.uint64()
	return u.done()
}

// Words that most rows have. Sharing them saves an allocation for each row.
var (
	statusWords = []string{string(Running), string(Done), string(Waiting), string(Sleeping)}
	kindWords   = []string{string(KindStep), string(KindSleep), string(KindWait), string(KindChild), string(KindStepTx)}
	stateWords  = []string{string(EntryDone), string(EntryPending), string(EntryFailed), string(EntryBegun)}
)

// packer is MessagePack to which values are appended.
type packer []byte

func (p *packer) list(n int) {
	p.head(n, 16, msgpcode.FixedArrayLow, 0, msgpcode.Array16, msgpcode.Array32)
}

// head appends the length of a value. A length below fixed is part of the code low. A longer one has 1, 2, or 4 bytes
// and follows the code one, two, or four. A code of 0 means that MessagePack has no such form.
func (p *packer) head(n, fixed int, low, one, two, four byte) {
	switch {
	case n < fixed:
		*p = append(*p, low|byte(n))
	case n <= math.MaxUint8 && one != 0:
		*p = append(*p, one, byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, two), uint16(n))
	default:
		*p = binary.BigEndian.AppendUint32(append(*p, four), uint32(n))
	}
}

func (p *packer) text(s string) {
	p.head(len(s), 32, msgpcode.FixedStrLow, msgpcode.Str8, msgpcode.Str16, msgpcode.Str32)
	*p = append(*p, s...)
}

func (p *packer) bytes(b []byte) {
	if b == nil {
		p.null()
		return
	}
	p.head(len(b), 0, 0, msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32)
	*p = append(*p, b...)
}

func (p *packer) null() { *p = append(*p, msgpcode.Nil) }

func (p *packer) bool(b bool) {
	if b {
		*p = append(*p, msgpcode.True)
	} else {
		*p = append(*p, msgpcode.False)
	}
}

// int64 appends an integer in as few bytes as it needs. Integers below -32 are rare.
func (p *packer) int64(n int64) {
	switch {
	case n >= 0:
		p.uint64(uint64(n))
	case n >= -32:
		*p = append(*p, byte(n))
	default:
		*p = binary.BigEndian.AppendUint64(append(*p, msgpcode.Int64), uint64(n))
	}
}

func (p *packer) uint64(n uint64) {
	switch {
	case n <= math.MaxInt8:
		*p = append(*p, byte(n))
	case n <= math.MaxUint8:
		*p = append(*p, msgpcode.Uint8, byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, msgpcode.Uint16), uint16(n))
	case n <= math.MaxUint32:
		*p = binary.BigEndian.AppendUint32(append(*p, msgpcode.Uint32), uint32(n))
	default:
		*p = binary.BigEndian.AppendUint64(append(*p, msgpcode.Uint64), n)
	}
}

// id appends an ID, which is stored as its text, or nil for none.
func (p *packer) id(id pawl.ID) {
	if id.IsZero() {
		p.null()
		return
	}
	*p = append(*p, msgpcode.Bin8, idText)
	b := hex.AppendEncode(*p, id[:4])
	for _, part := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = hex.AppendEncode(append(b, '-'), part)
	}
	*p = b
}

// idText is the length of the text of an ID.
const idText = 36

func (p *packer) texts(all []string) {
	if all == nil {
		p.null()
		return
	}
	p.list(len(all))
	for _, s := range all {
		p.text(s)
	}
}

func (p *packer) chain(all []errorText) {
	if all == nil {
		p.null()
		return
	}
	p.list(len(all))
	for i := range all {
		p.pair(all[i].Type, all[i].Text)
	}
}

func (p *packer) attributes(all []attribute) {
	if all == nil {
		p.null()
		return
	}
	p.list(len(all))
	for i := range all {
		p.pair(all[i].Name, all[i].Value)
	}
}

func (p *packer) pair(a, b string) {
	p.list(2)
	p.text(a)
	p.text(b)
}
