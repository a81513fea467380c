package admin

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// storedLine is a job to store, and its position in the export.
type storedLine struct {
	id     pawl.ID
	offset int64
	rank   uint64   // its sequence in the export; later its position in the order of storing
	group  uint64   // equal for jobs with the same unique key, 0 without one
	may    stateSet // its possible states when it is stored
	barred stateSet // states of another job with its key that keep it out
}

// stateSet is a set of states, one bit for each.
type stateSet uint8

func setOf(has func(pawl.State) bool) (s stateSet) {
	for i, state := range pawl.States() {
		if has(state) {
			s |= 1 << i
		}
	}
	return s
}

// group records what the unique key of a job means for the order of storing.
func (m *importer) group(line *storedLine, e *pawl.Envelope) {
	if e.UniqueKey == "" {
		return
	}
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, text := range [...]string{e.Queue, e.Kind, e.UniqueKey} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0) // a byte that no name contains
	}
	line.group, line.barred = max(h.Sum64(), 1), setOf(func(s pawl.State) bool { return driver.BlockedBy(e, s) })
	line.may = setOf(func(s pawl.State) bool {
		ended := e.State == pawl.Dead || e.State == pawl.Completed
		return s == e.State || !ended && (s == pawl.Ready || s == pawl.Dead) // when its time or its deadline comes
	})
}

// order sorts the jobs into the order in which they are stored, which is that of their
// sequences.
//
// Jobs with the same unique key can exist in a queue together, for example if one arrived while
// the other was leased. They must be stored in one portion: in two, the first would keep the
// second out. The other jobs of such a group therefore follow its first. This only affects the
// order of jobs of one priority that became ready in the same nanosecond.
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
		batchDependents(jobs[from:to])
	}
	slices.SortStableFunc(jobs, byRank)
}

// batchDependents makes jobs with the same unique key consecutive, where that matters.
func batchDependents(group []storedLine) {
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

// sameGroup reports whether job i is in the group of the previous job.
func sameGroup(jobs []storedLine, i int) bool {
	return jobs[i].group != 0 && jobs[i].group == jobs[i-1].group
}
