package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/pages"
)

// Salvage reads the damaged file at from and writes everything sound in it to a new queue file at
// to. It never maps or changes the damaged file, and takes the file's lock if the system has locks.
// Damage is not an error: the result says what was lost.
//
// Every row of a queue has a checksum, so Salvage knows exactly what is sound:
//
//   - A job with a sound record and a sound row for its state is unchanged. A leased job stays
//     leased, and the next Open takes it back as after a crash.
//   - A job without a row for its state gets the state that follows from its record: dead,
//     completed, delayed until its time, and otherwise ready.
//   - A job whose record or payload is lost becomes a dead job with reason "corrupt". Its error
//     says what is missing.
//   - If a lost page led to records, Salvage searches all pages for them. A page found that way
//     may be an old copy, of a job that completed long ago. So a job that no row in the tree
//     confirms becomes a dead job whose error says so, and a person decides.
//   - Idempotency keys count as done until the latest time found in a sound row, so no effect
//     takes place twice. Counts are recomputed. Lost entries of a history are replaced by
//     entries that say so.
//   - If sound rows contradict each other, as rows of another file or an older tree do, the
//     rows that follow from the records win. If several jobs share a sequence number, all but
//     one get a new number. A job whose record says how it ended does not run again.
//   - Groups of jobs are counted again. Members that are lost count as removed. If such a group has no pending members
//     left, it enqueues its callbacks when it is closed again.
//   - The readable part of the app's own buckets is copied. Their rows have no checksums, so they
//     cannot be verified.
//   - A damaged row of a run or of a schedule is copied, and counted in Lost. Without it, a run would
//     repeat a step. A damaged entry of the history of a schedule is omitted.
//
// Progress, see [driver.WithProgress], is in bytes read from the damaged file. A search of all pages
// reads them again. The repairs at the end do not count.
//
// The new file is written atomically, for its owner alone (mode 0600). Salvage needs memory for
// a few pages, the largest row, about twenty bytes for each job, and a little more for each
// lost row.
//
// Errors: fs.ErrExist if to exists, [ErrLocked], [ErrNotQueue], [pawl.ErrNewerFormat],
// [ErrOlderFormat], [ErrDisk], [pawl.ErrCorrupt] if the file has nothing of a queue, the error
// of ctx, and errors of the file system.
func Salvage(ctx context.Context, from, to string) (Salvaged, error) {
	result := Salvaged{Meta: -1, Lost: make(map[string]int)}
	err := salvage(ctx, from, to, &result)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s: %w", from, err)
	}
	return result, nil
}

// Salvaged is the result of Salvage.
type Salvaged struct {
	Counts pawl.Counts // jobs in the new file, over all queues

	// How the jobs were saved. Each job counts once.
	Kept       int // the record and the row for the state are sound
	Placed     int // the row for the state is lost; the state follows from the record
	Reattached int // the record was found outside the tree, and a sound row confirms it
	Unreached  int // dead jobs: found outside the tree, perhaps completed long ago
	NoRecord   int // dead jobs: the record is lost, and another row names the job
	NoPayload  int // dead jobs: the payload is lost, or was found outside the tree

	History int            // lost entries of histories
	Lost    map[string]int // rows that are damaged or contradict others, by bucket, such as "ready" or "pawl.workflow/steps"
	AppRows int            // rows copied from other buckets than those of the queue; those of the app are unverified
	AppLost int            // rows of those buckets that could not be copied

	Pages   int           // damaged pages
	Damaged []DamagedPage // the first hundred damaged pages

	// Meta is the meta page used to read the file: 0 or 1, or -1 if neither was sound and all
	// pages were searched.
	Meta int

	// Older says that Meta is not the newest meta page, because the newest tree could not be read.
	// The new file lacks the last transaction.
	Older bool

	// NoFormat says that the format version is lost. Salvage assumed the version of this build.
	NoFormat bool

	damaged map[uint64]bool // pages already counted
}

// DamagedPage is a page of a damaged file.
type DamagedPage struct {
	Page   uint64
	Bucket string // path of names to the bucket of the page, "" for the top
	Err    error
}

// Sound reports whether nothing was damaged. The new file then has everything that the old one
// had.
func (s *Salvaged) Sound() bool {
	lost := s.AppLost + s.History + s.Pages + s.Placed + s.Reattached + s.Unreached + s.NoRecord + s.NoPayload
	for _, n := range s.Lost {
		lost += n
	}
	return lost == 0 && s.Meta >= 0 && !s.Older && !s.NoFormat
}

// records returns how many jobs were saved with their records.
func (s *Salvaged) records() int { return s.Kept + s.Placed + s.Reattached + s.Unreached }

// maxDamaged is how many damaged pages a result lists.
const maxDamaged = 100

func (s *Salvaged) damagedPage(p pages.Problem) {
	if s.damaged == nil {
		s.damaged = make(map[uint64]bool)
	}
	if s.damaged[p.Page] {
		return // another bucket counted it already
	}
	s.damaged[p.Page] = true
	if s.Pages++; len(s.Damaged) < maxDamaged {
		s.Damaged = append(s.Damaged, DamagedPage{p.Page, joinPath(p.Bucket), p.Err})
	}
}

func joinPath(path [][]byte) (joined string) {
	for i, name := range path {
		if i > 0 {
			joined += "/"
		}
		joined += string(name)
	}
	return joined
}

func salvage(ctx context.Context, from, to string, result *Salvaged) error {
	w, err := openDamagedFile(ctx, from)
	if err != nil {
		return err
	}
	defer w.Close()
	defer passOn()
	w.progress = beginProgress(ctx, w.size)
	err = dbfile.Create(to, func(temp string) error {
		jobsLost, err := w.salvageInto(ctx, temp, result)
		if err == nil && jobsLost && len(w.metas) > 0 && result.records() == 0 {
			err = w.searchAll(ctx, temp, result)
		}
		return err
	})
	if err == nil {
		w.progress.end()
	}
	return err
}

// searchAll salvages again, after a pass in which the tree reached no record of a job, or took pages of jobs for pages of other
// buckets, as in a plain copy of a file that was being written. It searches all pages, and trusts the tree about none of them.
// If that finds no record either, it salvages once more by the tree, if that has anything: rows that name the jobs, groups,
// runs, schedules, or data of the app.
func (w *damagedFile) searchAll(ctx context.Context, temp string, result *Salvaged) error {
	again := func(metas []pages.Meta) error {
		w.metas, *result = metas, Salvaged{Meta: -1, Lost: make(map[string]int)}
		if err := os.Truncate(temp, 0); err != nil {
			return err
		}
		_, err := w.salvageInto(ctx, temp, result)
		return err
	}
	metas, anything := w.metas, result.NoRecord > 0 || w.ours && result.AppRows > 0
	err := again(nil)
	if anything && result.records() == 0 && (err == nil || errors.Is(err, pawl.ErrCorrupt)) {
		return again(metas)
	}
	return err
}

// salvageInto fills an empty file. It reports whether anything of the jobs is lost.
func (w *damagedFile) salvageInto(ctx context.Context, temp string, result *Salvaged) (jobsLost bool, err error) {
	db, err := newSalvageFile(temp)
	if err != nil {
		return false, err
	}
	s := &salvor{ctx: ctx, damagedFile: w, db: db, now: time.Now(), result: result}
	err = s.run()
	if err == nil {
		syncFreelist(db, nil, nil, s.now)
		err = db.Sync() // once at the end and not after every part: no process opens a partial file
	}
	jobsLost = s.hurtAny(bucketJobs) || result.NoRecord > 0 || result.Lost[string(bucketRoot)] > 0
	return jobsLost, errors.Join(err, db.Close())
}

// newSalvageFile creates an empty queue at a path that has an empty file.
func newSalvageFile(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, NoSync: true, NoFreelistSync: true,
	})
	if err != nil {
		return nil, err
	}
	if err := db.Update(createBuckets); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, os.Chmod(path, 0o600)
}

// salvor salvages one file. It copies each row that is sound by itself. Then it repairs what is
// missing between the rows, in the new file and with the store's own moves.
type salvor struct {
	ctx         context.Context
	damagedFile *damagedFile
	db          *bbolt.DB // the new file
	now         time.Time
	result      *Salvaged

	hurt              map[string]bool // buckets that lost something
	sequences         map[string]uint64
	unreached         map[pawl.ID]bool // jobs whose record was outside the tree
	unreachedPayloads map[pawl.ID]bool // jobs whose payload was outside the tree
	uniqueAgain       map[string]bool  // unique keys whose lost rows are recreated
}

func (s *salvor) run() error {
	s.hurt, s.sequences = make(map[string]bool), make(map[string]uint64)
	s.unreached, s.unreachedPayloads = make(map[pawl.ID]bool), make(map[pawl.ID]bool)
	s.uniqueAgain = make(map[string]bool)
	walked, err := s.copyTree()
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		s.repairSequences, s.repairQueues, func() error { return s.copyUnreached(walked) },
		s.ownSequences, s.repairStates, s.repairBlocked, s.repairTraces, s.repairUnique, s.repairJobs, s.repairPrerequisites, s.repairLimits, s.repairKeys, s.repairCounts, s.repairGroups,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if s.result.Counts == (pawl.Counts{}) && s.damagedFile.queueless {
		if len(s.damagedFile.metas) == 0 {
			return s.damagedFile.nothing()
		}
		s.hurt[string(bucketJobs)] = true
	}
	return nil
}

// hurtAny reports whether any of the buckets lost something.
func (s *salvor) hurtAny(names ...[]byte) bool {
	for _, name := range names {
		if s.hurt[string(name)] {
			return true
		}
	}
	return false
}

// lost counts a row that is missing from the new file.
func (s *salvor) lost(bucket []byte) {
	s.result.Lost[string(bucket)]++
	s.hurt[string(bucket)] = true
}
