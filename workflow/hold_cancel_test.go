package workflow

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// stepWriter is a transaction that keeps the keys of the steps that are written.
type stepWriter struct {
	driver.Writer
	steps [][]byte
}

func (w *stepWriter) Put(t *driver.Table, key, _ []byte) error {
	if t == tableSteps {
		w.steps = append(w.steps, key)
	}
	return nil
}

func (w *stepWriter) Delete(*driver.Table, []byte) error { return nil }
func (w *stepWriter) OnCommit(func())                    {}

// Rule: each mutation that cancels a run writes the end of a step that the run holds back, and writes it again if the
// transaction was undone.
func TestEachCancelWritesHeldEnds(t *testing.T) {
	for name, cancel := range map[string]func(x *execution, children cancelled) driver.Mutation{
		"request": func(_ *execution, c cancelled) driver.Mutation { return &request{row: &runRow{}, held: c.held} },
		"finish": func(x *execution, c cancelled) driver.Mutation {
			return &finish{x: x, row: &runRow{Status: Failed}, children: c}
		},
		"restart": func(x *execution, c cancelled) driver.Mutation {
			return &restart{x: x, row: &runRow{}, children: c}
		},
		"cancelChildren": func(_ *execution, c cancelled) driver.Mutation { return &cancelChildren{children: c} },
		"decide":         func(x *execution, c cancelled) driver.Mutation { return &decide{x: x, children: c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{queue: &slowStore{release: make(chan struct{})}}
				parent := newExecution(t.Context(), e, nil, pawl.ID{1}, nil)
				child := newExecution(t.Context(), e, nil, pawl.ID{2}, &pawl.Lease{Envelope: &pawl.Envelope{}})
				c := &call{scope: &scope{x: child}, e: &entry{Kind: KindStep, State: EntryDone, seq: 1}}
				require.NoError(t, c.hold(&stepOptions{}))
				defer child.holding.Stop()
				m := cancel(parent, cancelled{held: heldEnds{all: []*execution{child}}})
				for range 2 {
					var w stepWriter
					require.NoError(t, m.Apply(&w))
					require.Equal(t, [][]byte{seqKey(child.run, 1)}, w.steps)
				}
			})
		})
	}
}

// Rule: a run that becomes active while a mutation cancels it holds nothing back, however often the mutation was checked, until
// the mutation is durable or refused. From then on, the run reads that it is cancelled.
func TestHubKnowsWhatIsBeingCancelled(t *testing.T) {
	h := &hub{running: make(map[pawl.ID]*execution), cancelling: make(map[pawl.ID]int)}
	run := pawl.ID{1}
	begins := func() bool {
		x := newExecution(t.Context(), &Engine{}, nil, run, nil)
		h.enter(run, x)
		defer h.leave(run, x)
		return x.cancelling
	}
	var first, second heldEnds
	for _, held := range []*heldEnds{&first, &first, &second} {
		held.again()
		held.add(h, nil, run)
		require.True(t, begins())
	}
	first.done()
	require.True(t, begins(), "the second one is under way")
	second.done()
	require.False(t, begins())
	require.Empty(t, h.cancelling)
}
