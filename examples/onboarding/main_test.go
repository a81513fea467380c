package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow/workflowtest"
)

const day = 24 * time.Hour

// post is a mail server that remembers when each mail came.
type post struct {
	now func() time.Time

	mu    sync.Mutex
	keys  map[string]bool
	mails []string
}

// Send implements mailer. It knows a mail that it has had.
func (p *post) Send(_ context.Context, key, to, subject string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[key] {
		return nil
	}
	p.keys[key] = true
	p.mails = append(p.mails, fmt.Sprintf("%v %s: %s", p.now().Sub(workflowtest.Epoch), to, subject))
	return nil
}

// newKit makes a mail server, and a kit for the flow that uses it.
func newKit(t *testing.T, at *workflowtest.Point) (*workflowtest.Kit, *post) {
	p := &post{keys: make(map[string]bool)}
	k := workflowtest.New(t, &workflowtest.Options{At: at}, newFlow(p))
	p.now = k.Now
	return k, p
}

var ada = Customer{Address: "ada@example.com", Day: day}

// Rule: who does not begin is asked after two days, and again after a week; and wherever the
// process dies in that week, each mail comes once, at its time.
func TestWhoDoesNotBegin(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k, p := newKit(t, at)
		run := workflowtest.Start(k, newFlow(p), ada.Address, ada)
		require.Equal(t, []string{"begun"}, run.Info().Waits)
		require.Equal(t, 2*day, k.Skip())
		require.Equal(t, 5*day, k.Skip())
		week, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, Week{Mails: 3}, week)
		require.Equal(t, []string{
			"0s ada@example.com: Welcome",
			"48h0m0s ada@example.com: Shall we show you around?",
			"168h0m0s ada@example.com: How was your first week?",
		}, p.mails)
	})
}

// Rule: who begins gets tips at once and is not nudged, and the journal says so.
func TestWhoBegins(t *testing.T) {
	k, p := newKit(t, nil)
	run := workflowtest.Start(k, newFlow(p), ada.Address, ada)
	k.Advance(36 * time.Hour)
	workflowtest.Send(run, begun, "an engine")
	week, err := run.Result()
	require.NoError(t, err)
	require.Equal(t, Week{Project: "an engine", Mails: 3}, week)
	require.Equal(t, "36h0m0s ada@example.com: Three tips for an engine", p.mails[1])
	require.Equal(t, strings.TrimLeft(`
step welcome: {}
wait begun, 36h0m0s: "an engine"
step tips: {}
sleep a few days, 96h0m0s
step question: {}
`, "\n"), run.Journal().String())
}

// Rule: a customer signs up once, however often the program is told; and many at a time each
// have their week.
func TestManyCustomers(t *testing.T) {
	const customers = 100
	k, p := newKit(t, nil)
	f := newFlow(p)
	for range 2 {
		for i := range customers {
			c := Customer{Address: fmt.Sprintf("c%d@example.com", i), Day: day}
			_, err := f.Start(t.Context(), k.Engine(), c.Address, c)
			require.NoError(t, err)
		}
	}
	k.Settle()
	k.Advance(7 * day)
	require.Len(t, p.mails, 3*customers)
	slices.Sort(p.mails)
	require.Len(t, slices.Compact(p.mails), 3*customers)
}

// Rule: the program itself sends all mails and ends; told again it sends nothing.
func TestProgram(t *testing.T) {
	db := filepath.Join(t.TempDir(), "onboarding.db")
	var out, errs bytes.Buffer
	require.Equal(t, 0, command(t.Context(), []string{"-db", db, "-day", "20ms", ada.Address}, &out, &errs), errs.String())
	for _, subject := range []string{"Welcome", `Shall we show you around\?`, `How was your first week\?`} {
		require.Regexp(t, regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  to ada@example.com: `+subject+"$"), out.String())
	}
	out.Reset()
	require.Equal(t, 0, command(t.Context(), []string{"-db", db, "-day", "20ms", ada.Address}, &out, &errs), errs.String())
	require.Empty(t, out.String())
	require.Equal(t, 2, command(t.Context(), []string{"-db", db, "-day", "0s"}, &out, &errs))
}
