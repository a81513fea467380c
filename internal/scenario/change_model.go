package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// model predicts what a version does with the journal of another. It walks over the code as the
// run would, scope by scope: a call in the journal must be the next one of its scope, and later
// calls are new. The scope requests its versions before anything new, and at the end of a scope
// nothing in its journal is left. Items of an each are identified by their keys.
//
// A branch that is open when the function fails is a loser, too.
//
// A loser of a race stops at its first call that has not ended, and need not reach the end of
// its journal. While a race is undecided nobody knows how far the losers get: a mismatch there
// may or may not block the run.
type model struct {
	scopes   map[string][]workflow.Entry // in order
	versions map[string]map[string]bool
	losers   []string
	open     []string // branches that were open when the function had failed
	failed   bool     // the journal says that it had, and has all calls of the other branches
	fails    bool     // the code of the function does
	unwound  bool     // the journal has undo steps
	dry      bool     // it ends at the end of the journal, like Verify

	unsure int    // number of enclosing undecided races
	why    string // why it is blocked
	may    string // why it may be
	undos  map[string]int

	// other says that a step got the result of another: the versions give the same name to
	// different steps of one kind, in the same place of their scope, which no journal can
	// distinguish.
	other bool

	must, can map[string]bool // effects that take place if it is not blocked
}

// spot is the position of a walk.
type spot struct {
	scope  string
	at     int
	counts map[string]int
	asked  map[string]bool
	lost   bool
}

func modelOf(journal []workflow.Entry, dry bool) *model {
	m := &model{scopes: make(map[string][]workflow.Entry), versions: make(map[string]map[string]bool), dry: dry,
		undos: make(map[string]int), must: make(map[string]bool), can: make(map[string]bool)}
	for _, e := range journal {
		switch e.Kind {
		case workflow.KindVersion:
			if m.versions[e.Scope] == nil {
				m.versions[e.Scope] = make(map[string]bool)
			}
			m.versions[e.Scope][e.Name] = true
		default:
			if e.Kind == workflow.KindCancel {
				m.open = append(m.open, wonBy(&e).Losers...)
			}
			m.failed = m.failed || e.Kind == workflow.KindCancel || e.Kind == workflow.KindUndo
			if e.Kind == workflow.KindRace && e.State == workflow.EntryDone {
				m.losers = append(m.losers, wonBy(&e).Losers...)
			}
			m.unwound = m.unwound || e.Kind == workflow.KindUndo
			m.scopes[e.Scope] = append(m.scopes[e.Scope], e)
		}
	}
	return m
}

// walk walks over a version.
func (m *model) walk(v version) {
	m.fails = v.Fails
	if m.scope("", v.Body, false, "") || m.why != "" {
		return
	}
	if !m.unwound {
		return
	}
	if !v.Fails {
		m.block("it does not fail any more")
	}
	for _, e := range m.scopes["_undo"] {
		if m.undos[e.Name] < e.Occurrence {
			m.block("undo %s is gone", e.Name)
		}
	}
	m.may = "the order of undo steps" // the model does not know it
}

func (m *model) block(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if m.unsure > 0 && !m.dry {
		m.may = why
	} else if m.why == "" {
		m.why = why
	}
}

func (m *model) effect(label string) {
	if m.can[label] = true; m.unsure == 0 {
		m.must[label] = true
	}
}

// scope walks over a branch, and reports whether it stops before the branch's end.
func (m *model) scope(name string, body []op, lost bool, label string) (stops bool) {
	if slices.Contains(m.losers, name) && !lost { // its race is not called any more
		if m.dry {
			m.may = "whether it comes to the race" // before it waits
		} else {
			m.block("the race that %s has lost is gone", name)
		}
		return true
	}
	p := &spot{scope: name, counts: make(map[string]int), asked: make(map[string]bool), lost: lost}
	for _, o := range body {
		if m.call(p, o, fmt.Sprint(label, o.ID)) {
			return true
		}
	}
	if lost {
		return false
	}
	if have := m.scopes[name]; name == "" && m.fails && p.at == len(have)-1 && have[p.at].Kind == workflow.KindCancel {
		p.at++
	}
	if p.at < len(m.scopes[name]) {
		m.block("%s is left", m.scopes[name][p.at].Step())
		return true
	}
	return m.unasked(p)
}

func (m *model) unasked(p *spot) bool {
	for v := range m.versions[p.scope] {
		if !p.asked[v] {
			m.block("version %s of %q was not asked for", v, p.scope)
			return true
		}
	}
	return false
}

// next makes a call: it returns the entry, or nil for a new one, or stops.
func (m *model) next(p *spot, kind workflow.EntryKind, name string) (e *workflow.Entry, full string, stops bool) {
	p.counts[name]++
	full = name
	if n := p.counts[name]; n > 1 {
		full = fmt.Sprintf("%s#%d", name, n)
	}
	if p.scope != "" {
		full = p.scope + "/" + full
	}
	if have := m.scopes[p.scope]; p.at < len(have) {
		e = &have[p.at]
		p.at++
		if e.Kind != kind || e.Step() != full {
			m.block("%s %s is %s %s", e.Kind, e.Step(), kind, full)
			return e, full, true
		}
		if strings.Contains(e.Error, "the signal was given back") { // by a branch that lost; its later calls are void
			return e, full, true
		}
		return e, full, e.State == workflow.EntryPending && (p.lost || m.dry)
	}
	begins := kind == workflow.KindBranch || kind == workflow.KindEach
	switch {
	case p.lost:
		return nil, full, !begins
	case m.unasked(p):
		return nil, full, true
	case m.unwound:
		m.block("%s %s is new, and the run undoes", kind, full)
		return nil, full, true
	}
	return nil, full, m.dry
}

var kindOf = map[string]workflow.EntryKind{"step": workflow.KindStep, "tx": workflow.KindStepTx, "sleep": workflow.KindSleep,
	"wait": workflow.KindWait, "child": workflow.KindChild, "race": workflow.KindRace}

func (m *model) call(p *spot, o op, label string) (stops bool) {
	switch o.Kind {
	case "undo":
		m.undos[o.Name]++
		m.can[label] = true
		return false
	case "version":
		known := m.versions[p.scope][o.Name]
		p.asked[o.Name] = true
		return p.lost && !known && p.at >= len(m.scopes[p.scope])
	case "side":
		_, name, stops := m.next(p, workflow.KindBranch, o.Parts[0].Name)
		if stops {
			return true
		}
		lost := p.lost || slices.Contains(m.open, name)
		if m.fails && !m.failed && !lost && !m.dry { // the function may fail first
			m.unsure++
			defer func() { m.unsure-- }()
		}
		m.scope(name, o.Parts[0].Body, lost, label+".")
		return false
	case "each":
		return m.each(p, o, label)
	case "all", "race":
		return m.parts(p, o, label)
	}
	e, _, stops := m.next(p, kindOf[o.Kind], o.Name)
	if stops {
		return true
	}
	if e != nil && e.State == workflow.EntryDone && (o.Kind == "step" || o.Kind == "tx") {
		var did string
		if err := driver.DecodePayload(e.Result, &did); err != nil {
			panic(err)
		}
		m.other = m.other || did != label
	}
	if e == nil || e.State == workflow.EntryPending {
		switch o.Kind {
		case "step", "tx":
			m.effect(label)
		case "child":
			m.can[label+"in child"] = true
		}
	}
	return false
}

func (m *model) each(p *spot, o op, label string) (stops bool) {
	_, list, stops := m.next(p, workflow.KindEach, o.Name)
	if stops {
		return true
	}
	for _, e := range m.scopes[list] {
		if !slices.Contains(o.Items, e.Name) {
			m.block("item %s is gone", e.Step())
			return true
		}
	}
	for _, known := range []bool{true, false} {
		for _, item := range o.Items {
			have := slices.ContainsFunc(m.scopes[list], func(e workflow.Entry) bool { return e.Name == item })
			switch {
			case have != known:
				continue
			case have, p.lost:
			case m.unwound:
				m.block("item %s is new, and the run undoes", item)
				return true
			case m.dry:
				return true
			}
			if m.scope(list+"/"+item, o.Parts[0].Body, p.lost, label+item+".") {
				stops = true
			}
		}
	}
	return stops
}

// raced is a journal's record of a race.
type raced struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Winner   int
	Losers   []string
	Unheard  []uint32
	Branches []string
}

func wonBy(e *workflow.Entry) (won raced) {
	if err := driver.DecodePayload(e.Result, &won); err != nil {
		panic(err)
	}
	return won
}

// parts walks over branches that begin together.
func (m *model) parts(p *spot, o op, label string) (stops bool) {
	var names []string
	for _, each := range o.Parts {
		_, name, stopped := m.next(p, workflow.KindBranch, each.Name)
		if stops = stopped; stops {
			break
		}
		names = append(names, name)
	}
	walk := func(i int, lost bool) bool { return m.scope(names[i], o.Parts[i].Body, lost, label+".") }
	if stops || o.Kind == "all" {
		for i := range names {
			stops = walk(i, p.lost) || stops
		}
		return stops
	}
	e, _, stops := m.next(p, workflow.KindRace, o.Name)
	if stops || e == nil {
		if !m.dry && !p.lost {
			m.unsure++
			defer func() { m.unsure-- }()
		}
		for i := range names {
			walk(i, p.lost)
		}
		return stops
	}
	won, given := wonBy(e), slices.Clone(names)
	if o.Back {
		slices.Reverse(given)
	}
	if !slices.Equal(won.Branches, given) {
		m.block("race %s of %s is of %s", e.Step(), strings.Join(won.Branches, ","), strings.Join(given, ","))
		return true
	}
	for i := range names {
		if stopped := walk(i, p.lost || names[i] != given[won.Winner]); names[i] == given[won.Winner] {
			stops = stopped
		}
	}
	return stops
}
