package power

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/trace"
)

// ops makes the events of operations, each of which ends before the next begins.
func ops(ops ...*trace.Op) (events []trace.Event) {
	for _, op := range ops {
		events = append(events, trace.Event{Op: op, Begin: true}, trace.Event{Op: op})
	}
	return events
}

func write(at int64, data string) *trace.Op {
	return &trace.Op{Kind: trace.Write, At: at, Data: []byte(data)}
}

func begun(op *trace.Op) []trace.Event { return []trace.Event{{Op: op, Begin: true}} }

func failed(kind trace.Kind) *trace.Op { return &trace.Op{Kind: kind, Failed: true} }

// leftOf returns the states of file 0 that a mode may leave, over many draws. A name that is absent
// counts as "absent".
func leftOf(l *trace.Log, events []trace.Event, m mode) map[string]bool {
	d := newDisk(l)
	for _, e := range events {
		d.apply(e)
	}
	left := make(map[string]bool)
	for seed := range uint64(200) {
		img := d.image(m, rand.New(rand.NewPCG(seed, 0)))
		c := img.names["f"]
		if c == nil {
			left[absent] = true
			continue
		}
		left[string(trace.Resize(append([]byte(nil), c.data...), c.size))] = true
	}
	return left
}

func TestDisk(t *testing.T) {
	var (
		dataSync = &trace.Op{Kind: trace.DataSync}
		sync     = &trace.Op{Kind: trace.Sync}
		grow     = &trace.Op{Kind: trace.Truncate, Size: 5}
		cut      = &trace.Op{Kind: trace.Truncate, Size: 1}
		page     = strings.Repeat("n", pageSize)
		oldPage  = strings.Repeat("o", pageSize)
		half     = pageSize / 2
	)
	for _, test := range []struct {
		rule        string
		before      string
		events      []trace.Event
		kept, lost  string
		alsoInPages []string // what losing pages may leave besides these two
	}{
		{"a write is lost until it is synced", "old", ops(write(0, "new")), "new", "old", nil},
		{"fdatasync makes bytes durable", "old", ops(write(0, "new"), dataSync), "new", "new", nil},
		{"a sync that has not ended promises nothing", "old", append(ops(write(0, "new")), begun(dataSync)...), "new", "old", nil},
		{"a sync does not cover a write that had not ended when it began", "old", append(begun(write(0, "new")), ops(dataSync)...), "new", "old", nil},
		{"the size that a write gives a file is durable with its bytes", "old", ops(write(3, "er"), dataSync), "older", "older", nil},
		{"the size that ftruncate gives is not durable by fdatasync", "old", ops(grow, dataSync), "old\x00\x00", "old", nil},
		{"it is durable by fsync", "old", ops(grow, sync), "old\x00\x00", "old\x00\x00", nil},
		{"bytes that were synced need the size before them", "old", ops(grow, write(4, "x"), dataSync), "old\x00x", "old\x00x", nil},
		{"a file that is cut is as long as before until a sync", "old", ops(cut), "o", "old", nil},
		{"and short after it", "old", ops(cut, dataSync), "o", "o", nil},
		{"what a failed sync was to write may be lost, whatever syncs succeed later", "old", ops(write(0, "new"), failed(trace.DataSync), dataSync, sync), "new", "old", nil},
		{"unless its page is written again, which is then written whole", "old", ops(write(0, "n"), failed(trace.DataSync), write(2, "w"), dataSync), "nlw", "nlw", nil},
		{"pages are lost one by one", oldPage + oldPage, ops(write(0, page+page)), page + page, oldPage + oldPage, []string{page + oldPage, oldPage + page}},
		{"of two writes to a page the second is not kept without the first", oldPage, ops(write(0, page[:half]), write(int64(half), page[:half])), page, oldPage, []string{page[:half] + oldPage[:half]}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			l := &trace.Log{Names: map[string]int{"f": 0}, Files: map[int][]byte{0: []byte(test.before)}}
			require.Equal(t, map[string]bool{test.kept: true}, leftOf(l, test.events, kept))
			require.Equal(t, map[string]bool{test.lost: true}, leftOf(l, test.events, lost))
			want := map[string]bool{test.kept: true, test.lost: true}
			for _, s := range test.alsoInPages {
				want[s] = true
			}
			require.Equal(t, want, leftOf(l, test.events, pages))
		})
	}
}

// A write is torn at any byte, with all before it and nothing after it; sectors are lost one by one.
func TestTornAndSectors(t *testing.T) {
	l := &trace.Log{Names: map[string]int{"f": 0}, Files: map[int][]byte{0: []byte("..........")}}
	for is := range leftOf(l, ops(write(0, "aa"), write(2, "bbb"), write(5, "cc")), torn) {
		require.Contains(t, "aabbbcc", strings.TrimRight(is, "."))
		require.Len(t, is, 10)
	}
	require.Len(t, leftOf(l, ops(write(0, "aa"), write(2, "bbb"), write(5, "cc")), torn), 8)

	l.Files[0] = make([]byte, 4*sector)
	require.Len(t, leftOf(l, ops(write(0, strings.Repeat("x", 4*sector))), sectors), 16)
}

func TestNames(t *testing.T) {
	var (
		create = &trace.Op{Kind: trace.Create, File: 1, Name: "temp"}
		link   = &trace.Op{Kind: trace.Link, File: 1, Name: "temp", To: "f"}
		unlink = &trace.Op{Kind: trace.Unlink, Name: "f"}
		rename = &trace.Op{Kind: trace.Rename, File: 1, Name: "temp", To: "f"}
		sync   = &trace.Op{Kind: trace.SyncFolder}
		data   = []*trace.Op{{Kind: trace.Write, File: 1, Data: []byte("new")}, {Kind: trace.Sync, File: 1}}
	)
	for _, test := range []struct {
		rule string
		old  bool // there is a file f
		ops  []*trace.Op
		want []string // with pages lost, which is with names lost
	}{
		{"a name is lost until the folder is synced, though the file is synced", false, []*trace.Op{create, data[0], data[1], link}, []string{absent, "new"}},
		{"it is durable then", false, []*trace.Op{create, data[0], data[1], link, sync}, []string{"new"}},
		{"and only then: a sync that failed promises nothing", false, []*trace.Op{create, data[0], data[1], link, failed(trace.SyncFolder)}, []string{absent, "new"}},
		{"a name that was taken away may come back", true, []*trace.Op{unlink}, []string{absent, "old"}},
		{"until the folder is synced", true, []*trace.Op{unlink, sync}, []string{absent}},
		{"and never after that, even if a sync failed between its making and its removal", false, []*trace.Op{create, data[0], data[1], link, failed(trace.SyncFolder), unlink, sync}, []string{absent}},
		{"a file that takes the place of another is whole, or the other is", true, []*trace.Op{create, data[0], data[1], rename}, []string{"new", "old"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			l := &trace.Log{Names: map[string]int{}, Files: map[int][]byte{}}
			if test.old {
				l.Names["f"], l.Files[0] = 0, []byte("old")
			}
			want := make(map[string]bool)
			for _, s := range test.want {
				want[s] = true
			}
			require.Equal(t, want, leftOf(l, ops(test.ops...), pages))
		})
	}
}
