package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/withid"
)

// openRole creates one queue after the other in the given folder.
func openRole(args []string) error {
	kills.Say("up")
	for n := 0; ; n++ {
		q, err := Open(filepath.Join(args[0], fmt.Sprintf("%d.db", n)), quiet())
		if err != nil {
			return err
		}
		if err := q.Close(); err != nil {
			return err
		}
	}
}

// A process that is killed while it creates a queue leaves no file of that name, or a complete
// one.
func TestKilledCreation(t *testing.T) {
	for range 8 {
		folder := memoryFolder(t)
		c := kills.Start(t, "open", folder)
		require.Equal(t, "up", c.Line(t))
		c.Within(20 * time.Millisecond)
		require.Empty(t, c.Stderr.String())
		last := -1 // the only file that the kill can have met: the child had closed the others
		for name := range snapshot(t, folder) {
			if strings.HasPrefix(name, ".pawl-new-") {
				continue // no process opens it
			}
			number, isFile := strings.CutSuffix(name, ".db")
			require.True(t, isFile, name)
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			last = max(last, n)
		}
		if last >= 0 {
			add(t, openAt(t, filepath.Join(folder, fmt.Sprintf("%d.db", last)), nil), nil)
		}
	}
}

// What a working child does with a job. The child prints each verb before it begins and after
// it was acknowledged.
var crashVerbs = []string{"ack", "nack", "later", "abandon", "release", "snooze"}

// workRole stores jobs and settles them with random verbs, from several goroutines.
func workRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	kills.Say("up")
	ctx := context.Background()
	said := func(verb string, id pawl.ID, do func() error) {
		kills.Say("begin", verb, id)
		if err := do(); err != nil {
			panic(fmt.Errorf("%s: %w", verb, err))
		}
		kills.Say("done", verb, id)
	}
	for range 2 {
		go func() {
			for {
				id := pawl.NewID(time.Now())
				payload := make([]byte, rand.IntN(3000))
				said("enqueue", id, func() error {
					return withid.Enqueue(ctx, q, &pawl.Envelope{ID: id, Kind: "k", MaxRetries: 3, Payload: payload})
				})
			}
		}()
	}
	for {
		kills.Say("begin fetch")
		leases, err := q.Fetch(ctx, pawl.Request{Max: 4})
		if err != nil {
			return err
		}
		for _, l := range leases {
			kills.Say("lease", l.ID)
		}
		kills.Say("done fetch")
		var all sync.WaitGroup
		for _, l := range leases {
			verb := crashVerbs[rand.IntN(len(crashVerbs))]
			all.Go(func() { said(verb, l.ID, func() error { return settleBy(ctx, q, l, verb) }) })
		}
		all.Wait()
	}
}

// crashOptions let jobs crash without limit, so that the number of crashes is exact.
func crashOptions() *Options {
	o := quiet()
	o.MaxCrashes = NoMaxCrashes
	return o
}

func settleBy(ctx context.Context, q *Queue, l *pawl.Lease, verb string) error {
	switch verb {
	case "ack":
		return q.Settle(ctx, l.Ack())
	case "nack":
		return q.Settle(ctx, l.Nack(0, errors.New("boom")))
	case "later":
		return q.Settle(ctx, l.Nack(time.Hour, errors.New("boom")))
	case "abandon":
		return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errors.New("boom")))
	case "release":
		return q.Settle(ctx, l.Release())
	default:
		return q.Settle(ctx, l.Snooze(time.Hour))
	}
}

// known is what the test knows about a job from acknowledgments.
type known struct {
	state             pawl.State // "" for a job that is gone
	attempts, crashes int
}

// after returns k after verb was carried out.
func (k known) after(verb string) known {
	switch verb {
	case "ack":
		return known{}
	case "nack", "later", "abandon":
		k.attempts++
	}
	k.crashes = 0
	k.state = map[string]pawl.State{
		"nack": pawl.Ready, "release": pawl.Ready, "later": pawl.Delayed, "snooze": pawl.Delayed,
		"abandon": pawl.Dead,
	}[verb]
	return k
}

// crashed returns k after the process died with the job leased.
func (k known) crashed() known {
	k.crashes++
	return k
}

// After a kill, every acknowledged operation has happened, none has happened twice, and each
// operation in progress has happened entirely or not at all.
func TestKilledAtWork(t *testing.T) {
	var path string
	var model map[pawl.ID]known
	operations := 0
	for cycle := range 25 {
		if cycle%5 == 0 {
			path, model = filepath.Join(memoryFolder(t), "jobs.db"), make(map[pawl.ID]known)
		}
		c := kills.Start(t, "work", path)
		require.Equal(t, "up", c.Line(t))
		said := c.After(t, 150)
		require.Empty(t, c.Stderr.String())

		storing := make(map[pawl.ID]bool) // enqueues in progress
		begun := make(map[pawl.ID]string) // settles in progress
		leased := make(map[pawl.ID]bool)
		fetching := false
		stored := func(id pawl.ID) {
			if _, ok := model[id]; !ok {
				model[id] = known{state: pawl.Ready}
			}
		}
		for _, line := range said {
			var id pawl.ID
			words := strings.Fields(line)
			if text := words[len(words)-1]; text != "fetch" {
				var err error
				id, err = pawl.ParseID(text)
				require.NoError(t, err, line)
			}
			switch verb := strings.Join(words[:2], " "); {
			case words[0] == "lease":
				stored(id) // may be seen before the enqueue's answer
				leased[id] = true
			case words[1] == "fetch":
				fetching = words[0] == "begin"
			case verb == "begin enqueue":
				storing[id] = true
			case verb == "done enqueue":
				stored(id)
				delete(storing, id)
			case words[0] == "begin":
				begun[id] = words[1]
			default:
				operations++
				model[id] = model[id].after(words[1])
				delete(begun, id)
				delete(leased, id)
			}
		}

		q, err := Open(path, crashOptions())
		require.NoError(t, err)
		found := make(map[pawl.ID]known)
		for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			found[e.ID] = known{e.State, e.Attempts, e.Crashes}
		}
		require.NoError(t, q.Close())
		checkFile(t, path)

		unsaid := 0 // leases granted and not reported
		for id, is := range found {
			if _, ok := model[id]; !ok {
				require.True(t, storing[id], "a job that nobody stored")
				stored(id)
			}
			before := model[id]
			switch verb := begun[id]; {
			case leased[id] && verb != "":
				require.Contains(t, []known{before.crashed(), before.after(verb)}, is, "%s of job %s", verb, id)
			case leased[id]:
				require.Equal(t, before.crashed(), is, "job %s was leased", id)
			case is != before:
				require.Equal(t, before.crashed(), is, "job %s", id)
				unsaid++
			}
			model[id] = is
		}
		if fetching {
			require.LessOrEqual(t, unsaid, 4, "one fetch was under way")
		} else {
			require.Zero(t, unsaid, "no fetch was under way")
		}
		for id, k := range model {
			if _, ok := found[id]; !ok && k.state != "" {
				require.Equal(t, "ack", begun[id], "job %s is lost", id)
				model[id] = known{}
			}
		}
	}
	require.Greater(t, operations, 40, "the children got next to nothing done")
}
