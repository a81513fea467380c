//go:build unix

package admin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/driver"
)

// Ambiguous input, or input that would be ignored, is refused: a filter that loses a condition
// selects more jobs than intended.
func TestRequestsThatMeanTwoThingsAreRefused(t *testing.T) {
	q := openLive(t)
	h := handlerFor(t, Of(q), &HandlerOptions{Logger: hclog.NewNullLogger()})
	for _, test := range []requestTest{
		{rule: "conditions as parameters", method: "GET", path: opList.path + "?state=dead"},
		{rule: "conditions behind a semicolon", method: "GET", path: opList.path + "?state=dead;queue=a"},
		{rule: "two states", method: "POST", path: opList.path, kind: jsonType, body: `{"state":"dead","state":"ready"}`},
		{rule: "a parameter of a change", method: "POST", path: opReap.path + "?queue=a", kind: jsonType},
		{rule: "a parameter of a check", method: "POST", path: pathCheck + "?queue=a", kind: jsonType},
		{rule: "a parameter of a backup", method: "GET", path: pathBackup + "?queue=a"},
		{rule: "a parameter of events", method: "GET", path: pathEvents + "?queue=a"},
		{rule: "a check of something", method: "POST", path: pathCheck, kind: jsonType, body: `{"queue":"a"}`},
		{rule: "a check with a body that is no JSON", method: "POST", path: pathCheck, kind: jsonType, body: `queue`},
		{rule: "two queues", method: "POST", path: opPause.path, kind: jsonType, body: `{"queue":"a","queue":"b"}`},
		{rule: "two verbs", method: "POST", path: opDo.path, kind: jsonType, body: `{"verb":"retry","ids":[],"verb":"delete"}`},
		{rule: "two kinds of a job", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{"kind":"a","kind":"b"}]}`},
		{rule: "two values of a header", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{"kind":"a","headers":{"a":"1","a":"2"}}]}`},
		{rule: "bytes that are no UTF-8", method: "POST", path: opDo.path, kind: jsonType, body: "{\"verb\":\"retry\xff\",\"ids\":[]}"},
	} {
		test.status, test.code = 400, "invalid"
		test.run(t, h)
	}
	s, err := q.Stats(context.Background())
	require.NoError(t, err)
	require.Empty(t, s.Queues)
}

// A job with the largest possible fields besides its payload can be imported into a running app
// as into a file.
func TestLongestHistoryIsImportedLive(t *testing.T) {
	from := openLive(t)
	e := &pawl.Envelope{
		Kind: "k", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: time.Unix(1, 0)},
		Failures: pawl.HistoryKeepHead + pawl.HistoryKeepTail, Payload: make([]byte, pawl.DefaultMaxPayload),
	}
	for i := range e.Failures {
		text := []string{"<", "\x00"}[i%2] // JSON may write each as six bytes
		e.History = append(e.History, pawl.Failure{Attempt: i + 1, At: time.Unix(1, 0), Error: strings.Repeat(text, pawl.MaxErrorText)})
	}
	require.NoError(t, from.Restore(context.Background(), []*pawl.Envelope{e}, nil))
	to := openLive(t)
	c, err := Dial(context.Background(), serveTest(t, to).Addr(), &DialOptions{Timeout: testTimeout})
	require.NoError(t, err)
	defer c.Close()
	done, err := Import(context.Background(), c, strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Jobs)
	requireSameJobs(t, from, to)
}

// A request is no longer than JSON requires: a text with characters special in HTML fits if its
// bytes do.
func TestRequestIsNoLongerThanNeedBe(t *testing.T) {
	b, err := marshal(JobOf(&pawl.Envelope{History: []pawl.Failure{{Error: strings.Repeat("<&>", 1000)}}}, PayloadNone))
	require.NoError(t, err)
	require.Contains(t, string(b), "<&><&>")
}

// One filter cannot occupy the processor for minutes: the number of its terms is limited, and
// the search ends when its caller goes away.
func TestSearchIsBounded(t *testing.T) {
	terms := strings.Split(strings.Repeat("a,", maxTerms), ",")
	require.NoError(t, ParsePayload(terms[:maxTerms]))
	require.ErrorIs(t, ParsePayload(append(terms[:maxTerms], "a")), pawl.ErrInvalid)

	ctx, cancel := context.WithCancel(context.Background())
	jobs := make([]pawl.Listed, 50)
	for i := range jobs {
		jobs[i].Job = &pawl.Envelope{Payload: []byte("\xc0")}
	}
	cancel() // while the file was read
	_, err := listPage(ctx, fullPage{jobs: jobs}, Query{Filter: Filter{Payload: []string{"."}}})
	require.ErrorIs(t, err, context.Canceled)
}

// fullPage is a file that has read its jobs even if the caller is gone.
type fullPage struct {
	Store
	jobs []pawl.Listed
}

func (f fullPage) ListParts(context.Context, pawl.Filter, driver.Parts, string, int) (pawl.Listing, error) {
	return pawl.Listing{Jobs: f.jobs}, nil
}

// An answer with the result of a change never waits, however long it is.
func TestErrorOfAChangeWaitsForNobody(t *testing.T) {
	long := strings.Repeat("\x01", maxMessage) // six bytes each in JSON
	h := newHandler(&scripted{enqueue: func(context.Context, []*pawl.Envelope) ([]pawl.Enqueued, error) {
		return nil, errors.Join(errors.New(long), pawl.ErrUnknownOutcome)
	}}, &HandlerOptions{NoAuth: true, Logger: hclog.NewNullLogger()}, t.Context())
	for range largeBodies {
		leave, err := h.large.enter(t.Context())
		require.NoError(t, err)
		defer leave()
	}
	h.large.queue = 0 // waiting requests are refused at once
	requestTest{
		rule: "a long error", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{"kind":"k"}]}`,
		status: 500, code: "unknown_outcome",
	}.run(t, h)
}

// A note that is newer than this server's belongs to another server, even if the system reused
// the inode number.
func TestCloseLeavesAYoungerNote(t *testing.T) {
	s := serveTest(t, openLive(t))
	younger := s.note.ModTime().Add(time.Second)
	require.NoError(t, os.Chtimes(s.place.note, younger, younger))
	require.NoError(t, s.Close())
	require.FileExists(t, s.place.note)
}

// Three quarters of the files that a process may open are reserved for the app, and the socket
// always has some connections.
func TestConnectionsAreAPartOfTheFiles(t *testing.T) {
	for files, limit := range map[uint64]int{0: minConns, 31: minConns, 64: 16, 1023: 255, 1024: maxConns, 1 << 63: maxConns} {
		require.Equal(t, limit, connsOf(files), files)
	}
	require.Positive(t, openable())
}

// A suspended app is asked once, and the error has the reason: nothing waits for it as for an
// app that is starting.
func TestStoppedAppIsAskedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	app := startApp(t, "serve", path)
	a, err := openTest(path)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, app.cmd.Process.Signal(syscall.SIGSTOP))
	var state syscall.WaitStatus
	_, err = syscall.Wait4(app.cmd.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
	_, err = open(context.Background(), offline.New(path, nil), nil, 10*time.Millisecond, func() { t.Error("it waits") })
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, errStuck)
	require.ErrorContains(t, err, "it may be stopped, or stuck")
}
