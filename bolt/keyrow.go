package bolt

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// keyRow is the value in bucketKeys.
type keyRow struct {
	leased int
	lanes  []keyLane  // lanes in which jobs of the key wait, besides those that wait for their turn
	few    [1]keyLane // initial array of lanes
	times
	fair

	// For a queue that runs the jobs of a key in order:
	head    *keyHead // nil if none
	waiting int      // jobs that wait for their turn

	// Set in a transaction:
	used  bool // by the transaction, which writes it
	key   []byte
	limit int // of leases; 0 for none
	order pawl.KeyOrder
	pace  driver.Pace
	woken time.Time // the wake that bucketExpiry has
}

// keyLane counts the waiting jobs of a key in one lane.
type keyLane struct {
	at      laneAt
	ready   int
	blocked int
	last    [orderWidth]byte // no ready job of the lane comes after it in the order of the lane
}

// laneAt is a lane of a line, as the first bytes of a key in bucketReady.
type laneAt [lanePrefix]byte

const keyLaneWidth = lanePrefix + 4 + 4 + orderWidth

// keyRowWidth is the size in bytes of a row without lanes and fields.
const keyRowWidth = 4 + 4

// size returns about how many bytes the row has, with its seal.
func (r *keyRow) size() int {
	n := keyRowWidth + len(r.lanes)*keyLaneWidth + sealWidth
	if r.head != nil {
		n += 2 + keyHeadWidth + 2 + 4
	}
	if r.times != (times{}) {
		n += 2 * (2 + timeWidth)
	}
	return n + (len(r.last)+len(r.fronts))*(2+tagWidth)
}

func (r *keyRow) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.leased))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.lanes)))
	for _, l := range r.lanes {
		b = append(b, l.at[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(l.ready))
		b = binary.BigEndian.AppendUint32(b, uint32(l.blocked))
		b = append(b, l.last[:]...)
	}
	if r.head != nil {
		b = appendField(b, keyFieldHead, r.head.append(nil))
	}
	if r.waiting > 0 {
		b = appendField(b, keyFieldWaiting, binary.BigEndian.AppendUint32(nil, uint32(r.waiting)))
	}
	return r.fair.append(r.times.append(b))
}

func parseKeyRow(key, sealed []byte) (*keyRow, error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return nil, err
	}
	if len(b) < keyRowWidth || uint64(len(b)-keyRowWidth) < keyLaneWidth*uint64(binary.BigEndian.Uint32(b[4:])) {
		return nil, fmt.Errorf("%w: the row of a key has %d bytes", pawl.ErrCorrupt, len(b))
	}
	r := &keyRow{leased: int(binary.BigEndian.Uint32(b))}
	r.lanes = r.few[:0]
	lanes := binary.BigEndian.Uint32(b[4:])
	for b = b[keyRowWidth:]; lanes > 0; lanes-- {
		r.lanes = append(r.lanes, keyLane{
			at:      laneAt(b),
			ready:   int(binary.BigEndian.Uint32(b[lanePrefix:])),
			blocked: int(binary.BigEndian.Uint32(b[lanePrefix+4:])),
			last:    [orderWidth]byte(b[lanePrefix+8:]),
		})
		b = b[keyLaneWidth:]
	}
	return r, eachField(b, r.field)
}

// Fields of the row of a key.
const (
	keyFieldHead    byte = 1 // the head of a key whose jobs run in order
	keyFieldWaiting byte = 2 // how many of its jobs wait for their turn
	keyFieldLast    byte = 3 // the last tag of a priority
	keyFieldFront   byte = 4 // the front of a priority, in the row of a queue itself
)

// field reads a field of the row of a key.
func (r *keyRow) field(tag byte, value []byte) (known bool) {
	switch {
	case tag == keyFieldHead && len(value) == keyHeadWidth && value[16] <= 1:
		r.head = parseKeyHead(value)
	case tag == keyFieldWaiting && len(value) == 4:
		r.waiting = int(binary.BigEndian.Uint32(value))
	case (tag == keyFieldLast || tag == keyFieldFront) && len(value) == tagWidth:
		r.fair.field(tag, value)
	default:
		return r.times.field(tag, value)
	}
	return true
}
