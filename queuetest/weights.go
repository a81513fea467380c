package queuetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

type weights = map[string]int

// weighed returns the kinds of the jobs that fetches of these sizes get from the queues
// a, b, and c with these weights.
func (f *fixture) weighed(w weights, sizes ...int) (text string) {
	f.Helper()
	for _, n := range sizes {
		text += kinds(f.request(pawl.Request{Queues: []string{"a", "b", "c"}, Weights: w, Max: n}))
	}
	return text
}

// stock puts n jobs on each queue, in one batch.
func (f *fixture) stock(n int, queues ...string) {
	f.Helper()
	batch := newBatch(n * len(queues))
	for i, e := range batch {
		e.Queue, e.Kind = queues[i%len(queues)], queues[i%len(queues)]
	}
	f.enqueue(batch...)
}

// inProportion requires that, after any number of jobs, each queue had turns in
// proportion to its weight, except for about one turn that is early or late.
func (f *fixture) inProportion(text string, w weights) {
	f.Helper()
	sum := 0
	for _, weight := range w {
		sum += weight
	}
	for n := 1; n <= len(text); n++ {
		for name, weight := range w {
			got, want := strings.Count(text[:n], name), float64(n*weight)/float64(sum)
			if math.Abs(float64(got)-want) > 1.7 {
				f.Fatalf("of the first %d jobs %d are of queue %s, its weight would give %.1f: %s", n, got, name, want, text)
			}
		}
	}
}

// weighs lets queues with many jobs take turns by their weights.
func weighs(name string, w weights, sizes ...int) test {
	return newTest(name,
		"A queue gets as many turns as its weight while a queue of weight 1 gets one. The turns are spread evenly, within "+
			"a fetch and from fetch to fetch.", func(f *fixture) {
			for queue := range w {
				f.stock(100, queue)
			}
			text := f.weighed(w, sizes...)
			f.inProportion(text, w)
			sum, whole := 0, weights{}
			for _, weight := range w {
				sum += weight
			}
			rounds := len(text) / sum
			for queue, weight := range w {
				whole[queue] = strings.Count(text[:rounds*sum], queue)
				if d := whole[queue] - rounds*weight; d < -1 || d > 1 {
					f.Fatalf("in %d rounds queue %s had %d turns, its weight is %d: %s", rounds, queue, whole[queue], weight, text)
				}
			}
		})
}

func weightTests() []test {
	var ones []int
	for range 48 {
		ones = append(ones, 1)
	}
	return []test{
		weighs("three to one, in one fetch", weights{"a": 3, "b": 1}, 40),
		weighs("three to one, by fetches of one", weights{"a": 3, "b": 1}, ones...),
		weighs("one to three, by fetches of several sizes", weights{"a": 1, "b": 3}, 1, 5, 3, 7, 2, 11, 4, 7),
		weighs("three queues", weights{"a": 5, "b": 2, "c": 1}, 16, 1, 3, 20),
		weighs("three queues, by fetches of one", weights{"a": 1, "b": 2, "c": 4}, ones...),
		newTest("equal weights", "Queues of equal weight get one turn each in every round, whatever the weight is.", func(f *fixture) {
			f.stock(20, "a", "b", "c")
			f.inTurns(f.weighed(weights{"a": 7, "b": 7, "c": 7}, 4, 1, 1, 6, 3), 3)
		}),
		newTest("a queue without a weight",
			"A queue without a weight has weight 1. A weight for a queue that the request does not name is ignored.", func(f *fixture) {
				f.stock(40, "a", "b", "c")
				f.inProportion(f.weighed(weights{"b": 3, "other": 1000}, 7, 1, 1, 11, 20), weights{"a": 1, "b": 3, "c": 1})
			}),
		newTest("the largest weight", "A weight may be up to 1000, and a queue of weight 1 still gets its turns beside it.", func(f *fixture) {
			f.stock(3100, "a")
			f.stock(10, "b")
			text := f.weighed(weights{"a": pawl.MaxWeight, "b": 1}, 1001, 1001, 1001)
			for i := range 3 {
				equal(f, strings.Count(text[1001*i:1001*(i+1)], "b"), 1, "turns of the least weight in round "+fmt.Sprint(i+1))
			}
		}),
		newTest("an empty queue", "The turns of a queue without jobs go to the others, by their weights.", func(f *fixture) {
			f.stock(40, "b", "c")
			f.inProportion(f.weighed(weights{"a": 10, "b": 2, "c": 1}, 1, 1, 1, 9, 12), weights{"b": 2, "c": 1})
		}),
		newTest("an empty queue beside a greater weight",
			"A queue that had no job for a while gets its next turn as soon as it has one again.", func(f *fixture) {
				f.stock(1, "a")
				f.weighed(nil, 1)
				f.stock(60, "b")
				f.weighed(weights{"b": 10}, 10, 14)
				f.stock(5, "a")
				text := f.weighed(weights{"b": 10}, 3)
				equal(f, strings.Count(text, "a"), 1, "turns of the queue that was empty in "+text)
			}),
		newTest("a queue that was empty",
			"A queue that had no job for a while does not catch up on its turns, and the other queues do not pay for "+
				"theirs.", func(f *fixture) {
				f.stock(5, "b")
				f.weighed(nil, 5)
				f.stock(60, "a")
				equal(f, f.weighed(nil, 10, 10), strings.Repeat("a", 20), "jobs while one queue is empty")
				f.stock(20, "b")
				f.inTurns(f.weighed(nil, 2, 1, 1, 8), 2)
			}),
		newTest("a new queue", "A queue whose first job comes late begins with one turn and takes turns from then on.", func(f *fixture) {
			f.stock(60, "a")
			f.weighed(weights{"a": 1}, 20)
			f.stock(20, "b", "c")
			f.inTurns(f.weighed(nil, 3, 1, 1, 1, 9), 3)
		}),
		newTest("a queue that runs dry", "When a queue runs out of jobs, the others take the remaining places.", func(f *fixture) {
			f.stock(2, "a")
			f.stock(10, "b")
			text := f.weighed(weights{"a": 100}, 12)
			equal(f, strings.Count(text, "b"), 10, "jobs of b in "+text)
			equal(f, strings.Count(text[:4], "a"), 2, "jobs of a among the first four of "+text)
		}),
		newTest("weights that change", "The weights belong to each fetch.", func(f *fixture) {
			f.stock(100, "a", "b")
			f.inProportion(f.weighed(weights{"a": 4}, 20), weights{"a": 4, "b": 1})
			text := f.weighed(weights{"b": 4}, 21)
			if n := strings.Count(text, "b"); n < 15 || n > 18 {
				f.Fatalf("with the weights turned round queue b had %d of 21 turns: %s", n, text)
			}
			text = f.weighed(nil, 20)
			if n := strings.Count(text, "b"); n < 9 || n > 11 {
				f.Fatalf("without weights queue b had %d of 20 turns: %s", n, text)
			}
		}),
		newTest("a queue that is named twice", "A queue that a request names twice is one queue with the turns of one.", func(f *fixture) {
			f.stock(20, "a", "b")
			f.inTurns(kinds(f.request(pawl.Request{Queues: []string{"a", "a", "b"}, Max: 12})), 2)
		}),
		newTest("retries have their share in each", "Weights choose the queue, and the retry share chooses the job within "+
			"it.", func(f *fixture) {
			f.retries(8, onQueue("a"), of("A"))
			f.retries(8, onQueue("b"), of("B"))
			f.stock(15, "a", "b")
			text := kinds(f.request(pawl.Request{Queues: []string{"a", "b"}, Weights: weights{"a": 2}, Max: 15, RetryShare: 0.5}))
			of := func(kinds string) string {
				return strings.Map(func(r rune) rune {
					if strings.ContainsRune(kinds, r) {
						return r
					}
					return -1
				}, text)
			}
			a, b := of("aA"), of("bB")
			if len(a) < 9 || len(a) > 11 {
				f.Fatalf("queue a had %d turns of 15: %s", len(a), text)
			}
			equal(f, a, strings.Repeat("aA", 8)[:len(a)], "jobs of a")
			equal(f, b, strings.Repeat("bB", 8)[:len(b)], "jobs of b")
		}),
		restartTest("after a restart", "After a restart, queues take turns by their weights as before.", func(f *fixture) {
			f.stock(60, "a", "b")
			f.weighed(weights{"a": 9}, 10)
			f.restart()
			f.inProportion(f.weighed(weights{"a": 3}, 1, 1, 1, 1, 12, 4), weights{"a": 3, "b": 1})
		}),
		newTest("a fetch that waits", "A waiting fetch takes the next job, whatever the weight of its queue.", func(f *fixture) {
			for _, name := range []string{"b", "a", "b", "b"} {
				leases, call := f.fetching(f.Context(), pawl.Request{Queues: []string{"a", "b"}, Weights: weights{"a": 100}, Max: 2})
				f.waits(call, "while there is no job")
				f.add(on(name))
				f.ends(call, nil, "fetch")
				equal(f, kinds(*leases), name, "jobs")
				f.pass(time.Second)
			}
		}),
		newTest("refused", "A weight is from 1 to 1000. Any other is refused, and nothing is leased.", func(f *fixture) {
			f.stock(1, "a")
			for _, weight := range []int{0, -1, pawl.MaxWeight + 1, math.MaxInt, math.MinInt} {
				for _, name := range []string{"a", "b"} {
					_, err := f.q.Fetch(f.Context(), pawl.Request{Queues: []string{"a"}, Weights: weights{name: weight}, Max: 1})
					f.invalid(err, fmt.Sprint("a weight of ", weight))
				}
			}
			f.lease("a")
		}),
	}
}
