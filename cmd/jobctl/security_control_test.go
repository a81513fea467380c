package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
)

// around returns a byte in the middle of a text, as a terminal would receive it. No name
// contains a NUL unless the file was forged.
func around(b int) string { return "a" + string([]byte{byte(b)}) + "[31mz" }

func nameAround(b int) string { return strings.ReplaceAll(around(b), "\x00", "(nul)") }

// someBytes returns all bytes, and under the race detector every fourth, different ones in each
// run.
func someBytes() (some []int) {
	step := 4 / race.Fewer(4)
	for b := rand.IntN(step); b < 256; b += step {
		some = append(some, b)
	}
	return some
}

// everyByte adds a dead job for each byte, with the byte in every text field.
func everyByte(f *file) {
	f.t.Helper()
	for b := range 256 {
		text := around(b)
		f.kill(pawl.Envelope{
			Queue: nameAround(b), Kind: nameAround(b), Origin: nameAround(b),
			Headers: map[string]string{nameAround(b): text}, UniqueKey: text, IdempotencyKey: text, KeyID: text, Signature: []byte(text),
			Payload: pack(f.t, map[string]any{text: []any{text, []byte(text)}}),
		}, pawl.ReasonPermanent, "first "+text+"\nsecond "+text)
	}
}

// forgeNames writes records that no queue would write: a NUL in names, and unknown reasons.
func forgeNames(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		jobs := tx.Bucket([]byte("pawl")).Bucket([]byte("jobs"))
		for b := range 256 {
			key := id(b + 1)
			e, apart, err := driver.ParseRecord(jobs.Get(key[:]))
			if err != nil {
				return err
			}
			text := around(b)
			e.Kind, e.Origin, e.Death.Reason = text, text, pawl.Reason(text)
			e.Headers = map[string]string{text: text}
			if err := jobs.Put(key[:], driver.AppendRecord(nil, e, apart)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
}

// requireHarmless requires that a text contains nothing that a terminal obeys.
func requireHarmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%s printed what is no UTF-8: %q", what, text)
	}
	for _, r := range text {
		if r != '\n' && !plain.Harmless(r) {
			t.Fatalf("%s printed %U: %q", what, r, text)
		}
	}
}

// Rule: no byte of the file, in any field, reaches a terminal as a control character, in tables
// or JSON, in data or messages.
func TestNoControlByteIsPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", everyByte)
	for _, forged := range []bool{false, true} {
		if forged {
			forgeNames(t, "app.db")
		}
		lines := []string{"stats", "stats -o json", "job list -n 0", "job list -n 0 -o json", "job list -n 0 -o jsonl", "dead list -n 0", "dead list -n 0 -o json"}
		for _, b := range someBytes() {
			lines = append(lines, fmt.Sprintf("job show %s", id(b+1)), fmt.Sprintf("job show -o json %s", id(b+1)))
		}
		for _, line := range lines {
			got := jobctl(t, append([]string{"--db", "app.db"}, words(line)...)...)
			want := exitOK
			if forged && (strings.Contains(line, " list") || strings.Contains(line, id(1).String())) {
				want = exitDamaged // no kind of the file has a NUL in its name
			}
			require.Equal(t, want, got.code, "%s: %s", line, got.stderr)
			requireHarmless(t, line, got.stdout)
			requireHarmless(t, line, got.stderr)
			require.NotContains(t, got.stdout, "\x1b")
		}
	}
}

// Rule: a program reads the exact text, although JSON escapes it for terminals.
func TestEveryByteSurvivesJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", everyByte)
	for _, b := range someBytes() {
		got := jobctl(t, "--db", "app.db", "job", "show", "-o", "json", id(b+1).String())
		require.Equal(t, exitOK, got.code)
		var shown struct {
			Kind, Queue    admin.Text
			UniqueKey      admin.Text `json:"unique_key"`
			IdempotencyKey admin.Text `json:"idempotency_key"`
			Headers        admin.Headers
		}
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
		name, text := nameAround(b), around(b)
		require.EqualValues(t, name, shown.Kind)
		require.EqualValues(t, name, shown.Queue)
		require.EqualValues(t, text, shown.UniqueKey)
		require.EqualValues(t, text, shown.IdempotencyKey)
		require.Equal(t, admin.Headers{name: text}, shown.Headers)
	}
}

// Rule: text from the command line, from names, and from errors is escaped in messages too.
func TestNoControlByteIsPrintedInMessages(t *testing.T) {
	build(t, func(f *file) {
		f.add(pawl.Envelope{Queue: "\x1b[31mred"})
		require.NoError(t, f.q.Settle(context.Background(), f.fetch("\x1b[31mred").Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	})
	for _, b := range someBytes() {
		if b > ' ' && b < 0x7f {
			continue // what stands on a key is plain.Harmless, and the others take long enough
		}
		text := around(b)
		for _, args := range [][]string{
			{text}, {"job", text}, {"--" + text}, {"-o", text}, {"--db", text, "stats"}, {"--db", "app.db", "job", "show", text},
			{"--db", "app.db", "job", "list", "-s", text}, {"--db", "app.db", "job", "list", "-q", text}, {"--db", "app.db", "job", "list", "-n", text},
			{"--db", "app.db", "dead", "retry", text}, {"--db", "app.db", "dead", "retry", "--all", "-q", text}, {"--db", "app.db", "stats", text},
			{"help", text},
		} {
			got := jobctl(t, args...)
			what := fmt.Sprintf("%q", args)
			requireHarmless(t, what, got.stdout)
			requireHarmless(t, what, got.stderr)
		}
	}
}
