package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// op is one call of a function in one version of its code.
type op struct {
	Kind  string // step, tx, sleep, wait, child, version, undo, all, side, race or each
	Name  string
	ID    int  // its outside effect, whatever its name and position
	Slow  bool // its first attempt fails, and the next comes an hour later
	Parts []part
	Items []string // of an each; all of its branches have the body of its only part
	Back  bool     // a race gets its branches in reverse order
}

// part is a branch.
type part struct {
	Name string
	Body []op
}

// version is the code of a flow.
type version struct {
	Body  []op
	Fails bool // at its end, so that it undoes
}

// maker makes versions at random.
type maker struct {
	*rand.Rand
	ids int
}

func pick[T any](m *maker, of ...T) T { return of[m.IntN(len(of))] }

// name is one of few names, so that calls share them.
func (m *maker) name() string { return pick(m, "a", "b", "c", "d") }

func (m *maker) version() version {
	v := version{Body: m.body(0), Fails: m.IntN(3) == 0}
	if v.Fails {
		m.ids++
		v.Body = append([]op{{Kind: "undo", Name: "first", ID: m.ids, Slow: true}}, v.Body...)
	}
	return v
}

func (m *maker) body(depth int) (body []op) {
	for range 1 + m.IntN(4) {
		body = append(body, m.op(depth))
	}
	return body
}

func (m *maker) op(depth int) op {
	m.ids++
	o := op{ID: m.ids, Name: m.name(), Kind: pick(m, "step", "step", "tx", "sleep", "wait", "child", "version", "undo")}
	if depth < 3 && m.IntN(5) < 2 {
		o.Kind = pick(m, "all", "side", "race", "each")
	}
	switch o.Kind {
	case "undo":
		o.Name = fmt.Sprint("u", o.ID) // nothing would distinguish two of one name that change places
		o.Slow = m.IntN(4) == 0
	case "step", "tx":
		o.Slow = m.IntN(4) == 0
	case "version":
		o.Name = fmt.Sprint("v", m.IntN(3))
	case "side", "each":
		o.Parts = []part{{m.name(), m.body(depth + 1)}}
		if o.Kind == "each" {
			o.Items = []string{"x", "y", "z"}[:1+m.IntN(3)]
		}
	case "all", "race":
		for range 1 + m.IntN(3) {
			o.Parts = append(o.Parts, part{m.name(), m.body(depth + 1)})
		}
	}
	return o
}

// copied returns a deep copy of a body.
func copied(body []op) []op {
	body = slices.Clone(body)
	for i := range body {
		body[i].Items = slices.Clone(body[i].Items)
		body[i].Parts = slices.Clone(body[i].Parts)
		for j := range body[i].Parts {
			body[i].Parts[j].Body = copied(body[i].Parts[j].Body)
		}
	}
	return body
}

// bodies are all bodies of a version.
func bodies(body *[]op) (all []*[]op) {
	all = append(all, body)
	for i := range *body {
		for j := range (*body)[i].Parts {
			all = append(all, bodies(&(*body)[i].Parts[j].Body)...)
		}
	}
	return all
}

// change derives another version, and says what is different.
func (m *maker) change(old version) (version, string) {
	v := version{copied(old.Body), old.Fails}
	if m.IntN(20) == 0 {
		v.Fails = !v.Fails
		return v, "fails, or not"
	}
	body := pick(m, bodies(&v.Body)...)
	if len(*body) == 0 {
		*body = append(*body, m.op(2))
		return v, "inserted into nothing"
	}
	i := m.IntN(len(*body))
	o := &(*body)[i]
	if len(o.Parts) > 0 && m.IntN(2) == 0 {
		return v, m.changeParts(o)
	}
	switch m.IntN(5) {
	case 0:
		o.Name += "'"
		return v, "renamed " + o.Kind
	case 1:
		what := "removed " + o.Kind
		*body = slices.Delete(*body, i, i+1)
		return v, what
	case 2:
		*body = slices.Insert(*body, m.IntN(len(*body)+1), m.op(2))
		return v, "inserted"
	case 3:
		j := m.IntN(len(*body))
		(*body)[i], (*body)[j] = (*body)[j], (*body)[i]
		return v, fmt.Sprintf("moved %s by %d", o.Kind, j-i)
	}
	switch o.Kind {
	case "step":
		o.Kind = pick(m, "tx", "sleep", "wait", "child")
	case "all":
		o.Kind = "race"
	case "race":
		o.Kind = "all"
	default:
		o.Kind, o.Parts, o.Items = "step", nil, nil
	}
	return v, "retyped to " + o.Kind
}

// changeParts changes the branches of a call.
func (m *maker) changeParts(o *op) string {
	i := m.IntN(len(o.Parts))
	if o.Kind == "each" {
		switch m.IntN(3) {
		case 0:
			o.Items = slices.Insert(o.Items, m.IntN(len(o.Items)+1), fmt.Sprint("new", m.IntN(1_000_000)))
			return "item inserted"
		case 1:
			o.Items = slices.Delete(o.Items, 0, 1)
			return "item removed"
		}
		slices.Reverse(o.Items)
		return "items reversed"
	}
	if o.Kind == "side" || m.IntN(3) == 0 {
		o.Parts[i].Name += "'"
		return "branch renamed"
	}
	if o.Kind == "race" && m.IntN(2) == 0 {
		o.Back = !o.Back
		return "race turned round"
	}
	switch m.IntN(3) {
	case 0:
		o.Parts = slices.Insert(o.Parts, i, part{m.name(), m.body(3)})
		return "branch inserted"
	case 1:
		if len(o.Parts) > 1 {
			o.Parts = slices.Delete(o.Parts, i, i+1)
		}
		return "branch removed"
	}
	slices.Reverse(o.Parts)
	return "branches reversed"
}

// world records the effects of a run: the keys under which each took place.
type world struct {
	k *kit

	mu      sync.Mutex
	done    map[string][]string
	tried   map[string]bool // slow steps
	deathIn int             // number of effects until a death, 0 for never
}

// do is the effect of a call.
func (w *world) do(o op, label, key string) (string, error) {
	w.mu.Lock()
	w.deathIn--
	ends := w.deathIn == 0
	w.mu.Unlock()
	if ends {
		return "", w.k.endLife()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.k.ending.Load() {
		return "", errDead
	}
	if o.Slow && !w.tried[key] {
		w.tried[key] = true
		return "", pawl.RetryAfter(time.Hour, errors.New("not yet"))
	}
	w.done[label] = append(w.done[label], key)
	return label, nil
}

// flows returns the flow of a version, and that of its children, whose code never changes.
func (w *world) flows(v version) (*workflow.Flow[int, int], workflow.Definition) {
	child := workflow.Define("child", func(r *workflow.Run, label string) (int, error) {
		if err := w.call(r, nil, op{Kind: "step", Name: "in child"}, label+"in child"); err != nil {
			return 0, err
		}
		return 1, workflow.Sleep(r, "nap", time.Hour)
	})
	f := workflow.Define("changing", func(r *workflow.Run, _ int) (int, error) {
		err := w.play(r, child, v.Body, "")
		if err == nil && v.Fails {
			err = errPlanned
		}
		return 1, err
	})
	return f, child
}

type childFlow = *workflow.Flow[string, int]

func (w *world) play(r *workflow.Run, child childFlow, body []op, label string) error {
	for _, o := range body {
		if err := w.call(r, child, o, fmt.Sprint(label, o.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) call(r *workflow.Run, child childFlow, o op, label string) (err error) {
	branch := func(p part) *workflow.Branch[int] {
		return workflow.Go(r, p.Name, func(r *workflow.Run) (int, error) { return 1, w.play(r, child, p.Body, label+".") })
	}
	switch o.Kind {
	case "step":
		_, err = workflow.Step(r, o.Name, func(context.Context) (string, error) { return w.do(o, label, r.Key()) })
	case "tx":
		_, err = workflow.StepTx(r, o.Name, func(Tx) (string, error) { return w.do(o, label, r.Key()) })
	case "undo":
		r.Undo(o.Name, func(context.Context) error {
			_, err := w.do(o, label, r.Key())
			return err
		})
	case "sleep":
		err = workflow.Sleep(r, o.Name, time.Hour)
	case "wait":
		_, err = workflow.DefineSignal[int](o.Name).Wait(r, workflow.Forever)
	case "child":
		_, err = workflow.Call(r, o.Name, child, label)
	case "version":
		_, err = workflow.Version(r, o.Name, 1, 2)
	case "side":
		branch(o.Parts[0])
	case "each":
		itself := func(item string) string { return item }
		_, err = workflow.Each(r, o.Name, o.Items, itself, 2, func(r *workflow.Run, item string) (int, error) {
			return 1, w.play(r, child, o.Parts[0].Body, label+item+".")
		})
	case "all", "race":
		var all []*workflow.Branch[int]
		for _, p := range o.Parts {
			all = append(all, branch(p))
		}
		if o.Back {
			slices.Reverse(all)
		}
		if o.Kind == "race" {
			_, _, err = workflow.Race(r, o.Name, all...)
		} else {
			_, err = workflow.All(r, all...)
		}
	}
	return err
}
