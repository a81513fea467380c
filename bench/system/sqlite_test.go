package system

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// testEmbedded checks that the payloads arrive unchanged and once each, that Work ends
// soon, and that another database starts empty.
func testEmbedded(t *testing.T, s System) {
	t.Helper()
	q := openEmbedded(t, s)
	payloads := make(map[string]bool)
	for range 200 {
		payload := make([]byte, mathrand.IntN(5001))
		rand.Read(payload)
		payloads[string(payload)] = true
	}
	var batch [][]byte
	for payload := range payloads {
		if len(batch) < 100 {
			batch = append(batch, []byte(payload))
		} else if err := q.Enqueue(t.Context(), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.EnqueueAll(t.Context(), batch); err != nil {
		t.Fatal(err)
	}

	seen := make(map[string]int)
	workEmbedded(t, q, limit, func(payload []byte) bool {
		seen[string(payload)]++
		return len(seen) == len(payloads)
	})
	for payload, n := range seen {
		if n != 1 || !payloads[payload] {
			t.Errorf("a payload of %d bytes arrived %d times, enqueued: %t", len(payload), n, payloads[payload])
		}
	}
	if len(seen) != len(payloads) {
		t.Errorf("%d of %d payloads arrived", len(seen), len(payloads))
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}

	q = openEmbedded(t, s)
	workEmbedded(t, q, 500*time.Millisecond, func(payload []byte) bool {
		t.Errorf("a new queue has a job of %d bytes", len(payload))
		return true
	})
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// testEmbeddedWakes checks that a job that is added while the workers run is run, as
// the latency of a queue is measured, and that adding goes on when they have stopped.
func testEmbeddedWakes(t *testing.T, s System) {
	t.Helper()
	q := openEmbedded(t, s)
	defer q.Close()
	arrived := make(chan []byte)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- q.Work(ctx, 1, func(payload []byte) { arrived <- payload })
	}()
	for range 5 {
		if err := q.Enqueue(t.Context(), []byte{7}); err != nil {
			t.Fatal(err)
		}
		select {
		case payload := <-arrived:
			if !bytes.Equal(payload, []byte{7}) {
				t.Errorf("%v arrived", payload)
			}
		case <-time.After(limit):
			t.Fatal("the job did not arrive")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := q.Enqueue(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// testEmbeddedPragmas reads the settings back on every connection that the pool gives.
func testEmbeddedPragmas(t *testing.T, db *sql.DB, j journal) {
	t.Helper()
	synchronous := map[string]int{"OFF": 0, "NORMAL": 1, "FULL": 2, "EXTRA": 3}[j.synchronous]
	open := db.Stats().MaxOpenConnections
	if open == 0 {
		t.Fatal("the pool has no limit, so not every connection can be asked")
	}
	for range open {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // at the end, so that each is another connection
		var gotMode string
		var gotSynchronous int
		if err := conn.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&gotMode); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&gotSynchronous); err != nil {
			t.Fatal(err)
		}
		if !strings.EqualFold(gotMode, j.mode) || gotSynchronous != synchronous {
			t.Errorf("journal_mode=%s, synchronous=%d, want %s", gotMode, gotSynchronous, j)
		}
	}
}

func openEmbedded(t *testing.T, s System) Queue {
	t.Helper()
	q, err := s.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// workEmbedded runs 16 workers until done reports true or the time is over. Only one
// done runs at a time.
func workEmbedded(t *testing.T, q Queue, during time.Duration, done func([]byte) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var mu sync.Mutex
	ended := make(chan error)
	go func() {
		ended <- q.Work(ctx, 16, func(payload []byte) {
			mu.Lock()
			defer mu.Unlock()
			if done(payload) {
				cancel()
			}
		})
	}()
	<-ctx.Done()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Work: %v", err)
		}
	case <-time.After(limit):
		t.Fatal("Work still runs after its context ended")
	}
}

func TestEmbedded(t *testing.T) {
	names := make(map[string]bool)
	for _, s := range Embedded() {
		if names[s.Name] {
			t.Errorf("two systems are named %s", s.Name)
		}
		names[s.Name] = true
		t.Logf("%s: %s; %s; %s", s.Name, s.Durability, s.Settings, s.Version)
	}
}
