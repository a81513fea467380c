package scenario

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// node is one thing that a random function does. Its fields are exported so that it can be the
// input of a run.
type node struct {
	Kind  string
	Name  string
	Value int           // of a step, a version
	Fails int           // failing attempts of a step; all of them if negative
	Once  bool          // a step that runs at most once
	Deaf  bool          // a step that ignores its context
	Slow  time.Duration // of a step
	Wait  time.Duration // of a sleep, a wait and between attempts; none if negative
	Heeds bool          // the author's error ends the function
	Parts [][]node      // branches, or the function of a child
}

// program is the input of a random run.
type program struct {
	Nodes     []node
	Round     int  // number of restarts so far
	Rounds    int  // number of restarts to make
	Careless  bool // it ignores errors and continues
	Fails     bool // at the end
	Postlude  bool // makes a call after an error
	Generated uint64
}

// author makes up programs.
type author struct {
	*rand.Rand
	named int
}

const deepest = 3

func (a *author) program(depth int) program {
	return program{Nodes: a.nodes(depth), Rounds: a.IntN(5) / 4, Careless: a.IntN(5) == 0, Fails: a.IntN(5) == 0, Postlude: a.IntN(3) == 0}
}

func (a *author) nodes(depth int) (nodes []node) {
	for range 1 + a.IntN(5) {
		nodes = append(nodes, a.node(depth))
	}
	return nodes
}

// duration returns a wait within the process, or one that suspends the run.
func (a *author) duration() time.Duration {
	return [...]time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond, 10 * time.Second, time.Minute, 2 * time.Hour}[a.IntN(6)]
}

func (a *author) node(depth int) node {
	kinds := []string{"step", "step", "step", "tx", "sleep", "wait", "wait", "undo", "undo", "version", "publish", "shared", "shared"}
	if depth < deepest {
		kinds = append(kinds, "child", "child", "all", "all", "race", "race")
	}
	a.named++
	n := node{Kind: kinds[a.IntN(len(kinds))], Value: a.IntN(1000), Wait: a.duration(), Heeds: a.IntN(3) > 0}
	n.Name = fmt.Sprint(n.Kind, a.named)
	if a.IntN(4) == 0 {
		n.Name = n.Kind + " again"
	}
	switch n.Kind {
	case "step", "tx", "undo":
		n.Fails = max(0, a.IntN(5)-2)
		if a.IntN(12) == 0 {
			n.Fails = -1
		}
		if n.Kind == "step" {
			n.Once, n.Deaf = a.IntN(8) == 0, a.IntN(3) == 0
		}
		if n.Kind != "tx" && a.IntN(2) == 0 {
			n.Slow = a.duration()
		}
	case "wait":
		n.Name = [...]string{word.Name(), last.Name()}[a.IntN(2)]
		if a.IntN(3) == 0 {
			n.Wait = -1
		}
	case "version":
		n.Name = fmt.Sprint(n.Kind, a.named) // it is identified by name
	case "child":
		n.Parts = [][]node{a.nodes(depth + 1)}
	case "all", "race":
		for range 1 + a.IntN(3) {
			n.Parts = append(n.Parts, a.nodes(depth+1))
		}
	}
	return n
}
