package bolt

import (
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// soundRow checks that a row belongs in the named bucket. It checks the widths besides the
// checksum, since the checksum does not cover the bucket.
func soundRow(bucket, key, value []byte) (err error) {
	width := -1
	switch string(bucket) {
	case string(bucketMeta):
		return checkDamagedFormat(key, value)
	case string(bucketQueues):
		return soundQueueRow(key, value)
	case string(bucketJobs):
		_, err = soundRecord(key, value)
		return err
	case string(bucketPayloads):
		width = len(pawl.ID{})
		_, err = unseal(key, value, -1)
	case string(bucketHistory):
		width = len(pawl.ID{}) + 4
		if _, err = parseFailure(key, value); err == nil && len(key) == width && historyNumber(key) >= maxSalvagedFailures {
			err = fmt.Errorf("%w: failure number %d of a job", pawl.ErrCorrupt, historyNumber(key))
		}
	case string(bucketReady):
		width = readyKeyWidth
		_, err = parseIndexRow(key, value)
	case string(bucketDelayed):
		_, err = parseDelayedRow(key, value)
	case string(bucketLeased):
		width = len(pawl.ID{})
		_, err = parseLeaseRow(key, value)
	case string(bucketFailed):
		width = 4 + timeWidth + 8
		_, err = parseEndedRow(key, value)
	case string(bucketCompleted):
		width = timeWidth + 8
		_, err = parseEndedRow(key, value)
	case string(bucketUnique):
		_, err = unseal(key, value, len(pawl.ID{}))
	case string(bucketEffects):
		_, err = parseEffectRow(key, value)
	case string(bucketKeys):
		_, err = parseKeyRow(key, value)
	case string(bucketExpiry):
		return soundExpiryRow(key, value)
	}
	if err == nil && width >= 0 && len(key) != width {
		err = fmt.Errorf("%w: a key of %d bytes in bucket %s", pawl.ErrCorrupt, len(key), bucket)
	}
	return err
}

func soundQueueRow(key, value []byte) error {
	switch {
	case len(key) == 5 && key[0] == queueByNumber:
		row, err := parseQueueRow(key, value)
		if err == nil {
			err = driver.CheckQueue(row.name)
		}
		return err
	case len(key) > 1 && key[0] == queueByName:
		_, err := unseal(key, value, 4)
		if err == nil {
			err = driver.CheckQueue(string(key[1:]))
		}
		return err
	case len(key) == 5 && key[0] == kindByNumber:
		name, err := unseal(key, value, -1)
		if err == nil && len(name) > pawl.MaxNameBytes {
			err = fmt.Errorf("%w: a kind of %d bytes", pawl.ErrCorrupt, len(name))
		}
		return err
	case len(key) <= 1+pawl.MaxNameBytes && key[0] == kindByName:
		_, err := unseal(key, value, 4)
		return err
	case len(key) == 1+lineWidth && key[0] == lineByNumbers:
		_, err := parseLineRow(key, value)
		return err
	}
	return fmt.Errorf("%w: a key of %d bytes in bucket %s", pawl.ErrCorrupt, len(key), bucketQueues)
}

func soundExpiryRow(key, value []byte) error {
	_, err := unseal(key, value, 0)
	switch {
	case err != nil:
		return err
	case len(key) == timeWidth+1+len(pawl.ID{}) && key[timeWidth] == endsLife:
		return nil
	case len(key) > timeWidth+1 && key[timeWidth] == endsEffect:
		return nil
	case len(key) > timeWidth+1+4 && key[timeWidth] == endsRest:
		return nil
	}
	return fmt.Errorf("%w: a key of %d bytes in bucket %s", pawl.ErrCorrupt, len(key), bucketExpiry)
}

// soundRecord reads the record of the job with the given key.
func soundRecord(key, record []byte) (j stored, err error) {
	if len(key) != len(pawl.ID{}) {
		return j, fmt.Errorf("%w: a key of %d bytes in bucket %s", pawl.ErrCorrupt, len(key), bucketJobs)
	}
	j, err = parseStored(pawl.ID(key), record)
	if err != nil {
		return j, err
	}
	e := j.Envelope
	switch {
	case driver.CheckQueue(e.Queue) != nil, len(e.Kind) > pawl.MaxNameBytes, // no queue wrote it
		len(e.UniqueKey) > pawl.MaxKeyBytes, len(e.Key) > pawl.MaxKeyBytes, len(e.IdempotencyKey) > pawl.MaxKeyBytes,
		e.Seq >= maxSalvagedSeq, e.Failures > maxSalvagedFailures, j.apart > maxSalvagedRow:
		return j, fmt.Errorf("%w: job %s breaks the limits of what a queue takes", pawl.ErrCorrupt, e.ID)
	}
	return j, nil
}

// maxSalvagedFailures exceeds the failures of any job. The number of a failure has four bytes,
// and a damaged number must not leave it near overflow.
const maxSalvagedFailures = 1 << 30

// maxSalvagedSeq is a sequence that no queue reaches. A damaged sequence must not leave the new
// file near overflow.
const maxSalvagedSeq = 1 << 62

// stateRowOf reads a row of one of the five state buckets: its job, its line, and its state.
func stateRowOf(b *table, key, sealed []byte) (id pawl.ID, ln line, state pawl.State, err error) {
	switch string(b.name) {
	case string(bucketLeased):
		row, err := parseLeaseRow(key, sealed)
		return pawl.ID(key), row.line, pawl.Leased, err
	case string(bucketDelayed):
		row, err := parseDelayedRow(key, sealed)
		if err != nil || len(key) == 0 {
			return id, ln, pawl.Delayed, err
		}
		state = pawl.Delayed
		if key[0] != waitsForTime {
			state = pawl.Ready
		}
		return row.id, row.line(), state, nil
	case string(bucketCompleted):
		row, err := parseEndedRow(key, sealed)
		return row.id, row.line, pawl.Completed, err
	case string(bucketFailed):
		row, err := parseEndedRow(key, sealed)
		return row.id, row.line, pawl.Dead, err
	}
	row, err := parseIndexRow(key, sealed)
	if err != nil {
		return id, ln, "", err
	}
	return row.id, lineAt(key), pawl.Ready, nil
}
