package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// ledger is a World that writes down what was done, once for each key.
type ledger struct {
	broken string // what cannot be done

	mu   sync.Mutex
	keys map[string]bool
	done []string
}

func (l *ledger) Do(_ context.Context, key, what string) error {
	if what == l.broken {
		return pawl.Permanent(errors.New("out of order"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.keys[key] {
		l.keys[key] = true
		l.done = append(l.done, what)
	}
	return nil
}

// each runs a test of one flow once without a crash, and once with a crash at each point of it. In the
// end the ledger has these effects, in any order if they are sorted.
func each(t *testing.T, broken string, effects []string, test func(t *testing.T, at *workflowtest.Options, w *ledger)) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		w := &ledger{broken: broken, keys: make(map[string]bool)}
		test(t, &workflowtest.Options{At: at}, w)
		require.Equal(t, effects, w.done)
	})
}

func TestTrip(t *testing.T) {
	parts := []string{"flight", "hotel", "car"}
	t.Run("all", func(t *testing.T) {
		each(t, "", []string{"book flight", "book hotel", "book car"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
			f := Trip(w)
			n, err := workflowtest.Start(workflowtest.New(t, o, f), f, "1", parts).Result()
			require.NoError(t, err)
			require.Equal(t, 3, n)
		})
	})
	t.Run("no car", func(t *testing.T) {
		each(t, "book car", []string{"book flight", "book hotel", "cancel car", "cancel hotel", "cancel flight"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
			f := Trip(w)
			_, err := workflowtest.Start(workflowtest.New(t, o, f), f, "1", parts).Result()
			require.ErrorContains(t, err, "out of order")
		})
	})
}

func TestPay(t *testing.T) {
	in := Expense{People: []string{"Ada", "Grace"}, Timeout: 24 * time.Hour}
	for _, test := range []struct {
		what    string
		answers []bool // each a day and an hour later, so the first person is too late
		want    string
		effects []string
	}{
		{"late", []bool{true}, "paid", []string{"ask Ada", "ask Grace", "pay"}},
		{"no", []bool{false}, "rejected", []string{"ask Ada", "ask Grace"}},
		{"nobody", nil, "expired", []string{"ask Ada", "ask Grace"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			each(t, "", test.effects, func(t *testing.T, o *workflowtest.Options, w *ledger) {
				f := Pay(w)
				k := workflowtest.New(t, o, f)
				run := workflowtest.Start(k, f, "1", in)
				for _, yes := range test.answers {
					k.Advance(25 * time.Hour)
					workflowtest.Send(run, Approved, yes)
				}
				got, err := run.Result()
				require.NoError(t, err)
				require.Equal(t, test.want, got)
			})
		})
	}
}

func TestRemind(t *testing.T) {
	each(t, "", []string{"remind"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := Remind(w)
		k := workflowtest.New(t, o, f)
		run, began := workflowtest.Start(k, f, "1", 10*time.Hour), k.Now()
		k.Advance(9 * time.Hour)
		workflowtest.Send(run, Moved, 20*time.Hour)
		moves, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, 1, moves)
		require.Equal(t, began.Add(29*time.Hour), k.Now())
	})
}

func TestSave(t *testing.T) {
	each(t, "", []string{"save abc"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := Save(w)
		k := workflowtest.New(t, o, f)
		run := workflowtest.Start(k, f, "1", time.Second)
		for _, text := range []string{"a", "ab", "abc"} {
			workflowtest.Send(run, Typed, text)
			k.Advance(900 * time.Millisecond)
		}
		text, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, "abc", text)
	})
}

func TestLock(t *testing.T) {
	each(t, "", []string{"use printer", "use printer", "use printer"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		var k *workflowtest.Kit
		engine := func() *workflow.Engine { return k.Engine() }
		lock := Lock(engine)
		hold := Hold(w, engine, lock)
		k = workflowtest.New(t, o, lock, hold)
		for i := range 3 {
			id := fmt.Sprint(i)
			got, err := workflowtest.Start(k, hold, id, "printer").Result()
			require.NoError(t, err)
			require.Equal(t, id, got)
		}
	})
}

func TestConvert(t *testing.T) {
	var files, effects, want []string
	for i := range 7 {
		file := fmt.Sprint("picture", i)
		files, effects, want = append(files, file), append(effects, "convert "+file), append(want, file+".webp")
	}
	each(t, "", effects, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := Convert(w)
		got, err := workflowtest.Start(workflowtest.New(t, o, f), f, "1", files).Result()
		require.NoError(t, err)
		require.Equal(t, want, got)
		slices.Sort(w.done) // they are converted side by side
	})
}

func TestAccount(t *testing.T) {
	each(t, "", nil, func(t *testing.T, o *workflowtest.Options, _ *ledger) {
		f := Account()
		k := workflowtest.New(t, o, f)
		run := workflowtest.Start(k, f, "ada", 0)
		for i := range 2*rounds + 1 {
			workflowtest.Send(run, Deposit, 100+i)
		}
		workflowtest.Send(run, Close, "moves away")
		cents, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, 721, cents)
	})
}

func TestOrder(t *testing.T) {
	each(t, "", []string{"reserve lamp", "pack lamp", "ship lamp"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := Order(w)
		k := workflowtest.New(t, o, f)
		run := workflowtest.Start(k, f, "1", "lamp")
		got, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, "shipped", got)
		receipt, published, err := Receipt.Get(t.Context(), k.Engine(), run.Run())
		require.NoError(t, err)
		require.True(t, published)
		require.Equal(t, "receipt for lamp", receipt)
	})
}

func TestTurns(t *testing.T) {
	want := []string{"a1", "b1", "a2", "b2", "a3"}
	each(t, "", want, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := Turns(w)
		k := workflowtest.New(t, o, f)
		e := k.Engine()
		h, err := f.Start(t.Context(), e, "1", 0) // and all tasks are there before it looks
		require.NoError(t, err)
		for _, what := range []string{"a1", "a2", "a3", "b1", "b2"} {
			require.NoError(t, NewTask.Send(t.Context(), e, h.Run(), Task{what[:1], what}, ""))
		}
		require.NoError(t, NoMore.Send(t.Context(), e, h.Run(), "", ""))
		order, err := workflowtest.Of(k, f, "1").Result()
		require.NoError(t, err)
		require.Equal(t, want, order)
	})
}

func TestImport(t *testing.T) {
	each(t, "", nil, func(t *testing.T, o *workflowtest.Options, _ *ledger) {
		f := Import(numbers)
		k := workflowtest.New(t, o, f)
		run := workflowtest.Start(k, f, "1", Position{})
		total, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, 45, total)
		var at []Position
		for item, err := range Imported.Read(t.Context(), k.Engine(), run.Run(), 0) {
			require.NoError(t, err)
			at = append(at, item.Value)
		}
		require.Equal(t, []Position{{3, 3}, {6, 15}, {9, 36}, {10, 45}}, at)
	})
}

// numbers reads the numbers from 0 to 9, three at a time.
func numbers(_ context.Context, line int) (part []int, err error) {
	for n := line; n < min(line+3, 10); n++ {
		part = append(part, n)
	}
	return part, nil
}

func TestCheckAll(t *testing.T) {
	checks := []Check{{"style", time.Hour}, {"tests", 2 * time.Hour}, {"pages", 3 * time.Hour}}
	t.Run("all", func(t *testing.T) {
		each(t, "", []string{"style", "tests", "pages"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
			f := CheckAll(w)
			n, err := workflowtest.Start(workflowtest.New(t, o, f), f, "1", checks).Result()
			require.NoError(t, err)
			require.Equal(t, 3, n)
		})
	})
	t.Run("one fails", func(t *testing.T) {
		each(t, "tests", []string{"style"}, func(t *testing.T, o *workflowtest.Options, w *ledger) {
			f := CheckAll(w)
			k := workflowtest.New(t, o, f)
			began := k.Now()
			_, err := workflowtest.Start(k, f, "1", checks).Result()
			require.ErrorContains(t, err, "out of order")
			require.Equal(t, began.Add(2*time.Hour), k.Now(), "it does not wait for the last check")
		})
	})
}

func TestInOrder(t *testing.T) {
	want := []string{"begin", "work", "rest", "end"}
	each(t, "", want, func(t *testing.T, o *workflowtest.Options, w *ledger) {
		f := InOrder(w)
		run := workflowtest.Start(workflowtest.New(t, o, f), f, "1", len(want))
		for _, n := range []int{2, 1, 3, 0} {
			workflowtest.Send(run, Happened, Event{n, want[n]})
		}
		got, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestRide(t *testing.T) {
	for _, test := range []struct {
		want    string
		in      Request
		giveUp  bool
		effects []string
	}{
		{"driver", Request{time.Minute, time.Hour}, false, []string{"reserve driver"}},
		{"expired", Request{time.Hour, time.Minute}, false, nil},
		{"changed plans", Request{time.Hour, time.Hour}, true, nil},
	} {
		t.Run(test.want, func(t *testing.T) {
			each(t, "", test.effects, func(t *testing.T, o *workflowtest.Options, w *ledger) {
				f := Ride(w)
				run := workflowtest.Start(workflowtest.New(t, o, f), f, "1", test.in)
				if test.giveUp {
					workflowtest.Send(run, GiveUp, test.want)
				}
				got, err := run.Result()
				require.NoError(t, err)
				require.Equal(t, test.want, got)
			})
		})
	}
}
