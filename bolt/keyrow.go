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
	lanes []keyLane  // lanes with waiting or leased jobs of the key; jobs that wait for their turn are in no lane
	few   [1]keyLane // initial array of lanes
	times
	fair

	// For a queue that runs the jobs of a key in order:
	head    *keyHead // nil if none
	waiting int      // jobs that wait for their turn

	backlog int // waiting jobs, for a queue that bounds those of a key; see backlog.go

	// Set in a transaction:
	leased int    // jobs
	taken  takes  // by a fetch that chooses jobs
	used   bool   // by the transaction, which writes it if it changes
	stored []byte // its value in bucketKeys, without the seal; nil for none
	key    []byte
	limit  int // of leases; 0 for none
	order  pawl.KeyOrder
	pace   driver.Pace
	woken  time.Time // the wake time stored in bucketExpiry
}

const keyLaneWidth = lanePrefix + 4 + 1 + orderWidth

// Flags of a lane in the row of a key.
const (
	laneBlocked byte = 1 << iota // the lane has blocked jobs
	laneMixed                    // a ready job may come after a blocked one
)

// keyRowWidth is the size in bytes of a row without lanes and fields.
const keyRowWidth = 4

func (r *keyRow) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.lanes)))
	for _, l := range r.lanes {
		b = append(b, l.at[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(l.ready+l.leased))
		last, flags := l.last, byte(0)
		switch {
		case l.mixed:
			flags = laneBlocked | laneMixed
		case l.blocked:
			last, flags = [orderWidth]byte{}, laneBlocked
		}
		b = append(append(b, flags), last[:]...)
	}
	var buf [keyHeadWidth]byte
	if r.head != nil {
		b = appendField(b, keyFieldHead, r.head.append(buf[:0]))
	}
	if r.waiting > 0 {
		b = appendField(b, keyFieldWaiting, binary.BigEndian.AppendUint32(buf[:0], uint32(r.waiting)))
	}
	if r.backlog > 0 {
		b = appendField(b, keyFieldBacklog, binary.BigEndian.AppendUint32(buf[:0], uint32(r.backlog)))
	}
	return r.fair.append(r.times.append(b))
}

// parseKeyRow reads a row. Its ready counts include the leased jobs.
func parseKeyRow(key, sealed []byte) (*keyRow, error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return nil, err
	}
	if len(b) < keyRowWidth || uint64(len(b)-keyRowWidth) < keyLaneWidth*uint64(binary.BigEndian.Uint32(b)) {
		return nil, fmt.Errorf("%w: the row of a key has %d bytes", pawl.ErrCorrupt, len(b))
	}
	r := new(keyRow)
	r.lanes = r.few[:0]
	lanes := binary.BigEndian.Uint32(b)
	for b = b[keyRowWidth:]; lanes > 0; lanes-- {
		l := keyLane{at: laneAt(b), ready: int(binary.BigEndian.Uint32(b[lanePrefix:])), last: [orderWidth]byte(b[lanePrefix+5:])}
		switch flags := b[lanePrefix+4]; {
		case flags == laneBlocked && l.last == [orderWidth]byte{}:
			l.blocked = true
		case flags == laneBlocked|laneMixed:
			l.blocked, l.mixed = true, true
		case flags != 0:
			return nil, fmt.Errorf("%w: the row of a key says %d of its blocked jobs", pawl.ErrCorrupt, flags)
		}
		r.lanes, b = append(r.lanes, l), b[keyLaneWidth:]
	}
	return r, eachField(b, r.field)
}

// Fields of the row of a key.
const (
	keyFieldHead    byte = 1 // the head of a key whose jobs run in order
	keyFieldWaiting byte = 2 // how many of its jobs wait for their turn
	keyFieldLast    byte = 3 // the last tag of a priority
	keyFieldFront   byte = 4 // the front of a priority, in the row of a queue itself
	keyFieldBacklog byte = 9 // how many jobs wait
)

// field reads a field of the row of a key.
func (r *keyRow) field(tag byte, value []byte) (known bool) {
	switch {
	case tag == keyFieldHead && len(value) == keyHeadWidth && value[16] <= 1:
		r.head = parseKeyHead(value)
	case tag == keyFieldWaiting && len(value) == 4:
		r.waiting = int(binary.BigEndian.Uint32(value))
	case tag == keyFieldBacklog && len(value) == 4:
		r.backlog = int(binary.BigEndian.Uint32(value))
	case (tag == keyFieldLast || tag == keyFieldFront) && len(value) == tagWidth:
		r.fair.field(tag, value)
	default:
		return r.times.field(tag, value)
	}
	return true
}
