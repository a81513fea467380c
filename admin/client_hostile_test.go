package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// hostile returns a client of a server with arbitrary answers.
func hostile(t *testing.T, answer http.HandlerFunc) *client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c, err := newClient(s.URL, nil, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// with answers with a status and a body, in the given version.
func with(version string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if version != "" {
			w.Header().Set(versionHeader, version)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Anything that answers but is not an app of this package is unreachable, whichever call is
// made; a change that it may have understood has an unknown outcome.
func TestAnswersThatAreNone(t *testing.T) {
	id := pawl.NewID(time.Now())
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		is     error
		text   string
	}{
		{"another server", with("", 200, "<html>"), ErrUnreachable, "200 OK"},
		{"another server without such a page", with("", 404, ""), ErrUnreachable, "404"},
		{"a proxy that wants a password", with("", 401, ""), ErrDenied, "401"},
		{"a proxy that forbids it", with("", 403, ""), ErrDenied, "403"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, ErrUnreachable, "307"},
		{"a newer version", with("2", 200, "{}"), ErrUnreachable, `version "2"`},
		{"a newer version that refuses", with("2", 404, "{}"), ErrUnreachable, "use the version of the app"},
		{"no JSON", with("1", 200, "<html>"), ErrUnreachable, "invalid character"},
		{"an empty one", with("1", 200, ""), ErrUnreachable, "unexpected end"},
		{"half of it", with("1", 200, `{"jobs":[`), ErrUnreachable, "unexpected end"},
		{"another shape", with("1", 200, `[1,2]`), ErrUnreachable, "cannot unmarshal"},
		{"nesting without end", with("1", 200, strings.Repeat("[", 100_000)), ErrUnreachable, ""},
		{"a refusal without a reason", with("1", 500, ""), ErrUnreachable, "500"},
		{"a refusal that is no JSON", with("1", 500, "boom"), ErrUnreachable, "500"},
		{"a refusal without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(versionHeader, apiVersion)
			w.WriteHeader(500)
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<16))
			}
		}, ErrUnreachable, "500"},
		{"headers without end", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
			}
		}, ErrUnreachable, ""},
		{"nothing", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ErrUnreachable, "it ended, or closed the connection"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ctx := context.Background()
			c := hostile(t, test.answer)
			var errs []error
			_, err := c.Stats(ctx)
			errs = append(errs, err)
			_, err = c.List(ctx, Query{})
			errs = append(errs, err)
			_, err = c.Job(ctx, id)
			errs = append(errs, err)
			_, err = c.Do(ctx, Action{Verb: Retry}, id)
			errs = append(errs, err)
			errs = append(errs, withid.Enqueue(ctx, c, &pawl.Envelope{Kind: "k"}), c.Check(ctx), c.Backup(ctx, io.Discard), c.Pause(ctx, "a"))
			for _, err := range c.Events(ctx) {
				errs = append(errs, err)
			}
			for _, err := range errs {
				require.ErrorIs(t, err, test.is)
			}
			require.ErrorContains(t, errs[0], test.text)
		})
	}
}

// An answer with false statements about jobs is rejected, because the caller would take them for
// the result.
func TestAnswersThatLie(t *testing.T) {
	ctx, id := context.Background(), pawl.NewID(time.Now())
	_, err := hostile(t, with("1", 200, `{"errors":[]}`)).Do(ctx, Action{Verb: Delete}, id)
	require.ErrorIs(t, err, ErrUnreachable, "no result for a job")
	_, err = hostile(t, with("1", 200, `{"errors":[null,null]}`)).Do(ctx, Action{Verb: Delete}, id)
	require.ErrorIs(t, err, ErrUnreachable, "too many results")

	job := &pawl.Envelope{Kind: "k"}
	for _, answer := range []string{`{"jobs":[]}`, `{"jobs":[{"id":"x"}]}`, `{"jobs":[{"id":"` + id.String() + `"},{"id":"` + id.String() + `"}]}`} {
		require.ErrorIs(t, withid.Enqueue(ctx, hostile(t, with("1", 200, answer)), job), ErrUnreachable, answer)
	}
	for _, answer := range []string{`{"jobs":[{"id":"x"}]}`, `{"jobs":[{"id":"x","error":{"code":"corrupt"}}]}`, `{"jobs":[{"id":"` + id.String() + `","state":"undead"}]}`} {
		_, err = hostile(t, with("1", 200, answer)).List(ctx, Query{})
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	for _, answer := range []string{"", "{}\n", `{"progress":{"done":1,"total":2}}` + "\n", `{"done":true}`, strings.Repeat(" ", 2<<20)} {
		require.ErrorIs(t, hostile(t, with("1", 200, answer)).Check(ctx), ErrUnreachable, "a check that does not say how it ended: %.20q", answer)
	}
	require.ErrorIs(t, hostile(t, with("1", 200, "bytes")).Backup(ctx, io.Discard), ErrUnreachable, "a backup that does not say that it is whole")
	for _, err := range hostile(t, with("1", 200, `{"event":{"type":"died"}}`+"\n")).Events(ctx) {
		require.ErrorIs(t, err, ErrUnreachable, "an event of no job")
	}
}

// An endless answer is aborted at a limit, and a missing one at the timeout.
func TestAnswersThatDoNotEnd(t *testing.T) {
	_, err := readBounded(endlessBytes{}, 1<<20)
	require.ErrorIs(t, err, ErrUnreachable)

	synctest.Test(t, func(t *testing.T) {
		c := newPiped(t, &scripted{
			stats: func(ctx context.Context) (Stats, error) { <-ctx.Done(); return Stats{}, ctx.Err() },
			do:    func(ctx context.Context, _ Action, _ []pawl.ID) ([]error, error) { <-ctx.Done(); return nil, ctx.Err() },
		}, 4).client()
		began := time.Now()
		_, err := c.Stats(t.Context())
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorContains(t, err, "within 30s")
		require.Equal(t, defaultTimeout, time.Since(began))

		_, err = c.Do(t.Context(), Action{Verb: Retry})
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Stats(ctx)
		require.Equal(t, context.DeadlineExceeded, err, "the caller's own end")
	})
}

type endlessBytes struct{}

func (endlessBytes) Read(b []byte) (int, error) { return len(b), nil }

// A stream that has become silent, without even a heartbeat, ends after a minute.
func TestSilentStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c, err := newClient("unix:///pipe", nil, nil)
		require.NoError(t, err)
		c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		go func() {
			_, _ = theirs.Read(make([]byte, 4096))
			_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\n"+versionHeader+": 1\r\n\r\n{\"heartbeat\":null}\n")
			_, _ = io.Copy(io.Discard, theirs)
		}()
		began := time.Now()
		for _, err := range c.Events(t.Context()) {
			require.ErrorIs(t, err, ErrUnreachable)
			require.ErrorContains(t, err, "nothing came for")
		}
		require.Equal(t, silence, time.Since(began))
	})
}

// A job whose enqueue was interrupted has the ID for looking it up, and for enqueuing it again
// without storing it twice; a job that was refused is unchanged.
func TestEnqueueThatWasCutOffKeepsItsID(t *testing.T) {
	q := openLive(t)
	ctx := context.Background()
	app := handlerFor(t, Of(q), nil)
	c := hostile(t, func(_ http.ResponseWriter, r *http.Request) {
		app.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // it was stored, but the answer is lost
	})
	job := &pawl.Envelope{Kind: "k"}
	err := withid.Enqueue(ctx, c, job)
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = q.Job(ctx, job.ID)
	require.NoError(t, err)
	require.ErrorIs(t, withid.Enqueue(ctx, Of(q), job), pawl.ErrConflict)

	refused := &pawl.Envelope{Kind: "k", Payload: make([]byte, 2<<20)}
	s := httptest.NewServer(handlerFor(t, Of(q), &HandlerOptions{MaxBody: 4 << 20}))
	defer s.Close()
	c2, err := Dial(ctx, s.URL, nil)
	require.NoError(t, err)
	defer c2.Close()
	require.ErrorIs(t, withid.Enqueue(ctx, c2, refused), pawl.ErrPayloadTooLarge)
	require.True(t, refused.ID.IsZero())
}

// A request that is too large for the app is refused with the remedy, before all of it is sent.
func TestRequestThatIsTooLarge(t *testing.T) {
	s := httptest.NewServer(handlerFor(t, Of(openLive(t)), nil))
	defer s.Close()
	c, err := Dial(context.Background(), s.URL, nil)
	require.NoError(t, err)
	defer c.Close()
	for range 20 { // whichever of the answer and the body is first
		err = withid.Enqueue(context.Background(), c, &pawl.Envelope{Kind: "k", Payload: make([]byte, 1<<20)})
		require.ErrorIs(t, err, pawl.ErrBatchTooLarge)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
	}
}

// Invalid addresses, and a token that would be sent unencrypted, are rejected.
func TestAddressesAreChecked(t *testing.T) {
	for addr, text := range map[string]string{
		"":                         "none of",
		"jobs.db":                  "none of",
		"unix://host/socket":       "none of",
		"unix://":                  "none of",
		"ftp://host":               "none of",
		"http://user:pass@host":    "none of",
		"http://host/?a=b":         "none of",
		"http://[::1":              "address",
		"http://10.1.2.3:80":       "use https",
		"http://localhost.example": "use https",
	} {
		_, err := Dial(context.Background(), addr, &DialOptions{Token: "t"})
		require.ErrorIs(t, err, pawl.ErrInvalid, addr)
		require.ErrorContains(t, err, text, addr)
	}
	for _, addr := range []string{"http://localhost:1/x", "http://127.0.0.1:1", "http://[::1]:1", "https://127.0.0.1:1", "unix:///nobody/there"} {
		_, err := Dial(context.Background(), addr, &DialOptions{Token: "t"})
		require.ErrorIs(t, err, ErrUnreachable, addr)
		require.NotErrorIs(t, err, pawl.ErrInvalid, addr)
	}
}

// A closed client returns an error.
func TestClosedClient(t *testing.T) {
	c := hostile(t, with("1", 200, "{}"))
	require.NoError(t, c.Close())
	_, err := c.Stats(context.Background())
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.ErrorIs(t, c.Check(context.Background()), pawl.ErrClosed)
	require.False(t, errors.Is(err, ErrUnreachable))
}
