package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// Salvage reads the damaged file at from and writes what is sound in it to a new queue file
// at to. It never maps the damaged file and never changes it; it takes the file's lock where
// the system has one. Damage is no error: what was lost is in the result.
//
// Every row of a queue has a checksum, so what is sound is known exactly. Of that:
//
//   - A job whose record is sound, and the row that says where it stands, is as it was. A
//     leased job stays so, and the next Open takes it back as after a crash.
//   - A job without such a row stands where its record says: dead, completed, delayed while
//     its time is to come, and otherwise ready.
//   - A job whose record or payload is lost becomes a dead letter of reason "corrupt" whose
//     error says what is missing.
//   - Records that were lost with a page above them are looked for on all pages. Such a page
//     may as well be an old copy, of a job that was done long ago. So a job that no row in
//     the tree vouches for becomes a dead letter whose error says so, and a person decides.
//   - Idempotency keys still count as done until the latest time that a sound row tells, so
//     no effect takes place twice. Counts are counted anew. The entries of a history that are
//     lost are replaced by entries that say so.
//   - Of sound rows that contradict each other, as those of another file or of an older tree
//     do, those stand that follow from the records. Of jobs of one sequence number all but one
//     get a new one, and a job whose record says how it ended does not run again.
//   - The app's own buckets are copied as far as they can be read. Their rows have no
//     checksums, so nobody can tell whether they are what was written.
//
// Its progress, see [WithProgress], is in bytes of the damaged file that were read; a search
// of all pages reads them again, and what is mended at the end is not counted.
//
// The new file appears whole or not at all, for its owner alone (mode 0600). Its memory is
// a few pages, the largest row, some twenty bytes for each job, and some more for each row
// that was lost.
//
// Errors: fs.ErrExist for a path to that exists, [ErrLocked], [ErrNotQueue], [pawl.ErrNewerFormat],
// [ErrOlderFormat], [ErrDisk], [pawl.ErrCorrupt] when nothing of a queue was found, that of
// ctx, and those of the file system.
func Salvage(ctx context.Context, from, to string) (Salvaged, error) {
	result := Salvaged{Meta: -1, Lost: make(map[string]int)}
	err := salvage(ctx, from, to, &result)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s: %w", from, err)
	}
	return result, nil
}

// Salvaged is what became of a damaged file.
type Salvaged struct {
	Counts pawl.Counts // the jobs of the new file, over all queues

	// How the jobs came there. Each counts once.
	Kept       int // their record and where they stood are sound
	Placed     int // where they stood is lost, and follows from the record
	Reattached int // the record lay outside the tree, and a sound row vouches for it
	Stray      int // dead letters: found outside the tree, perhaps done long ago
	NoRecord   int // dead letters: the record is lost, and what is left names the job
	NoPayload  int // dead letters: the payload is lost, or was found outside the tree

	History int            // entries of histories that are lost
	Lost    map[string]int // rows that are damaged, or contradict others, by the name of their bucket
	AppRows int            // rows of the app's own buckets that were copied, unverified
	AppLost int            // and those that could not be

	Pages   int           // damaged pages
	Damaged []DamagedPage // the first hundred of them

	// Meta is the meta page by which the file was read: 0 or 1, -1 when none was sound and
	// all pages were searched.
	Meta int

	// Older says that it was not the newest, whose tree could not be read: what the last
	// transaction did is undone.
	Older bool

	// NoFormat says that the version of the format is lost; that of this build was assumed.
	NoFormat bool

	damaged map[uint64]bool // the pages that were counted
}

// DamagedPage is a page of a damaged file.
type DamagedPage struct {
	Page   uint64
	Bucket string // the names that lead to the bucket that the page is of, "" for the top
	Err    error
}

// Sound reports whether nothing was damaged: the new file has all that the old one had.
func (s *Salvaged) Sound() bool {
	lost := s.AppLost + s.History + s.Pages + s.Placed + s.Reattached + s.Stray + s.NoRecord + s.NoPayload
	for _, n := range s.Lost {
		lost += n
	}
	return lost == 0 && s.Meta >= 0 && !s.Older && !s.NoFormat
}

// records is how many jobs were saved with their records.
func (s *Salvaged) records() int { return s.Kept + s.Placed + s.Reattached + s.Stray }

// maxDamaged is how many damaged pages a result names.
const maxDamaged = 100

func (s *Salvaged) damagedPage(p pages.Problem) {
	if s.damaged == nil {
		s.damaged = make(map[uint64]bool)
	}
	if s.damaged[p.Page] {
		return // another bucket suffers from it too
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
	w, err := openWreck(ctx, from)
	if err != nil {
		return err
	}
	defer w.Close()
	defer passOn()
	w.progress = beginProgress(ctx, w.size)
	err = create(to, func(temp string) error {
		jobsLost, err := w.salvageInto(ctx, temp, result)
		if err == nil && jobsLost && len(w.metas) > 0 && result.records() == 0 {
			// The tree reaches no record of a job, or takes the pages of jobs for those of other
			// buckets, as in a plain copy of a file that was written to meanwhile. So all pages
			// are searched, and no page is taken for what the tree says.
			w.metas = nil
			*result = Salvaged{Meta: -1, Lost: make(map[string]int)}
			if err = os.Truncate(temp, 0); err == nil {
				_, err = w.salvageInto(ctx, temp, result)
			}
		}
		return err
	})
	if err == nil {
		w.progress.end()
	}
	return err
}

// salvageInto fills an empty file. It reports whether something of the jobs is lost.
func (w *wreck) salvageInto(ctx context.Context, temp string, result *Salvaged) (jobsLost bool, err error) {
	db, err := newSalvageFile(temp)
	if err != nil {
		return false, err
	}
	s := &salvor{ctx: ctx, wreck: w, db: db, now: time.Now(), result: result}
	err = s.run()
	if err == nil {
		syncFreelist(db, nil)
		err = db.Sync() // once, in place of after every part: nobody opens a part
	}
	jobsLost = s.hurtAny(bucketJobs) || result.NoRecord > 0 || result.Lost[string(bucketRoot)] > 0
	return jobsLost, errors.Join(err, db.Close())
}

// newSalvageFile makes an empty queue at a path that has an empty file.
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

// salvor saves one file. It copies each row that is sound by itself, and then mends, in the
// new file and by the store's own moves, what is missing between them.
type salvor struct {
	ctx    context.Context
	wreck  *wreck
	db     *bbolt.DB // the new file
	now    time.Time
	result *Salvaged

	hurt        map[string]bool // buckets of which something is lost
	sequences   map[string]uint64
	strays      map[pawl.ID]bool // jobs whose record lay outside the tree
	strayLoads  map[pawl.ID]bool // jobs whose payload did
	uniqueAgain map[string]bool  // unique keys whose rows were lost and are made anew
}

func (s *salvor) run() error {
	s.hurt, s.sequences = make(map[string]bool), make(map[string]uint64)
	s.strays, s.strayLoads = make(map[pawl.ID]bool), make(map[pawl.ID]bool)
	s.uniqueAgain = make(map[string]bool)
	walked, err := s.copyTree()
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		s.mendSequences, s.mendQueues, func() error { return s.copyStrays(walked) },
		s.ownSequences, s.mendStates, s.mendAside, s.mendTraces, s.mendUnique, s.mendJobs, s.mendKeys, s.mendCounts,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if s.result.Counts == (pawl.Counts{}) && s.wreck.queueless {
		if len(s.wreck.metas) == 0 {
			return s.wreck.nothing()
		}
		s.hurt[string(bucketJobs)] = true
	}
	return nil
}

// hurtAny reports whether something is lost of one of the buckets.
func (s *salvor) hurtAny(names ...[]byte) bool {
	for _, name := range names {
		if s.hurt[string(name)] {
			return true
		}
	}
	return false
}

// lost counts a row that is not in the new file.
func (s *salvor) lost(bucket []byte) {
	s.result.Lost[string(bucket)]++
	s.hurt[string(bucket)] = true
}
