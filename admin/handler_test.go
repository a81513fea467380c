package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// requestTest is one handwritten request.
type requestTest struct {
	rule                     string
	method, path, kind, body string
	header                   map[string]string
	host                     string
	status                   int
	code                     string
}

// run sends the request to h and requires its answer.
func (r requestTest) run(t *testing.T, h http.Handler) {
	t.Helper()
	request := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	request.Host = "localhost:80"
	if r.host != "" {
		request.Host = r.host
	}
	if r.kind != "" {
		request.Header.Set("Content-Type", r.kind)
	}
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	require.Equal(t, r.status, w.Code, "%s: %s", r.rule, w.Body)
	require.Equal(t, apiVersion, w.Header().Get(versionHeader), r.rule)
	var f failure
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &f), "%s: %s", r.rule, w.Body)
	if r.code == "" {
		require.Nil(t, f.Error, r.rule)
		return
	}
	require.NotNil(t, f.Error, r.rule)
	require.Equal(t, r.code, f.Error.Code, "%s: %s", r.rule, f.Error.Message)
	require.NotEmpty(t, f.Error.Message, r.rule)
}

const jsonType = "application/json"

// An invalid request is refused, with a reason, and changes nothing.
func TestHostileRequestsAreRefused(t *testing.T) {
	id := "01234567-89ab-7cde-8f01-23456789abcd"
	q := openLive(t)
	h := handlerFor(t, Of(q), &HandlerOptions{Logger: hclog.NewNullLogger(), MaxBody: 100_000})
	for _, test := range []requestTest{
		{rule: "an unknown path", method: "GET", path: "/v2/stats", status: 404, code: codePath},
		{rule: "the root", method: "GET", path: "/", status: 404, code: codePath},
		{rule: "a path below a path", method: "GET", path: "/v1/stats/", status: 404, code: codePath},
		{rule: "a path that climbs", method: "GET", path: "/v1/../v1/stats", status: 404, code: codePath},
		{rule: "a wrong method", method: "DELETE", path: opStats.path, status: 405, code: codeMethod},
		{rule: "a change by GET", method: "GET", path: opReap.path, status: 405, code: codeMethod},
		{rule: "an action by GET", method: "GET", path: opDo.path, status: 405, code: codeMethod},
		{rule: "an invented method", method: "BREW", path: opList.path, status: 405, code: codeMethod},
		{rule: "an ID that is none", method: "POST", path: opJob.path, kind: jsonType, body: `{"id":"7"}`, status: 400, code: "invalid"},
		{rule: "no ID", method: "GET", path: opJob.path, status: 404, code: "not_found"},
		{rule: "an ID in the path", method: "GET", path: opJob.path + "/" + id, status: 404, code: codePath},
		{rule: "an ID that is not there", method: "POST", path: opJob.path, kind: jsonType, body: `{"id":"` + id + `"}`, status: 404, code: "not_found"},
		{rule: "a parameter", method: "GET", path: opStats.path + "?queue=a", status: 400, code: "invalid"},
		{rule: "a field of another operation", method: "POST", path: opStats.path, kind: jsonType, body: `{"queue":"a"}`, status: 400, code: "invalid"},
		{rule: "a negative limit", method: "POST", path: opList.path, kind: jsonType, body: `{"limit":-1}`, status: 400, code: "invalid"},
		{rule: "a limit that is no integer", method: "POST", path: opList.path, kind: jsonType, body: `{"limit":1.5}`, status: 400, code: "invalid"},
		{rule: "a limit beyond all integers", method: "POST", path: opList.path, kind: jsonType, body: `{"limit":99999999999999999999}`, status: 400, code: "invalid"},
		{rule: "a cursor that is none", method: "POST", path: opList.path, kind: jsonType, body: `{"after":"../../x"}`, status: 400, code: "invalid"},
		{rule: "a state that is none", method: "POST", path: opList.path, kind: jsonType, body: `{"state":"alive"}`, status: 400, code: "invalid"},
		{rule: "a detail that is none", method: "POST", path: opList.path, kind: jsonType, body: `{"detail":"all"}`, status: 400, code: "invalid"},
		{rule: "a time that is none", method: "POST", path: opList.path, kind: jsonType, body: `{"since":"yesterday"}`, status: 400, code: "invalid"},
		{rule: "a misspelled condition", method: "POST", path: opList.path, kind: jsonType, body: `{"quue":"mail"}`, status: 400, code: "invalid"},
		{rule: "more conditions than any batch", method: "POST", path: opList.path, kind: jsonType, body: `{"queues":["a"` + strings.Repeat(`,"a"`, pawl.MaxBatchJobs) + `]}`, status: 413, code: "batch_too_large"},
		{rule: "a dry run as an action", method: "POST", path: opDo.path, kind: jsonType, body: `{"verb":"retry","ids":[],"dry_run":true}`, status: 400, code: "invalid"},
		{rule: "an action as a dry run", method: "POST", path: opDryRun.path, kind: jsonType, body: `{"verb":"retry","ids":[]}`, status: 400, code: "invalid"},
		{rule: "a job that is null", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[null]}`, status: 400, code: "invalid"},
		{rule: "a body where none is due", method: "GET", path: opStats.path, body: "{}", status: 400, code: "invalid"},

		{rule: "a form", method: "POST", path: opReap.path, kind: "application/x-www-form-urlencoded", body: "a=b", status: 415, code: codeType},
		{rule: "a plain text, as a form can send", method: "POST", path: opPause.path, kind: "text/plain", body: `{"queue":"a"}`, status: 415, code: codeType},
		{rule: "no type", method: "POST", path: opPause.path, body: `{"queue":"a"}`, status: 415, code: codeType},
		{rule: "a broken type", method: "POST", path: opPause.path, kind: "application/json;;=", body: `{"queue":"a"}`, status: 415, code: codeType},

		{rule: "no body", method: "POST", path: opPause.path, kind: jsonType, status: 400, code: "invalid"},
		{rule: "half a body", method: "POST", path: opPause.path, kind: jsonType, body: `{"queue":`, status: 400, code: "invalid"},
		{rule: "two bodies", method: "POST", path: opPause.path, kind: jsonType, body: `{"queue":"a"}{"queue":"b"}`, status: 400, code: "invalid"},
		{rule: "another shape", method: "POST", path: opPause.path, kind: jsonType, body: `["a"]`, status: 400, code: "invalid"},
		{rule: "an unknown field", method: "POST", path: opPause.path, kind: jsonType, body: `{"queue":"a","until":"tomorrow"}`, status: 400, code: "invalid"},
		{rule: "a queue without a name", method: "POST", path: opPause.path, kind: jsonType, body: `{}`, status: 400, code: "invalid"},
		{rule: "a name too long", method: "POST", path: opPause.path, kind: jsonType, body: `{"queue":"` + strings.Repeat("q", 256) + `"}`, status: 400, code: "invalid"},
		{rule: "deep nesting", method: "POST", path: opPause.path, kind: jsonType, body: strings.Repeat(`{"queue":`, 5000), status: 400, code: "invalid"},
		{rule: "deep lists", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":` + strings.Repeat(`[`, 50_000), status: 400, code: "invalid"},
		{rule: "a huge body", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[` + strings.Repeat(" ", 100_000) + `]}`, status: 413, code: "batch_too_large"},
		{rule: "more jobs than any batch", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{}` + strings.Repeat(",{}", pawl.MaxBatchJobs) + `]}`, status: 413, code: "batch_too_large"},
		{rule: "a job of no kind", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{}]}`, status: 400, code: "invalid"},
		{rule: "a priority too high", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{"kind":"k","priority":128}]}`, status: 400, code: "invalid"},
		{rule: "a payload that nests too deep", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[{"kind":"k","payload":{"value":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}]}`, status: 400, code: "invalid"},
		{rule: "effects to enqueue", method: "POST", path: opEnqueue.path, kind: jsonType, body: `{"jobs":[],"effects":[{"kind":"k","key":"k","until":null}]}`, status: 400, code: "invalid"},
		{rule: "an action without a verb", method: "POST", path: opDo.path, kind: jsonType, body: `{"ids":[]}`, status: 400, code: "invalid"},
		{rule: "an action on no ID", method: "POST", path: opDo.path, kind: jsonType, body: `{"verb":"retry","ids":["x"]}`, status: 400, code: "invalid"},
		{rule: "an action on too many", method: "POST", path: opDo.path, kind: jsonType, body: `{"verb":"retry","ids":["` + id + `"` + strings.Repeat(`,"`+id+`"`, MaxIDs) + `]}`, status: 400, code: "invalid"},

		{rule: "a name of another host", method: "GET", path: opStats.path, host: "evil.example", status: 403, code: "denied"},
		{rule: "no host", method: "GET", path: opStats.path, host: " ", status: 403, code: "denied"},
		{rule: "a page of another site", method: "GET", path: pathBackup, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403, code: "denied"},
		{rule: "this host by name", method: "GET", path: opStats.path, host: "LOCALHOST.:8080", status: 200},
		{rule: "this host by its number", method: "GET", path: opStats.path, host: "[::1]:8080", status: 200},
		{rule: "a type with a character set", method: "POST", path: opReap.path, kind: "application/json; charset=utf-8", status: 200},
	} {
		test.run(t, h)
	}
	s, err := q.Stats(context.Background())
	require.NoError(t, err)
	require.Empty(t, s.Queues)
}

// A body of unknown length is bounded like any other.
func TestHugeBodyOfUnknownLengthIsRefused(t *testing.T) {
	h := handlerFor(t, Of(openLive(t)), &HandlerOptions{Logger: hclog.NewNullLogger(), MaxBody: 100_000})
	r := httptest.NewRequest("POST", opEnqueue.path, io.MultiReader(strings.NewReader(`{"jobs":[`+strings.Repeat(" ", 100_000)+`]}`)))
	require.Negative(t, r.ContentLength)
	r.Host = "localhost"
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, w.Body)
}

// Rule: a handler serves only if the options say who may call. An empty token, for example from
// an unset variable, is an error and does not admit everyone.
func TestHandlerNeedsTokenOrNoAuth(t *testing.T) {
	for _, test := range []struct {
		rule string
		opts *HandlerOptions
		says string
	}{
		{"no options", nil, "set NoAuth"},
		{"an empty token", &HandlerOptions{Token: os.Getenv("PAWL_TEST_NO_SUCH_TOKEN")}, "set NoAuth"},
		{"both", &HandlerOptions{Token: "secret", NoAuth: true}, "both set"},
		{"a blank token", &HandlerOptions{Token: "  "}, "white space"},
		{"a token with a line break", &HandlerOptions{Token: "secret\n"}, "white space"},
		{"an empty host", &HandlerOptions{Token: "secret", Hosts: []string{""}}, "Hosts"},
	} {
		h, err := Handler(&scripted{}, test.opts)
		require.ErrorIs(t, err, pawl.ErrInvalid, test.rule)
		require.ErrorContains(t, err, test.says, test.rule)
		require.Nil(t, h, test.rule)
	}
	h, err := Handler(&scripted{}, &HandlerOptions{NoAuth: true, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	requestTest{rule: "NoAuth serves everybody", method: "GET", path: opStats.path, status: 200}.run(t, h)
}

// Rule: a handler with an empty token admits nobody, however it was created.
func TestEmptyTokenLetsNobodyIn(t *testing.T) {
	h := newHandler(&scripted{}, &HandlerOptions{Logger: hclog.NewNullLogger()}, context.Background())
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer  "} {
		requestTest{rule: given, method: "GET", path: opStats.path, header: map[string]string{"Authorization": given}, status: 401, code: "denied"}.run(t, h)
	}
}

// Rule: a client rejects a token that cannot arrive unchanged.
func TestClientRefusesBlankToken(t *testing.T) {
	for _, token := range []string{" ", "secret\n", "a b", "\x00"} {
		_, err := Dial(context.Background(), "https://localhost:1", &DialOptions{Token: token})
		require.ErrorIs(t, err, pawl.ErrInvalid, token)
	}
}

// A handler with a token refuses everyone else, and reveals nothing.
func TestTokenIsRequired(t *testing.T) {
	h := handlerFor(t, &scripted{}, &HandlerOptions{Token: "secret", Logger: hclog.NewNullLogger()})
	for _, test := range []requestTest{
		{rule: "no token", status: 401, code: "denied"},
		{rule: "an empty one", header: map[string]string{"Authorization": "Bearer "}, status: 401, code: "denied"},
		{rule: "another one", header: map[string]string{"Authorization": "Bearer secre"}, status: 401, code: "denied"},
		{rule: "a longer one", header: map[string]string{"Authorization": "Bearer secret2"}, status: 401, code: "denied"},
		{rule: "another scheme", header: map[string]string{"Authorization": "Basic secret"}, status: 401, code: "denied"},
		{rule: "the token", header: map[string]string{"Authorization": "Bearer secret"}, status: 200},
	} {
		test.method, test.path = "GET", opStats.path
		test.run(t, h)
	}
	requestTest{rule: "an unknown path without the token", method: "GET", path: "/x", status: 401, code: "denied"}.run(t, h)
}

// A read-only handler accepts no change, but can be read.
func TestReadOnlyTakesNoChanges(t *testing.T) {
	h := handlerFor(t, Of(openLive(t)), &HandlerOptions{ReadOnly: true, Logger: hclog.NewNullLogger()})
	for _, path := range []string{opEnqueue.path, opDo.path, opPause.path, opResume.path, opReap.path, opRestore.path} {
		requestTest{rule: path, method: "POST", path: path, kind: jsonType, body: "{}", status: 403, code: "denied"}.run(t, h)
	}
	requestTest{rule: "a list", method: "GET", path: opList.path, status: 200}.run(t, h)
}

// A panic is answered, and the server continues.
func TestPanicIsAnswered(t *testing.T) {
	h := handlerFor(t, &scripted{list: func(context.Context, Query) (Page, error) { panic("row 7") }}, &HandlerOptions{Logger: hclog.NewNullLogger()})
	requestTest{rule: "a panic", method: "GET", path: opList.path, status: 500, code: codeInternal}.run(t, h)
	for range 3 { // each request has released its gate
		requestTest{rule: "again", method: "GET", path: opList.path, status: 500, code: codeInternal}.run(t, h)
	}
	requestTest{rule: "another request", method: "GET", path: opStats.path, status: 200}.run(t, h)
}

// People use curl, and get the payload of a job as JSON.
func TestPayloadIsJSONForPeople(t *testing.T) {
	q := openLive(t)
	h := handlerFor(t, Of(q), &HandlerOptions{Logger: hclog.NewNullLogger()})
	requestTest{
		rule: "a job as people write it", method: "POST", path: opEnqueue.path, kind: jsonType,
		body:   `{"jobs":[{"kind":"mail","payload":{"value":{"to":"ada"}}}]}`,
		status: 200,
	}.run(t, h)
	listing, err := q.List(context.Background(), pawl.Filter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, listing.Jobs, 1)

	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", opJob.path, strings.NewReader(`{"id":"`+listing.Jobs[0].Job.ID.String()+`"}`))
	r.Host = "localhost"
	r.Header.Set("Content-Type", jsonType)
	h.ServeHTTP(w, r)
	var got Job
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.JSONEq(t, `{"to":"ada"}`, string(got.Payload.Value))
}

// A page reports an unreadable job in its position.
func TestDamagedJobKeepsItsPlace(t *testing.T) {
	id, other := pawl.NewID(noon), pawl.NewID(noon)
	a := &scripted{list: func(context.Context, Query) (Page, error) {
		return Page{Next: "n", Jobs: []pawl.Listed{{Job: &pawl.Envelope{ID: id}, Err: pawl.ErrCorrupt}, {Job: &pawl.Envelope{ID: other, Kind: "k"}}}}, nil
	}}
	s := httptest.NewServer(handlerFor(t, a, &HandlerOptions{Logger: hclog.NewNullLogger()}))
	defer s.Close()
	c, err := Dial(context.Background(), s.URL, nil)
	require.NoError(t, err)
	defer c.Close()
	for _, detail := range []Detail{Summary, IDs, Whole} {
		page, err := c.List(context.Background(), Query{Detail: detail})
		require.NoError(t, err)
		require.Equal(t, "n", page.Next)
		require.Len(t, page.Jobs, 2)
		require.Equal(t, id, page.Jobs[0].Job.ID)
		require.ErrorIs(t, page.Jobs[0].Err, pawl.ErrCorrupt)
		require.Equal(t, other, page.Jobs[1].Job.ID)
		require.NoError(t, page.Jobs[1].Err)
	}
}

// Rule: a request with a large body and a large answer takes one slot, not two, so requests that
// hold all slots never wait for each other.
func TestLargeRequestTakesOnePlace(t *testing.T) {
	var inside sync.WaitGroup
	inside.Add(largeBodies)
	a := &scripted{do: func(_ context.Context, _ Action, ids []pawl.ID) ([]error, error) {
		inside.Done()
		inside.Wait()
		errs := make([]error, len(ids))
		for i, id := range ids {
			errs[i] = fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
		}
		return errs, nil
	}}
	h := newHandler(a, &HandlerOptions{NoAuth: true}, context.Background())
	h.lists = newGate("lists", largeBodies) // what is tried is the other gate
	s := httptest.NewServer(h)
	defer s.Close()
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = `"` + pawl.NewID(time.Now()).String() + `"`
	}
	body := `{"verb":"retry","dry_run":true,"ids":[` + strings.Join(ids, ",") + `]}`
	statuses := make([]int, largeBodies)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			r, err := http.Post(s.URL+"/v1/jobs/dry-run", "application/json", strings.NewReader(body))
			if err == nil {
				statuses[i] = r.StatusCode
				_ = r.Body.Close()
			}
		})
	}
	all.Wait()
	for _, status := range statuses {
		require.Equal(t, http.StatusOK, status)
	}
}

// Rule: the names of hosts are compared without case.
func TestHostInAnotherCase(t *testing.T) {
	h := handlerFor(t, &scripted{}, &HandlerOptions{Hosts: []string{"App.Example.com"}})
	r := httptest.NewRequest(http.MethodGet, "/v1/stats", nil)
	r.Host = "App.Example.com"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
}
