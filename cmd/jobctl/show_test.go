package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// Everything in the file about a job is printed.
func TestJobShow(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, `id          019caa00-0000-7000-8000-000000000001
kind        mail.send
queue       email
state       dead
reason      exhausted
died        2026-03-01T09:01:00.000Z  (2h ago)
attempts    2 of 2
failures    2
crashes     0
priority    5
sequence    1
created     2026-03-01T09:00:00.000Z  (3h ago)
not before  2026-03-01T09:00:30.000Z  (2h ago)
timeout     1m30s
policy      exponential 5s × 2, at most 45s, jitter 0.15
headers     2
  tenant: acme
  trace-id: 4bf92f35
payload     20 bytes of MessagePack
  {"to":"ada@example.com"}
history     2 failed attempts
  attempt 1  2026-03-01T09:00:30.000Z  (2h ago)
    dial tcp 192.0.2.7:25: connection refused
  attempt 2  2026-03-01T09:01:00.000Z  (2h ago)
    timeout
    after 30s
`, ""}, jobctl(t, "--db", "app.db", "job", "show", id(1).String()))
}

// The state of a leased job in a file at rest is explained: no process runs it.
func TestJobShowLeased(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, `id          019caa00-0000-7000-8000-000000000004
kind        mail.send
queue       email
state       leased; its process is gone, the next open makes it ready
attempts    0 of 4
failures    0
crashes     0
priority    0
sequence    4
created     2026-03-01T09:01:30.000Z  (2h ago)
not before  2026-03-01T09:01:30.000Z  (2h ago)
leased      2026-03-01T11:56:02.000Z  (4m02s ago)
timeout     the worker's
policy      the kind's or the worker's
headers     none
payload     0 bytes
history     no failed attempt
`, ""}, jobctl(t, "--db", "app.db", "job", "show", id(4).String()))
}

// A job that was moved shows its first queue.
func TestJobShowOrigin(t *testing.T) {
	build(t, func(f *file) {
		f.add(pawl.Envelope{Queue: "here", Origin: "there"})
	})
	got := jobctl(t, "--db", "app.db", "job", "show", id(1).String())
	require.Contains(t, got.stdout, "queue       here\norigin      there\nstate       ready\n")
}

// The JSON of a job contains that of a list, and more.
func TestJobShowAsJSON(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, "--db", "app.db", "job", "show", id(1).String(), "-o", "json")
	require.JSONEq(t, `{
		"id": "019caa00-0000-7000-8000-000000000001", "kind": "mail.send", "queue": "email", "origin": "email",
		"state": "dead", "reason": "exhausted", "priority": 5, "sequence": 1,
		"attempts": 2, "max_retries": 1, "failures": 2, "crashes": 0,
		"created_at": "2026-03-01T09:00:00.000000000Z", "not_before": "2026-03-01T09:00:30.000000000Z",
		"leased_at": null, "died_at": "2026-03-01T09:01:00.000000000Z", "completed_at": null,
		"deadline": null, "cancelled": false, "unique_key": null, "idempotency_key": null,
		"backoff_since": null, "unique_in": null, "idempotency_ttl": null, "retain": null, "key_id": null, "signature": null,
		"timeout": "1m30s", "policy": "exponential 5s × 2, at most 45s, jitter 0.15",
		"policy_data": {"form": "exponential", "base": "5s", "multiplier": 2, "cap": "45s", "jitter": 0.15, "full_jitter": false},
		"headers": {"tenant": "acme", "trace-id": "4bf92f35"}, "last_error": "timeout\nafter 30s",
		"payload": {"size_bytes": 20, "encoding": "messagepack", "value": {"to": "ada@example.com"}, "base64": null, "hex": null},
		"history": [
			{"attempt": 1, "at": "2026-03-01T09:00:30.000000000Z", "error": "dial tcp 192.0.2.7:25: connection refused"},
			{"attempt": 2, "at": "2026-03-01T09:01:00.000000000Z", "error": "timeout\nafter 30s"}
		],
		"history_dropped": 0,
		"progress": null
	}`, got.stdout)
	require.Equal(t, exitOK, got.code)
	require.Empty(t, got.stderr)
}

// Each form of a payload, for people and for programs.
func TestJobShowPayload(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("x", 100)}
	build(t, func(f *file) {
		f.add(pawl.Envelope{Payload: pack(t, long)})                                             // 1
		f.add(pawl.Envelope{Payload: []byte("\x00\xffraw \x1b")})                                // 2
		f.add(pawl.Envelope{Payload: pack(t, strings.Repeat("é", 5000))})                        // 3
		f.add(pawl.Envelope{Payload: []byte(strings.Repeat("a plain text ", 400))})              // 4
		f.add(pawl.Envelope{Payload: pack(t, map[string]any{"evil": "\x1b]0;x\a\u202e\u0085"})}) // 5
	})
	cases := []struct {
		n    int
		form string
		want string
	}{
		{1, "auto", "payload     108 bytes of MessagePack\n  {\n    \"text\": \"" + strings.Repeat("x", 100) + "\"\n  }\nhistory"},
		{1, "hex", "payload     108 bytes\n  00000000  81 a4 74 65 78 74 d9 64  78 78 78 78 78 78 78 78  |..text.dxxxxxxxx|\n"},
		{1, "none", "payload     108 bytes\nhistory"},
		{2, "auto", "payload     7 bytes\n  00000000  00 ff 72 61 77 20 1b                              |..raw .|\nhistory"},
		{2, "json", "payload     7 bytes, not MessagePack: it is more than one value\nhistory"},
		{3, "auto", "é\n  … cut at 4.0 KiB; -o json prints all of it\nhistory"},
		{4, "hex", "| text a plain te|\n  … cut after the first 816 bytes; -o json prints all of it\nhistory"},
		{5, "json", `  {"evil":"\u001b]0;x\u0007\u202e\u0085"}` + "\n"},
	}
	for _, c := range cases {
		got := jobctl(t, "--db", "app.db", "job", "show", id(c.n).String(), "--payload", c.form)
		require.Equal(t, exitOK, got.code)
		require.Contains(t, got.stdout, c.want, "job %d as %s", c.n, c.form)
		require.Less(t, len(got.stdout), 6<<10)
	}

	for _, c := range []struct {
		n    int
		form string
		want string
	}{
		{2, "auto", `{"size_bytes":7,"encoding":"unknown","value":null,"base64":null,"hex":"00ff726177201b"}`},
		{2, "json", `{"size_bytes":7,"encoding":"unknown","value":null,"base64":null,"hex":null}`},
		{5, "hex", `{"size_bytes":18,"encoding":"messagepack","value":null,"base64":null,"hex":"81a46576696cab1b5d303b7807e280aec285"}`},
		{5, "none", `{"size_bytes":18,"encoding":"messagepack","value":null,"base64":null,"hex":null}`},
		{2, "base64", `{"size_bytes":7,"encoding":"unknown","value":null,"base64":"AP9yYXcgGw==","hex":null}`},
		{3, "auto", `"value":"` + strings.Repeat("é", 5000) + `"`},
	} {
		got := jobctl(t, "--db", "app.db", "job", "show", id(c.n).String(), "--payload", c.form, "-o", "jsonl")
		require.Contains(t, got.stdout, c.want, "job %d as %s", c.n, c.form)
		require.True(t, json.Valid([]byte(got.stdout)))
	}
}

// The content of a job cannot affect a terminal outside its lines.
func TestJobShowEscapes(t *testing.T) {
	evil := "a\x1b[31m\u202e\xffz"
	const safe = `a\x1b[31m\u202e\xffz`
	build(t, func(f *file) {
		f.kill(pawl.Envelope{Queue: evil, Kind: evil, UniqueKey: evil, IdempotencyKey: evil, Headers: map[string]string{evil: "line\nbreak " + evil}},
			pawl.ReasonPermanent, "first "+evil+"\nerror: second\r\n")
	})
	got := jobctl(t, "--db", "app.db", "job", "show", id(1).String())
	for _, want := range []string{
		"kind        " + safe + "\n",
		"queue       " + safe + "\n",
		"unique      " + safe + "\n",
		"idempotency " + safe + "\n",
		"  " + safe + `: line\nbreak ` + safe + "\n",
		"    first " + safe + "\n    error: second\\x0d\n",
	} {
		require.Contains(t, got.stdout, want)
	}
	for _, line := range []string{"stats", "job list", "dead list", "job list -o json", "job show -o json " + id(1).String()} {
		got := jobctl(t, append([]string{"--db", "app.db"}, words(line)...)...)
		for _, r := range got.stdout {
			require.True(t, r == '\n' || plain.Harmless(r), "%s prints %q", line, r)
		}
		require.NotContains(t, got.stdout, "\xff", line)
	}
}

// A truncated history reports how much is missing.
func TestJobShowDroppedHistory(t *testing.T) {
	const runs = pawl.HistoryKeepHead + pawl.HistoryKeepTail + 3
	build(t, func(f *file) {
		f.add(pawl.Envelope{Queue: "q", MaxRetries: runs})
		for range runs {
			f.pass(time.Second)
			require.NoError(t, f.q.Settle(context.Background(), f.fetch("q").Nack(0, errors.New("no"))))
		}
	})
	got := jobctl(t, "--db", "app.db", "job", "show", id(1).String())
	require.Contains(t, got.stdout, "history     203 failed attempts, 3 of them no longer kept\n  attempt 1  ")
	require.Contains(t, jobctl(t, "--db", "app.db", "job", "show", id(1).String(), "-o", "jsonl").stdout, `"history_dropped":3`)
}

// A missing job, a damaged file and a wrong ID have different errors.
func TestJobShowUnknown(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{exitNoMatch, "", `error: job 019caa00-0000-7000-8000-000000000099: no such job
  It is done, or it never existed; 'jobctl job list' shows the jobs.
`}, jobctl(t, "--db", "app.db", "job", "show", id(99).String()))
	require.Equal(t, outcomeOf{exitUsage, "", `error: invalid id: "17" is not of the form 01234567-89ab-7cde-8f01-23456789abcd
  See 'jobctl job show --help'.
`}, jobctl(t, "--db", "app.db", "job", "show", "17"))
}

// Rule: job show prints the first jobs that a job waits for, and how many more there are.
func TestJobShowPrerequisites(t *testing.T) {
	build(t, func(f *file) {
		var all []pawl.ID
		for n := range 12 {
			f.add(pawl.Envelope{})
			all = append(all, id(n+1))
		}
		f.add(pawl.Envelope{After: all[:1], AfterAny: all[1:]})
	})
	out := jobctl(t, "--db", "app.db", "job", "show", id(13).String()).stdout
	require.Contains(t, out, fmt.Sprintf("\nafter       %s\nafter any   %s\n            %s\n", id(1), id(2), id(3)))
	require.Contains(t, out, fmt.Sprintf("\n            %s\n            and 1 more; -o json has all\n", id(11)))
	require.NotContains(t, out, id(12).String())
}

// Rule: job show prints how far the attempts of a job got.
func TestJobShowCursor(t *testing.T) {
	build(t, func(f *file) { f.add(pawl.Envelope{Cursor: pack(f.t, map[string]int{"Line": 2000})}) })
	require.Contains(t, jobctl(t, "--db", "app.db", "job", "show", id(1).String()).stdout, `
cursor      9 bytes of MessagePack
  {"Line":2000}
`)
	require.Contains(t, jobctl(t, "--db", "app.db", "job", "show", "-o", "json", id(1).String()).stdout, `"cursor": {`)
}

// Rule: job show prints the key of a job, and for a dead job that holds it, how to release it.
func TestShowOfAKey(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", heldKey)
	require.Contains(t, jobctl(t, "--db", "app.db", "job", "show", id(1).String()).stdout,
		"\nkey         a; this dead job holds it, and 'jobctl key release' lets its other jobs run\n")
	require.Contains(t, jobctl(t, "--db", "app.db", "job", "show", id(2).String()).stdout, "\nkey         a\n")
}
