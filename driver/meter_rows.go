package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// MeterSpace has the rows of [Meter], in docs/internals/format.md. They are in one table, so a store creates it again
// if it is lost.
var (
	MeterSpace = NewSpace("pawl.throughput")
	tableMeter = MeterSpace.Index("counts")
)

// hourRow is the counts of a queue in the minutes of an hour.
type hourRow [60]Totals

// append appends the minutes that have counts: each has its number and four counts of up to 32 bits.
func (h *hourRow) append(to []byte) []byte {
	for i := range h {
		c := &h[i]
		if !c.Counted() {
			continue
		}
		to = append(to, byte(i))
		for _, n := range [...]int64{c.Enqueued, c.Succeeded, c.Retried, c.Died} {
			to = binary.AppendUvarint(to, uint64(min(n, math.MaxUint32)))
		}
	}
	return to
}

// parse reads the counts of a row.
func (h *hourRow) parse(key, value []byte) error {
	*h = hourRow{}
	content, err := Unseal(tableMeter, key, value)
	if err != nil {
		return err
	}
	if len(key) < queueAt || len(key) > queueAt+pawl.MaxNameBytes {
		return damagedCounts(key)
	}
	for last := -1; len(content) > 0; {
		i := int(content[0])
		if i <= last || i >= len(h) {
			return damagedCounts(key)
		}
		content, last = content[1:], i
		for _, n := range [...]*int64{&h[i].Enqueued, &h[i].Succeeded, &h[i].Retried, &h[i].Died} {
			v, size := binary.Uvarint(content)
			if size <= 0 || v > math.MaxUint32 {
				return damagedCounts(key)
			}
			*n, content = int64(v), content[size:]
		}
	}
	return nil
}

func damagedCounts(key []byte) error {
	return fmt.Errorf("table %s of %s, key %x: %w: it is no row of counts", tableMeter, MeterSpace.name, key, pawl.ErrCorrupt)
}

// parseBuild reads a build.
func parseBuild(key, value []byte) (b Build, err error) {
	content, err := Unseal(tableMeter, key, value)
	if err != nil {
		return b, err
	}
	version, revision, ok := strings.Cut(string(content), "\x00")
	if !ok || len(key) != 9 {
		return b, damagedCounts(key)
	}
	return Build{time.Unix(int64(binary.BigEndian.Uint64(key[1:])), 0).UTC(), version, revision}, nil
}

// storeCounts adds counts to the rows of their hours, and removes rows that are older than a week, or later than now,
// as after the clock was set back. A damaged row starts again from zero.
func storeCounts(w Writer, now time.Time, counts map[metered]*Totals) error {
	named := make(map[int64]map[string]bool) // the queues that have a row, by hour
	rows := make(map[string]*hourRow)        // by key
	for at, c := range counts {
		hour := at.minute / 60
		if named[hour] == nil {
			queues, err := queuesOf(w, hour)
			if err != nil {
				return err
			}
			named[hour] = queues
		}
		if !named[hour][at.queue] && len(named[hour]) >= maxMetered {
			at.queue = ""
		}
		named[hour][at.queue] = true
		key := hourKey(hour, at.queue)
		if rows[string(key)] == nil {
			row, err := readHour(w, key)
			if err != nil {
				return err
			}
			rows[string(key)] = row
		}
		rows[string(key)][at.minute%60].Add(*c)
	}
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		key := []byte(k)
		if err := w.Put(tableMeter, key, Seal(tableMeter, key, rows[k].append(nil))); err != nil {
			return err
		}
	}
	hour := minuteOf(now) / 60
	return removeOutside(w, hourKey(max(0, hour-hoursKept+1), ""), hourKey(hour+1, ""))
}

// queuesOf returns the queues that have a row in an hour.
func queuesOf(r Reader, hour int64) (map[string]bool, error) {
	queues := make(map[string]bool)
	err := r.Scan(tableMeter, Span{Prefix: hourKey(hour, "")}, func(key, _ []byte) bool {
		queues[string(key[queueAt:])] = true
		return true
	})
	return queues, presentTable(err)
}

// readHour returns the counts at a key, which are empty if there is no row, or a damaged one.
func readHour(r Reader, key []byte) (*hourRow, error) {
	value, err := r.Get(tableMeter, key)
	if presentTable(err) != nil {
		return nil, err
	}
	if value != nil {
		if row := new(hourRow); row.parse(key, value) == nil {
			return row, nil
		}
	}
	return new(hourRow), nil
}

// removeOutside removes the rows of one kind whose keys are not in [from, to).
func removeOutside(w Writer, from, to []byte) error {
	var keys [][]byte
	err := w.Scan(tableMeter, Span{Prefix: from[:1]}, func(key, _ []byte) bool {
		if bytes.Compare(key, from) >= 0 {
			return false
		}
		keys = append(keys, bytes.Clone(key))
		return len(keys) < removedAtOnce
	})
	if err == nil {
		err = w.Scan(tableMeter, Span{Prefix: from[:1], From: to, Limit: removedAtOnce}, func(key, _ []byte) bool {
			keys = append(keys, bytes.Clone(key))
			return true
		})
	}
	if err = presentTable(err); err != nil {
		return err
	}
	for _, key := range keys {
		if err := w.Delete(tableMeter, key); err != nil {
			return err
		}
	}
	return nil
}

// removedAtOnce limits the old rows that a store removes at either end. An hour adds fewer.
const removedAtOnce = 2 * (maxMetered + 1)

// noteBuild notes a build, unless the last one was the same.
func noteBuild(w Writer, now time.Time, b Build) error {
	builds, _, err := readBuilds(w)
	if err != nil {
		return err
	}
	from := time.Unix(0, 0)
	if n := len(builds); n > 0 {
		if last := builds[n-1]; last.same(&b) && !last.At.After(now) {
			return nil
		}
		if n >= maxBuilds {
			from = builds[n-maxBuilds+1].At
		}
	}
	key := buildKey(b.At.Unix())
	if err := w.Put(tableMeter, key, Seal(tableMeter, key, []byte(b.Version+"\x00"+b.Revision))); err != nil {
		return err
	}
	return removeOutside(w, buildKey(from.Unix()), buildKey(now.Unix()+1))
}

// readBuilds returns the builds, the oldest first, and how many rows are damaged.
func readBuilds(r Reader) (builds []Build, damaged int, err error) {
	err = r.Scan(tableMeter, Span{Prefix: []byte{'b'}}, func(key, value []byte) bool {
		if b, err := parseBuild(key, value); err == nil {
			builds = append(builds, b)
		} else {
			damaged++
		}
		return true
	})
	return builds, damaged, presentTable(err)
}

// readCounts adds the stored counts of a queue, or of all, and the builds to a report.
func readCounts(r Reader, t *Throughput, queue string) (err error) {
	begin := t.Periods[0].At
	from := hourKey(begin.Unix()/3600, "")
	var row hourRow
	err = r.Scan(tableMeter, Span{Prefix: from[:1], From: from}, func(key, value []byte) bool {
		if queue != "" && string(key[min(queueAt, len(key)):]) != queue {
			return true
		}
		if row.parse(key, value) != nil {
			t.Damaged++
			return true
		}
		first := 60 * int64(binary.BigEndian.Uint32(key[1:]))
		for i := range row {
			if row[i].Counted() {
				t.add(first+int64(i), row[i])
			}
		}
		return true
	})
	if err = presentTable(err); err != nil {
		return err
	}
	builds, damaged, err := readBuilds(r)
	t.Damaged += damaged
	for len(builds) > 1 && !builds[1].At.After(begin) {
		builds = builds[1:]
	}
	t.Builds = builds
	return err
}
