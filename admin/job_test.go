package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
)

// drawn returns an envelope whose fields r sets or omits.
func drawn(r *rand.Rand) *pawl.Envelope {
	texts := []string{"", "mail", "a b", "\x00\x1b[31m", "\xff\xfe", "ü\u202e", `"\`, "<&>", "{\"base64\":\"eA==\"}", "\ufffd"}
	text := func() string { return texts[r.IntN(len(texts))] }
	times := []time.Time{
		{}, noon, noon.Add(7), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 5, time.UTC), time.Unix(1<<40, 3), time.Unix(-1<<40, 999999999),
		time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 1), time.Unix(math.MaxInt64-62135596800, 2),
	}
	when := func() time.Time { return times[r.IntN(len(times))] }
	spans := []time.Duration{0, 1, 90 * time.Second, math.MaxInt64, math.MinInt64, -time.Hour}
	span := func() time.Duration { return spans[r.IntN(len(spans))] }
	policies := []pawl.Strategy{
		pawl.None(), pawl.Fixed(0), pawl.Fixed(time.Hour).Cap(0), pawl.DefaultStrategy(),
		pawl.Exponential(time.Second, 1.1).Jitter(0.15), pawl.Exponential(3, 1e300).Cap(math.MaxInt64).Jitter(0),
	}
	e := &pawl.Envelope{
		Kind: text(), Queue: text(), Origin: text(), State: pawl.States()[r.IntN(len(pawl.States()))], Payload: []byte(text()),
		Created: when(), NotBefore: when(), Deadline: when(), LeasedSince: when(), Completed: when(), BackoffSince: when(),
		Priority: int8(r.IntN(256) - 128), Seq: r.Uint64(), Cancelled: r.IntN(2) == 0,
		MaxRetries: r.IntN(1000), Attempts: r.Int(), Crashes: r.IntN(3), Failures: r.IntN(300),
		Timeout: span(), IdempotencyTTL: span(), Retain: span(), Delay: span(),
		IdempotencyKey: text(), KeyID: text(), UniqueKey: text(),
		OnConflict: pawl.Conflict(r.IntN(3)),
	}
	for i := range e.ID {
		e.ID[i] = byte(r.Uint32())
	}
	if r.IntN(2) == 0 {
		policy := policies[r.IntN(len(policies))]
		e.Policy = &policy
		e.Death = &pawl.Death{Reason: pawl.Reason(text()), At: when()}
		e.Signature = []byte(text() + "x")
		e.Result = []byte(text())
		e.Group = text()
		e.Cursor = []byte(text())
		e.After, e.AfterAny = []pawl.ID{e.ID, {1}}, []pawl.ID{{2}}
	}
	for range r.IntN(3) {
		e.UniqueIn = pawl.States()[:1+r.IntN(5)]
		if e.Headers == nil {
			e.Headers = make(map[string]string)
		}
		e.Headers[text()] = text()
		e.History = append(e.History, pawl.Failure{Attempt: r.IntN(9), At: when(), Error: text(), Stack: text()})
	}
	return e
}

// JSON preserves an envelope completely, whatever bytes its texts have: the record is equal, and
// so are the fields outside the record.
func TestJobLosesNothing(t *testing.T) {
	for seed := range uint64(race.Fewer(2000)) {
		e := drawn(rand.New(rand.NewPCG(seed, 0)))
		form := []PayloadForm{PayloadBase64, PayloadHex}[seed%2]
		text, err := json.Marshal(JobOf(e, form))
		require.NoError(t, err)
		var j Job
		require.NoError(t, strict(text, &j), "%s", text)
		back, err := j.Envelope()
		require.NoError(t, err, "%s", text)

		require.Equal(t, driver.AppendRecord(nil, e, 0), driver.AppendRecord(nil, back, 0), "seed %d: %s", seed, text)
		require.Equal(t, fmt.Sprint(e.State, e.Delay, e.OnConflict), fmt.Sprint(back.State, back.Delay, back.OnConflict))
		require.True(t, e.LeasedSince.Equal(back.LeasedSince))
		require.Equal(t, [][]pawl.ID{e.After, e.AfterAny}, [][]pawl.ID{back.After, back.AfterAny})
		require.Len(t, back.History, len(e.History))
		for i, f := range e.History {
			require.True(t, f.At.Equal(back.History[i].At), "seed %d", seed)
			f.At = back.History[i].At
			require.Equal(t, f, back.History[i], "seed %d", seed)
		}
	}
}

// The names and forms of a job's fields in JSON are stable for programs.
func TestJobForm(t *testing.T) {
	id, err := pawl.ParseID("019caa00-0000-7000-8000-000000000001")
	require.NoError(t, err)
	policy := pawl.Exponential(5*time.Second, 2).Cap(45 * time.Second).Jitter(0.15)
	for want, e := range map[string]*pawl.Envelope{
		`{"id":"019caa00-0000-7000-8000-000000000001","kind":"mail","queue":"email","origin":"email","state":"ready","reason":null,` +
			`"priority":0,"sequence":7,"attempts":0,"max_retries":3,"failures":0,"crashes":0,"created_at":"2026-03-01T12:00:00.000000000Z",` +
			`"not_before":"2026-03-01T12:00:00.000000000Z","deadline":null,"leased_at":null,"died_at":null,"completed_at":null,"backoff_since":null,` +
			`"cancelled":false,"unique_key":null,"unique_in":null,"idempotency_key":null,"idempotency_ttl":null,"retain":null,"timeout":null,` +
			`"policy":null,"policy_data":null,"key_id":null,"signature":null,"headers":{},"last_error":null,` +
			`"payload":{"size_bytes":1,"encoding":"messagepack","value":1,"base64":null,"hex":null},"history":[],"history_dropped":0}`: {
			ID: id, Kind: "mail", Queue: "email", Origin: "email", State: pawl.Ready, Seq: 7, MaxRetries: 3,
			Created: noon, NotBefore: noon, Payload: []byte{1},
		},
		`{"id":"019caa00-0000-7000-8000-000000000001","kind":{"base64":"/w=="},"queue":"email","origin":"web","state":"dead","reason":"exhausted",` +
			`"priority":-5,"sequence":7,"attempts":2,"max_retries":1,"failures":5,"crashes":1,"created_at":"2026-03-01T12:00:00.000000000Z",` +
			`"not_before":"2026-03-01T12:00:00.000000000Z","deadline":"2026-03-01T13:00:00.000000000Z","leased_at":null,"died_at":"2026-03-01T12:00:01.000000000Z",` +
			`"completed_at":null,"backoff_since":"2026-03-01T12:00:00.000000009Z","cancelled":true,"unique_key":"u","unique_in":["ready","dead"],` +
			`"idempotency_key":"i","idempotency_ttl":"24h0m0s","retain":"1h0m0s","timeout":"1m30s","policy":"exponential 5s × 2, at most 45s, jitter 0.15",` +
			`"policy_data":{"form":"exponential","base":"5s","multiplier":2,"cap":"45s","jitter":0.15,"full_jitter":false},"key_id":"k","signature":"AQ==",` +
			`"headers":{"a":{"base64":"/w=="}},"last_error":"no\u001b","payload":{"size_bytes":1,"encoding":"unknown","value":null,"base64":null,"hex":"c1"},` +
			`"history":[{"attempt":1,"at":"2026-03-01T12:00:00.000000000Z","error":""},{"attempt":2,"at":"2026-03-01T12:00:01.000000000Z","error":"no\u001b"}],"history_dropped":3}`: {
			ID: id, Kind: "\xff", Queue: "email", Origin: "web", State: pawl.Dead, Seq: 7, MaxRetries: 1, Priority: -5, Attempts: 2, Failures: 5, Crashes: 1,
			Created: noon, NotBefore: noon, Deadline: noon.Add(time.Hour), BackoffSince: noon.Add(9), Cancelled: true,
			Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: noon.Add(time.Second)}, UniqueKey: "u", UniqueIn: []pawl.State{pawl.Ready, pawl.Dead},
			IdempotencyKey: "i", IdempotencyTTL: 24 * time.Hour, Retain: time.Hour, Timeout: 90 * time.Second, Policy: &policy, KeyID: "k", Signature: []byte{1},
			Headers: map[string]string{"a": "\xff"}, Payload: []byte{0xc1},
			History: []pawl.Failure{{Attempt: 1, At: noon}, {Attempt: 2, At: noon.Add(time.Second), Error: "no\x1b"}},
		},
	} {
		text, err := json.Marshal(JobOf(e, PayloadAuto))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// A payload is written in the requested form.
func TestJobPayloadForms(t *testing.T) {
	sound, raw := packOf(t, map[string]int{"n": 1}), []byte("\xc1\x00")
	for _, test := range []struct {
		form       PayloadForm
		sound, raw string
	}{
		{PayloadNone, `null`, `null`},
		{PayloadSize, `{"size_bytes":4,"encoding":"messagepack","value":null,"base64":null,"hex":null}`, `{"size_bytes":2,"encoding":"unknown","value":null,"base64":null,"hex":null}`},
		{PayloadJSON, `{"size_bytes":4,"encoding":"messagepack","value":{"n":1},"base64":null,"hex":null}`, `{"size_bytes":2,"encoding":"unknown","value":null,"base64":null,"hex":null}`},
		{PayloadAuto, `{"size_bytes":4,"encoding":"messagepack","value":{"n":1},"base64":null,"hex":null}`, `{"size_bytes":2,"encoding":"unknown","value":null,"base64":null,"hex":"c100"}`},
		{PayloadHex, `{"size_bytes":4,"encoding":"messagepack","value":null,"base64":null,"hex":"81a16e01"}`, `{"size_bytes":2,"encoding":"unknown","value":null,"base64":null,"hex":"c100"}`},
		{PayloadBase64, `{"size_bytes":4,"encoding":"messagepack","value":null,"base64":"gaFuAQ==","hex":null}`, `{"size_bytes":2,"encoding":"unknown","value":null,"base64":"wQA=","hex":null}`},
	} {
		for payload, want := range map[string]string{string(sound): test.sound, string(raw): test.raw} {
			text, err := json.Marshal(JobOf(&pawl.Envelope{Payload: []byte(payload)}, test.form).Payload)
			require.NoError(t, err)
			require.Equal(t, want, string(text))
		}
	}
}

// A handwritten job may have less: texts instead of data, JSON instead of bytes, and none of the
// fields that the queue sets.
func TestJobWrittenByHand(t *testing.T) {
	var j Job
	require.NoError(t, strict([]byte(`{"kind":"mail","max_retries":2,"delay":"1m","on_conflict":"replace","unique_key":"u",
		"policy":"fixed 5s, full jitter","payload":{"value":{"n":1}},"created_at":"2026-03-01T13:00:00+01:00"}`), &j))
	e, err := j.Envelope()
	require.NoError(t, err)
	policy := pawl.Fixed(5 * time.Second).FullJitter()
	require.Equal(t, &pawl.Envelope{
		Kind: "mail", MaxRetries: 2, Delay: time.Minute, OnConflict: pawl.Replace, UniqueKey: "u",
		Policy: &policy, Payload: packOf(t, map[string]int{"n": 1}), Created: noon,
	}, e)
}

// Invalid fields are rejected, with a message that names them.
func TestJobRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"x"}`:             "invalid id",
		`{"priority":128}`:       "invalid priority: 128 is not between -128 and 127",
		`{"state":"lost"}`:       `invalid state: "lost" is none of`,
		`{"on_conflict":"x"}`:    `invalid on_conflict: "x" is none of`,
		`{"policy":"slowly"}`:    `invalid policy: "slowly" is not of the form`,
		`{"policy":"none, now"}`: `invalid policy`,
		`{"policy":"fixed 5"}`:   `invalid policy: its base "5" is no duration`,
		`{"policy_data":{"form":"exponential","base":"1s"}}`:                "it is exponential and has no multiplier",
		`{"policy_data":{"form":"exponential","base":"1s","multiplier":0}}`: "multiplier is 0",
		`{"policy_data":{"form":"fixed","base":"1s","cap":"x"}}`:            `its cap "x" is no duration`,
		`{"policy_data":{"form":"fixed","base":"1s","jitter":2}}`:           "jitter fraction is 2",
		`{"policy_data":{"form":"x"}}`:                                      `"x" is none of none, fixed, exponential`,
		`{"payload":{"size_bytes":5}}`:                                      "its 5 bytes were left out",
		`{"payload":{"size_bytes":5,"base64":"AA=="}}`:                      "it has 1 bytes, and size_bytes says 5",
		`{"payload":{"base64":"?"}}`:                                        "illegal base64",
		`{"payload":{"hex":"0"}}`:                                           "odd length",
		`{"payload":{"value":{"a":1,"a":2}}}`:                               `the key "a" is there twice`,
	} {
		var j Job
		require.NoError(t, json.Unmarshal([]byte(text), &j), text)
		_, err := j.Envelope()
		require.ErrorIs(t, err, pawl.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{
		`{"kind":1}`, `{"kind":{"base64":1}}`, `{"kind":{"base64":"?"}}`, `{"kind":{"text":"x"}}`, "{\"kind\":\"\xff\"}",
		`{"created_at":"today"}`, `{"created_at":1}`, `{"created_at":"@x"}`, `{"created_at":"@1.5"}`, `{"created_at":"@1.-00000001"}`,
		`{"timeout":1}`, `{"timeout":"1 hour"}`, `{"headers":{"a":1}}`, `{"headers":[{"name":"a"}]}`, `{"headers":1}`,
		`{"priority":1.5}`, `{"sequence":-1}`, `{"signature":"?"}`,
	} {
		require.Error(t, json.Unmarshal([]byte(text), new(Job)), text)
	}
}

// Any JSON gives a job or an error; a job that converts to an envelope converts back to the same
// job.
func FuzzJob(f *testing.F) {
	for seed := range uint64(8) {
		text, err := json.Marshal(JobOf(drawn(rand.New(rand.NewPCG(seed, 1))), PayloadBase64))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var j Job
		if json.Unmarshal(text, &j) != nil {
			return
		}
		e, err := j.Envelope()
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrInvalid)
			return
		}
		j = JobOf(e, PayloadBase64)
		back, err := j.Envelope()
		require.NoError(t, err)
		require.Equal(t, driver.AppendRecord(nil, e, 0), driver.AppendRecord(nil, back, 0))
	})
}
