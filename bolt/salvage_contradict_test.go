package bolt

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// contradicted salvages a queue after rows of it were replaced by rows that are sound by
// themselves, as those of another file or an older tree are. SalvageTo requires that the new
// file keeps every invariant.
func contradicted(t *testing.T, fill func(q *Queue), change func(s *store) error) (*Queue, Salvaged) {
	t.Helper()
	from := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(from, quiet())
	require.NoError(t, err)
	fill(q)
	require.NoError(t, q.Close())
	withBolt(t, from, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		return change(&s)
	})
	to, result := salvageTo(t, from)
	require.False(t, result.Sound())
	return openAt(t, to, nil), result
}

// putRecord stores a changed record.
func putRecord(s *store, e *pawl.Envelope) error {
	return s.jobs.Put(e.ID[:], driver.AppendRecord(nil, e, 0))
}

// An effect is done until the latest time in the file: no effect takes place again, and no row
// is left that ends an effect that is not done.
func TestSalvageTakesTheEndOfAnEffect(t *testing.T) {
	once := func(e *pawl.Envelope) { e.IdempotencyKey = "invoice 17" }
	for rule, change := range map[string]func(s *store, key []byte) error{
		"its row is not there": func(s *store, key []byte) error { return s.effects.Delete(key) },
		"its row says that nobody did it": func(s *store, key []byte) error {
			return s.effects.Put(key, seal(key, effectRow{}.append(nil)))
		},
		"its row is of an earlier time": func(s *store, key []byte) error {
			row := effectRow{done: time.Now().Add(-time.Hour)}
			return s.effects.Put(key, seal(key, row.append(nil)))
		},
		"its row says that a job is at it": func(s *store, key []byte) error {
			row := effectRow{holder: pawl.ID{7}}
			return s.effects.Put(key, seal(key, row.append(nil)))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			q, result := contradicted(t, func(q *Queue) {
				add(t, q, once)
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			}, func(s *store) error {
				key, _ := s.effects.Cursor().First()
				return change(s, append([]byte(nil), key...))
			})
			require.Equal(t, 1, result.Lost["effects"])
			add(t, q, once)
			require.Empty(t, fetch(t, q, 1))
			require.Zero(t, countsOf(t, q, pawl.DefaultQueue).Ready, "it was skipped")
		})
	}
}

// Two jobs with one sequence, as pages of another file bring them, are two jobs: neither takes
// the place of the other, now or when it moves.
func TestSalvageKeepsJobsOfOneSequenceApart(t *testing.T) {
	at := time.Now().Add(time.Hour)
	for _, test := range []struct {
		rule  string
		place func(first, second *pawl.Envelope) // according to their records
		rows  int                                // how many of them, from the second on, have a row
		want  pawl.Counts
	}{
		{"one place, which neither has", func(first, second *pawl.Envelope) { second.NotBefore = first.NotBefore }, 0, pawl.Counts{Ready: 3}},
		{"one place, which the second has", func(first, second *pawl.Envelope) { second.NotBefore = first.NotBefore }, 1, pawl.Counts{Ready: 3}},
		{"two places that were one if the second moved on", func(first, second *pawl.Envelope) {}, 2, pawl.Counts{Ready: 3}},
		{"one place, of those that wait", func(first, second *pawl.Envelope) { first.NotBefore, second.NotBefore = at, at }, 0, pawl.Counts{Ready: 1, Delayed: 2}},
		{"one place, of the dead", func(first, second *pawl.Envelope) {
			first.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: at}
			second.Death = first.Death
		}, 0, pawl.Counts{Ready: 1, Dead: 2}},
		{"one place, of the completed", func(first, second *pawl.Envelope) {
			first.Completed, second.Completed = at, at
			first.Retain, second.Retain = time.Hour, time.Hour
		}, 0, pawl.Counts{Ready: 1, Completed: 2}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var jobs []*pawl.Envelope
			q, result := contradicted(t, func(q *Queue) {
				for range 3 {
					jobs = append(jobs, add(t, q, nil))
				}
			}, func(s *store) error {
				first, err := s.record(jobs[0].ID)
				require.NoError(t, err)
				second, err := s.record(jobs[1].ID)
				require.NoError(t, err)
				for _, j := range []stored{first, second} {
					p, err := s.where(j.Envelope)
					require.NoError(t, err)
					require.NoError(t, p.table.Delete(p.key))
				}
				second.Seq = first.Seq
				test.place(first.Envelope, second.Envelope)
				require.NoError(t, putRecord(s, first.Envelope))
				require.NoError(t, putRecord(s, second.Envelope))
				for _, j := range []stored{second, first}[:test.rows] {
					key := readyKey(nil, line{1, 2}, j.Envelope)
					require.NoError(t, s.ready.Put(key, seal(key, indexRow{j.ID, j.flags()}.append(nil))))
				}
				return nil
			})
			require.Equal(t, test.want, countsOf(t, q, pawl.DefaultQueue), "%+v", result)
			require.Equal(t, 1+min(test.rows, 1), result.Kept, "one that a row vouches for is as it was")
			sequences := make(map[uint64]bool)
			for _, j := range jobs {
				sequences[find(t, q, j.ID).Seq] = true
			}
			require.Len(t, sequences, 3)
			last := find(t, q, add(t, q, nil).ID)
			for seq := range sequences {
				require.Greater(t, last.Seq, seq)
			}
			require.Len(t, fetch(t, q, 9), test.want.Ready+1)
		})
	}
}

// A job whose record says how it ended does not run again, whatever its row says.
func TestSalvageRunsNothingThatEnded(t *testing.T) {
	for rule, end := range map[string]struct {
		say  func(e *pawl.Envelope)
		want pawl.State
	}{
		"dead":      {func(e *pawl.Envelope) { e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: time.Now()} }, pawl.Dead},
		"completed": {func(e *pawl.Envelope) { e.Completed, e.Retain = time.Now(), time.Hour }, pawl.Completed},
	} {
		for _, leased := range []bool{false, true} {
			t.Run(rule, func(t *testing.T) {
				var job *pawl.Envelope
				q, result := contradicted(t, func(q *Queue) { job = add(t, q, nil) }, func(s *store) error {
					j, err := s.record(job.ID)
					require.NoError(t, err)
					if leased {
						require.NoError(t, s.ready.Delete(readyKey(nil, line{1, 2}, j.Envelope)))
						lease := leaseRow{token: 1, line: line{1, 2}, since: time.Now()}
						require.NoError(t, s.leased.Put(j.ID[:], seal(j.ID[:], lease.append(nil))))
					}
					end.say(j.Envelope)
					return putRecord(s, j.Envelope)
				})
				require.Equal(t, 1, result.Placed)
				require.Equal(t, end.want, find(t, q, job.ID).State)
				require.Empty(t, fetch(t, q, 1))
			})
		}
	}
}

// If a job is leased, and blocks others with its unique key only in the state after that, it
// gets its key back.
func TestSalvageKeepsTheUniqueKeyOfALeasedJob(t *testing.T) {
	unique := func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "report", []pawl.State{pawl.Ready} }
	from := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(from, quiet())
	require.NoError(t, err)
	job := add(t, q, unique)
	leaseOne(t, q)
	killed := from + ".killed"
	require.NoError(t, copyFile(from, killed))
	require.NoError(t, q.Close())
	withBolt(t, killed, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		return s.unique.Delete(uniqueKey(nil, 1, job))
	})
	to, _ := salvageTo(t, killed)
	saved := openAt(t, to, nil)
	require.Equal(t, pawl.Ready, find(t, saved, job.ID).State, "its lease was taken back")
	require.Equal(t, job.ID, add(t, saved, unique).ID, "the key is taken")
}

// A failure with an impossible number is not an entry of a history: the number of the next one
// would start at zero again.
func TestSalvageOfAFailureAtTheEndOfNumbers(t *testing.T) {
	for _, n := range []uint32{maxSalvagedFailures, math.MaxUint32} {
		lost := pawl.ID{5}
		q, result := contradicted(t, func(q *Queue) { add(t, q, nil) }, func(s *store) error {
			for _, n := range []uint32{0, n} {
				key := binary.BigEndian.AppendUint32(lost[:], n)
				if err := s.history.Put(key, seal(key, appendFailure(nil, driver.NewFailure(1, time.Now(), "boom")))); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, 1, result.Lost["history"])
		require.Equal(t, 1, result.NoRecord)
		require.Len(t, find(t, q, lost).History, 2)
	}
}
