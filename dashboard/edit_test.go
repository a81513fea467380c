package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// served runs the kind mail.send on the queue of a kit until the test ends.
func (k *kit) served() {
	k.Cleanup(driver.ServeTypes(k.q, map[string]func([]byte) error{"mail.send": func(payload []byte) error {
		_, err := sendMail.Job(&pawl.Envelope{Kind: "mail.send", Payload: payload})
		return err
	}}))
}

// args returns the arguments of a job.
func (k *kit) args(id pawl.ID) mail {
	k.Helper()
	e, err := k.q.Job(k.Context(), id)
	require.NoError(k, err)
	job, err := sendMail.Job(e)
	require.NoError(k, err)
	return job.Args
}

var areas = regexp.MustCompile(`(?s)<textarea name="payload"[^>]*>(.*?)</textarea>`)

// Rule: the page of a dead job leads to a form with its arguments as JSON. If a worker has the kind, the
// new arguments are checked by its type. They replace the old ones; the job is ready, and its page shows
// the old arguments too. A hidden field never shows, and keeps its value while its text stays.
func TestEditAndRetry(t *testing.T) {
	k := newKit(t)
	id := k.restore(&pawl.Envelope{ID: pawl.ID{1, 2}, Queue: "email", Kind: "mail.send", Payload: must(driver.EncodePayload(mail{"bob", 9007199254740993, "hunter2"}))})
	path := "edit?id=" + id.String()
	require.Contains(t, k.page("job?id="+id.String()), ">Edit and retry<")
	require.Contains(t, k.page(path), "They are not checked by the type of the kind")
	k.served()
	page := k.page(path)
	require.Contains(t, page, "They are checked by the type")
	require.Contains(t, page, "job edit "+id.String()+" @FILE")
	require.NotContains(t, page, "hunter2")
	text := html.UnescapeString(areas.FindStringSubmatch(page)[1])
	require.JSONEq(t, `{"to":"bob","number":9007199254740993,"password":"(hidden)"}`, text)

	form := url.Values{"id": {id.String()}, "was": {driver.SumOf(must(driver.EncodePayload(mail{"bob", 9007199254740993, "hunter2"})))}}
	for want, text := range map[string]string{
		"number: -1":                  `{"to":"eve","number":-1}`,
		"to: ":                        `{"to":5}`,
		`has no field &#34;whom&#34;`: `{"whom":"eve"}`,
		"line 1, column":              `{"to":`,
		"is hidden":                   `{"to":"eve","token":"(hidden)"}`,
	} {
		form.Set("payload", text)
		w := k.send("POST", "edit", form)
		require.Equal(t, http.StatusBadRequest, w.Code, text)
		require.Contains(t, w.Body.String(), want)
		require.Equal(t, pawl.Dead, k.state(id))
		require.Equal(t, mail{"bob", 9007199254740993, "hunter2"}, k.args(id))
	}
	form.Set("payload", `{"to":"eve","number":9007199254740995,"password":"(hidden)"}`)
	stale := url.Values{"id": form["id"], "payload": form["payload"], "was": {"00"}}
	require.Equal(t, http.StatusConflict, k.send("POST", "edit", stale).Code, "the payload is another than the form was made of")
	w := k.send("POST", "edit", form)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "They were checked by the type")
	require.Equal(t, pawl.Ready, k.state(id))
	require.Equal(t, mail{"eve", 9007199254740995, "hunter2"}, k.args(id))
	page = k.page("job?id=" + id.String())
	require.Contains(t, page, "Earlier arguments")
	require.Contains(t, page, "bob")
	require.NotContains(t, page, "hunter2")
	require.NotContains(t, page, driver.HeaderEdits)
}

// Rule: a user who may edit but not see arguments gets an empty form, and jobs whose arguments cannot be
// replaced have no button.
func TestEditWithoutSight(t *testing.T) {
	k := newKit(t)
	k.opts.Authorize = func(_ *http.Request, a Action) bool { return a == View || a == Edit }
	k.restart()
	require.Empty(t, areas.FindStringSubmatch(k.page("edit?id=" + k.ready.String()))[1])
	require.Contains(t, k.page("job?id="+k.ready.String()), ">Edit<")
	require.NotContains(t, k.page("job?id="+k.run.String()), ">Edit<")
	w := k.get("edit?id=" + k.run.String())
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), admin.ErrWorkflowJob.Error())
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
