package bolt

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// queueRow is the value in bucketQueues for a queue.
type queueRow struct {
	name   string
	paused bool
	rests  time.Time   // no job of the queue starts before this time; zero for none
	limits pawl.Limits // in force

	declared *pawl.Limits // limits that the program declares, if an operator overrides them; otherwise nil

	touched bool // the transaction must write it
}

// queueRowWidth is the size in bytes of a row with an empty name and without fields.
const queueRowWidth = 1 + 4 + 4 + 1

func (r *queueRow) append(b []byte) []byte {
	if r.paused {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendRunning(b, r.limits)
	b = append(append(b, byte(len(r.name))), r.name...)
	if r.declared != nil {
		b = appendField(b, queueFieldDeclared, appendLimits(appendRunning(nil, *r.declared), *r.declared))
	}
	if !r.rests.IsZero() {
		b = appendField(b, queueFieldRests, appendTime(nil, r.rests))
	}
	return appendLimits(b, r.limits)
}

// runningWidth is the size in bytes of what appendRunning writes.
const runningWidth = 4 + 4

// appendRunning writes how many jobs may run at a time.
func appendRunning(b []byte, l pawl.Limits) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(l.Running))
	return binary.BigEndian.AppendUint32(b, uint32(l.RunningPerKey))
}

func runningAt(b []byte) pawl.Limits {
	return pawl.Limits{Running: int(binary.BigEndian.Uint32(b)), RunningPerKey: int(binary.BigEndian.Uint32(b[4:]))}
}

// appendLimits writes the other limits as fields.
func appendLimits(b []byte, l pawl.Limits) []byte {
	if l.InOrder != pawl.OrderNone {
		b = appendField(b, queueFieldOrder, []byte{byte(l.InOrder)})
	}
	if l.Fair {
		b = appendField(b, queueFieldFair, nil)
	}
	b = appendBound(b, queueFieldMaxWaiting, l.MaxWaiting)
	b = appendBound(b, queueFieldMaxWaitingPerKey, l.MaxWaitingPerKey)
	b = appendPool(b, l.Pool)
	b = appendRate(b, queueFieldRate, l.Rate)
	return appendRate(b, queueFieldRatePerKey, l.RatePerKey)
}

func parseQueueRow(key, sealed []byte) (*queueRow, error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return nil, err
	}
	if len(b) < queueRowWidth || len(b) < queueRowWidth+int(b[queueRowWidth-1]) {
		return nil, fmt.Errorf("%w: the row of a queue has %d bytes", pawl.ErrCorrupt, len(b))
	}
	name, fields := b[queueRowWidth:queueRowWidth+int(b[queueRowWidth-1])], b[queueRowWidth+int(b[queueRowWidth-1]):]
	r := &queueRow{name: string(name), paused: b[0] != 0, limits: runningAt(b[1:])}
	return r, eachField(fields, r.field)
}

// Fields of the row of a queue.
const (
	queueFieldOrder byte = 1 + iota // order of the jobs of a key
	queueFieldFair                  // no value: its keys take turns
	queueFieldRests                 // the time until which the queue rests
)

// More fields of the row of a queue.
const (
	queueFieldMaxWaiting       byte = 24 + iota // a bound of four bytes
	queueFieldMaxWaitingPerKey                  // the same
	queueFieldDeclared                          // the declared limits, if an operator has set others
	queueFieldPool                              // how many jobs of the pool may run (4), and its name
)

// appendBound writes a bound as a field, unless it is zero.
func appendBound(b []byte, tag byte, bound int) []byte {
	if bound == 0 {
		return b
	}
	return appendField(b, tag, binary.BigEndian.AppendUint32(nil, uint32(bound)))
}

// field reads a field of the row of a queue.
func (r *queueRow) field(tag byte, value []byte) (known bool) {
	switch {
	case tag == queueFieldRests && len(value) == timeWidth:
		r.rests = timeAt(value)
		return true
	case tag != queueFieldDeclared:
		return limitField(&r.limits, tag, value)
	}
	if len(value) < runningWidth || r.declared != nil {
		return false
	}
	l := runningAt(value)
	r.declared = &l
	return eachField(value[runningWidth:], func(tag byte, value []byte) bool { return limitField(&l, tag, value) }) == nil
}

// limitField reads a field that appendLimits wrote.
func limitField(l *pawl.Limits, tag byte, value []byte) (known bool) {
	switch {
	case tag == queueFieldOrder && len(value) == 1 && pawl.KeyOrder(value[0]) <= pawl.OrderHold:
		l.InOrder = pawl.KeyOrder(value[0])
	case tag == queueFieldFair && len(value) == 0:
		l.Fair = true
	case tag == queueFieldMaxWaiting && len(value) == 4 && value[0] < 1<<7:
		l.MaxWaiting = int(binary.BigEndian.Uint32(value))
	case tag == queueFieldMaxWaitingPerKey && len(value) == 4 && value[0] < 1<<7:
		l.MaxWaitingPerKey = int(binary.BigEndian.Uint32(value))
	case tag == queueFieldPool:
		return readPool(l, value)
	default:
		return readRate(l, tag, value)
	}
	return true
}
