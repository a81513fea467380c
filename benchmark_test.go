package pawl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// invite has a payload of about 100 bytes.
type invite struct {
	To, From, Subject string
	Copies            int
	Urgent            bool
}

var (
	post     = pawl.Define[invite]("post.letter")
	anInvite = invite{"ada.lovelace@example.com", "grace.hopper@example.com", "notes on engines", 3, true}
	postDay  = time.Date(2031, 2, 3, 4, 5, 6, 789, time.UTC)
)

// acceptedInvite is a job as a queue has accepted it.
func acceptedInvite(tb testing.TB) *pawl.Envelope {
	e, err := post.Envelope(anInvite)
	require.NoError(tb, err)
	require.InDelta(tb, 100, len(e.Payload), 10)
	driver.Accept(e, postDay)
	e.Seq = 1000
	return e
}

// BenchmarkEnvelope measures what Kind.Enqueue does before the queue: a job made of its
// arguments.
func BenchmarkEnvelope(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := post.Envelope(anInvite); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendRecord measures the encoding of a job for the file, into memory of its
// own.
func BenchmarkAppendRecord(b *testing.B) {
	e := acceptedInvite(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(driver.AppendRecord(nil, e, 0))))
	for b.Loop() {
		driver.AppendRecord(nil, e, 0)
	}
}

// BenchmarkParseRecord measures the decoding of a job that was fetched, with its checks.
func BenchmarkParseRecord(b *testing.B) {
	record := driver.AppendRecord(nil, acceptedInvite(b), 0)
	b.ReportAllocs()
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		if _, _, err := driver.ParseRecord(record); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJob measures the decoding of the arguments for a handler.
func BenchmarkJob(b *testing.B) {
	e := acceptedInvite(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := post.Job(e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewID measures the making of an ID.
func BenchmarkNewID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		pawl.NewID(postDay)
	}
}
