package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
)

// story is a scenario of two lives: first opens the file and ends in a death, and then opens
// what is left. They share only the file and the effects.
type story struct{ first, then func(k *kit) }

// lifeVariable names the file of a test that is started again in its own process, for the first
// life of a story.
const lifeVariable = "PAWL_TEST_LIFE"

// lastWords is the output of a process that is about to kill itself.
const lastWords = "now I die"

// downtime is how long the program is down between two lives.
const downtime = time.Minute

// run runs a story twice: once the queue refuses everything from the death on, and once a
// separate process is killed.
func (s story) run(t *testing.T) {
	t.Helper()
	needsDeath(t)
	if os.Getenv(lifeVariable) == "" {
		t.Run("crash", func(t *testing.T) {
			bubble(t, func(_ *testing.T, k *kit) {
				s.first(k)
				k.over()
				s.then(k.reborn())
			})
		})
	}
	t.Run("kill", func(t *testing.T) {
		if path := os.Getenv(lifeVariable); path != "" {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, path)
				k.mortal = true
				s.first(k)
				t.Fatal("nobody has died")
			})
			return
		}
		path := filepath.Join(memdir.New(t), "jobs.db")
		require.Equal(t, lastWords, life(t, path))
		synctest.Test(t, func(t *testing.T) {
			s.then(newKit(t, path).reborn())
		})
	})
}

// reborn returns the kit of the next life. Only the file, the effects, and the time remain of
// this life.
func (k *kit) reborn() *kit {
	k.t.Helper()
	died, err := os.ReadFile(k.path + ".died")
	require.NoError(k.t, err)
	next := newKit(k.t, k.path)
	var at time.Time
	require.NoError(k.t, at.UnmarshalText(died))
	next.offset.Store(int64(time.Until(at) + downtime))
	return next
}

// life runs this test in its own process and returns its last line.
func life(t *testing.T, path string) string {
	t.Helper()
	needsDeath(t)
	binary, err := os.Executable()
	require.NoError(t, err)
	var pattern []string
	for _, name := range strings.Split(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+strings.Join(pattern, "/"), "-test.timeout=10m")
	cmd.Env = append(append(os.Environ(), under.Env...), lifeVariable+"="+path,
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // otherwise the race detector waits a second at every exit
	out, err := cmd.CombinedOutput()
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	if last := lines[len(lines)-1]; last == lastWords || err == nil {
		return last
	}
	t.Fatalf("the first life: %v\n%s", err, out)
	return ""
}

// errDead is what a step returns when its life is over. Nobody stores it.
var errDead = errors.New("the process is dead")

// endLife ends this life, in a step or between calls. No process would execute what follows, so the
// caller must return the error.
func (k *kit) endLife() error {
	k.kill()
	k.refuse()
	return errDead
}

// kill records the time of death, and ends the process if it belongs to the kit.
func (k *kit) kill() {
	k.ending.Store(true)
	text, err := k.now().MarshalText()
	if err == nil {
		err = os.WriteFile(k.path+".died", text, 0o600)
	}
	if err != nil {
		panic(err)
	}
	if !k.mortal {
		return
	}
	_, _ = os.Stdout.WriteString(lastWords + "\n")
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// refuse makes the queue refuse everything. It may be called inside a transaction whose end the
// queue waits for.
func (k *kit) refuse() {
	k.ending.Store(true)
	q := k.q
	go func() { _ = q.Close() }() // over closes it too and reports the error
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := q.Extend(ctx)
		cancel()
		if err != nil && !errors.Is(err, pawl.ErrNotAccepted) {
			k.ended()
			return
		}
		runtime.Gosched() // to Close
	}
}

// end ends this life inside a commit of the queue.
func (k *kit) end() {
	k.kill()
	k.ended()
	k.q.Crash()
}

// ended marks that nothing more of this life is written.
func (k *kit) ended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.dead:
	default:
		close(k.dead)
	}
}

// awaitDeath waits for the end of this life, within a month.
func (k *kit) awaitDeath() {
	k.t.Helper()
	select {
	case <-k.q.Done():
	case <-time.After(30 * 24 * time.Hour):
	}
	if !k.ending.Load() {
		k.t.Fatal("nobody has died")
	}
}

// over waits until nothing of this life runs.
func (k *kit) over() {
	k.t.Helper()
	k.awaitDeath()
	k.stop()
	<-k.gone
	require.NoError(k.t, k.q.Close())
}

// group is a set of calls for one commit of the queue.
type group struct {
	k       *kit
	before  [sha256.Size]byte // what the file has of workflows
	release chan struct{}
}

// ride is a mutation of a test.
type ride struct{ apply func(tx driver.Writer) error }

func (r ride) Check(driver.Ops) error       { return nil }
func (r ride) Apply(tx driver.Writer) error { return r.apply(tx) }

// idle is a mutation that touches nothing, so it keeps no other process from its own.
type idle struct{ ride }

func (idle) Declare(*driver.Needs) {}

// hold holds up the queue once everything is settled: all calls until commit, undone or die
// form one commit.
func (k *kit) hold() *group {
	k.t.Helper()
	k.settle()
	g := &group{k: k, release: make(chan struct{})}
	require.NoError(k.t, k.q.ViewRows(k.t.Context(), func(tx driver.Reader) error {
		g.before = digest(tx)
		return nil
	}))
	entered := make(chan struct{})
	go func() {
		_ = k.q.Mutate(context.Background(), idle{ride{func(driver.Writer) error {
			close(entered)
			<-g.release
			return nil
		}}}, 0)
	}()
	<-entered
	return g
}

// Tables of workflows, for a test that reads them.
var (
	space       = driver.NewSpace("pawl.workflow")
	tableSteps  = space.Table("steps")
	tablePlaces = space.Table("places")
)

func init() {
	for _, name := range []string{"runs", "ids", "blobs", "signals", "seen", "answers", "published", "streams", "items", "blocked", "ended", "attributes"} {
		space.Table(name)
	}
}

// digest returns a checksum of all workflow rows in a transaction.
func digest(tx driver.Reader) [sha256.Size]byte {
	h := sha256.New()
	for _, table := range space.Tables() {
		_ = tx.Scan(table, driver.Span{}, func(key, value []byte) bool {
			addRow(h, table, key, value)
			return true
		})
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// addRow adds a row to a checksum.
func addRow(h hash.Hash, t *driver.Table, key, value []byte) {
	for _, part := range [][]byte{t.Bytes(), key, value} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
}

// commit lets the queue continue, once all calls have been made.
func (g *group) commit() {
	g.k.settle()
	close(g.release)
	g.k.settle()
}

// last calls fn when the rows of the group are written and not committed.
func (g *group) last(fn func(tx driver.Writer) error) (answer chan error) {
	g.k.settle() // the calls of the group are queued
	answer = make(chan error, 1)
	go func() {
		answer <- g.k.q.Mutate(context.Background(), ride{func(tx driver.Writer) error {
			if digest(tx) == g.before {
				panic("nothing of a workflow is in this commit")
			}
			return fn(tx)
		}}, 0)
	}()
	g.k.settle()
	return answer
}

// undone makes the commit fail for all of its calls. Each is then retried alone.
func (g *group) undone() {
	g.k.t.Helper()
	refused := errors.New("refused")
	answer := g.last(func(driver.Writer) error { return refused })
	g.commit()
	require.Equal(g.k.t, refused, <-answer)
}

// death is the point of a commit at which a process dies: its rows are written, and the file
// has none of them; or the file has them, and nobody was notified.
type death string

const (
	before death = "before"
	after  death = "after"
)

// eachDeath runs a story with a death at each point of a commit.
func eachDeath(t *testing.T, s func(at death) story) {
	t.Helper()
	for _, at := range []death{before, after} {
		t.Run(string(at), func(t *testing.T) { s(at).run(t) })
	}
}

// endLife ends this life in the commit.
func (g *group) endLife(at death) {
	g.k.t.Helper()
	needsDeath(g.k.t)
	answer := g.last(func(tx driver.Writer) error {
		if at == after {
			tx.OnCommit(g.k.end)
			return nil
		}
		g.k.end()
		return nil
	})
	close(g.release)
	if err := <-answer; !g.k.ending.Load() {
		g.k.t.Fatalf("nobody has died: %v", err)
	}
}
