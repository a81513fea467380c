package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// spy are arguments that report when they are decoded.
type spy struct{ Text string }

var decoded int

func (s *spy) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	decoded++
	s.Text, err = d.DecodeString()
	return err
}

func (s spy) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeString(s.Text) }

// Rule: if the signature of a job is missing or wrong, no byte of the payload reaches
// a decoder, whatever is in it. The payload of a job that verifies does.
func TestForgedPayloadIsNeverDecoded(t *testing.T) {
	kind := pawl.Define[spy]("spied")
	ours := ring(t, "ours", 1)
	for _, c := range []struct {
		rule   string
		spoil  func(e *pawl.Envelope) error
		verify *pawl.Keyring
		runs   bool
	}{
		{"a good signature", ours.Sign, ours, true},
		{"nobody asked for one", func(*pawl.Envelope) error { return nil }, nil, true},
		{"no signature", func(*pawl.Envelope) error { return nil }, ours, false},
		{"one that was cut off", func(e *pawl.Envelope) error {
			err := ours.Sign(e)
			e.Signature = nil
			return err
		}, ours, false},
		{"another payload", func(e *pawl.Envelope) error {
			err := ours.Sign(e)
			e.Payload = []byte("\xa5other")
			return err
		}, ours, false},
		{"a bomb", func(e *pawl.Envelope) error {
			err := ours.Sign(e)
			e.Payload = []byte("\xdd\xff\xff\xff\xff")
			return err
		}, ours, false},
		{"another key", ring(t, "ours", 2).Sign, ours, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
				decoded = 0
				w := newWorker(q, worker.Options{Verify: c.verify})
				ran := 0
				worker.Handle(w, kind, func(context.Context, *pawl.Job[spy]) error { ran++; return nil })
				e, err := kind.Envelope(spy{"secret"})
				require.NoError(t, err)
				require.NoError(t, c.spoil(e))
				require.NoError(t, withid.Enqueue(t.Context(), q, e))
				require.NoError(t, w.ProcessOnce(t.Context()))
				if c.runs {
					require.Equal(t, 1, decoded)
					require.Equal(t, 1, ran)
					return
				}
				require.Zero(t, decoded)
				require.Zero(t, ran)
				requireDead(t, q, e.ID, pawl.ReasonSignature, 0)
			})
		})
	}
}
