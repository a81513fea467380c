package admin

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/gopawl/pawl"
)

// storedLine is a job that is to be stored, and where in the export it stands.
type storedLine struct {
	id     pawl.ID
	offset int64
	rank   uint64   // its sequence in the export; later its place in the order of storing
	group  uint64   // the same for jobs of one unique key, 0 without one
	may    stateSet // in which it may be when it is stored
	barred stateSet // of another job that has its key, which keep it out
}

// stateSet is a set of states, a bit for each.
type stateSet uint8

func setOf(has func(pawl.State) bool) (s stateSet) {
	for i, state := range pawl.States() {
		if has(state) {
			s |= 1 << i
		}
	}
	return s
}

// group notes what the unique key of a job means for the order of storing.
func (m *importer) group(line *storedLine, e *pawl.Envelope) {
	if e.UniqueKey == "" {
		return
	}
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, text := range [...]string{e.Queue, e.Kind, e.UniqueKey} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0) // which no name has
	}
	line.group, line.barred = max(h.Sum64(), 1), setOf(e.BlockedBy)
	line.may = setOf(func(s pawl.State) bool {
		ended := e.State == pawl.Dead || e.State == pawl.Completed
		return s == e.State || !ended && (s == pawl.Ready || s == pawl.Dead) // by its time, or its deadline
	})
}

// order brings the jobs into the order in which they are stored, that of their sequences.
//
// Jobs of one unique key may stand beside each other in a queue, as when the one was leased
// while the other came. They must be stored in one portion: in two, the first would keep the
// second out. So the others of such a group come behind its first; all that this changes is
// who goes first of jobs of one priority that are ready since the same nanosecond.
func order(jobs []storedLine) {
	slices.SortFunc(jobs, func(a, b storedLine) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.offset, b.offset))
	})
	for i := range jobs {
		jobs[i].rank = uint64(i)
	}
	byRank := func(a, b storedLine) int { return cmp.Compare(a.rank, b.rank) }
	slices.SortFunc(jobs, func(a, b storedLine) int {
		return cmp.Or(cmp.Compare(a.group, b.group), byRank(a, b))
	})
	for from, to := 0, 0; from < len(jobs); from = to {
		for to = from + 1; to < len(jobs) && sameGroup(jobs, to); {
			to++
		}
		gather(jobs[from:to])
	}
	slices.SortStableFunc(jobs, byRank)
}

// gather has those who share a unique key stored together, where that matters.
func gather(group []storedLine) {
	var before stateSet
	apart := true
	for _, job := range group {
		if job.barred&job.may != 0 && job.barred&before != 0 {
			apart = false
		}
		before |= job.may
	}
	for i := range group {
		if apart {
			group[i].group = 0
		} else {
			group[i].rank = group[0].rank
		}
	}
}

// sameGroup reports whether job i is in the group of the one before it.
func sameGroup(jobs []storedLine, i int) bool {
	return jobs[i].group != 0 && jobs[i].group == jobs[i-1].group
}
