package sim

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Shrink makes a case smaller as long as it still fails. It removes sequences of steps,
// then single steps and jobs, and then the unneeded fields of steps and jobs.
func Shrink(c *Case, fails func(*Case) bool) *Case {
	s := &shrinking{c, fails}
	for before := -1; before != s.size(); {
		before = s.size()
		s.list(func(c *Case) reflect.Value { return reflect.ValueOf(&c.Ops).Elem() })
	}
	return s.Case
}

// shrinking is a case that fails.
type shrinking struct {
	*Case
	fails func(*Case) bool
}

// place finds a part of a case.
type place func(*Case) reflect.Value

// try keeps a change if the case is smaller with it and still fails.
func (s *shrinking) try(change func(*Case)) bool {
	c := s.clone()
	if change(c); c.size() >= s.size() || !s.fails(c) {
		return false
	}
	s.Case = c
	return true
}

func (c *Case) clone() *Case {
	own := new(Case)
	if err := json.Unmarshal(c.text(), own); err != nil {
		panic(err) // encoding a case cannot fail
	}
	return own
}

func (c *Case) text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return text
}

// size is the length of a case as text.
func (c *Case) size() int { return len(c.text()) }

// list shortens a list by halves, by quarters and so on, and then simplifies its elements.
func (s *shrinking) list(at place) {
	for n := (at(s.Case).Len() + 1) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= at(s.Case).Len(); {
			removed := s.try(func(c *Case) {
				l := at(c)
				l.Set(reflect.AppendSlice(l.Slice(0, i), l.Slice(i+n, l.Len())))
			})
			if !removed {
				i += n
			}
		}
	}
	for i := range at(s.Case).Len() {
		s.fields(func(c *Case) reflect.Value { return at(c).Index(i) })
	}
}

// needed are the fields without which a step or a job means something else.
var needed = []string{"Do", "Verb", "Queue", "Kind", "N", "Job", "Worker", "Stuck", "Drain", "Grace", "Keep"}

// fields simplifies a step, a job, an attempt or a crew.
func (s *shrinking) fields(at place) {
	for i := range at(s.Case).NumField() {
		field := func(c *Case) reflect.Value { return at(c).Field(i) }
		name := at(s.Case).Type().Field(i).Name
		set := func(value any) {
			s.try(func(c *Case) { field(c).Set(reflect.ValueOf(value)) })
		}
		switch v := field(s.Case); {
		case v.IsZero(), slices.Contains(needed, name):
		case name == "Queues" || name == "Kinds": // an empty list, which means all, is the simplest value
		case name == "Concurrency":
			set(1)
		case v.Kind() == reflect.Slice:
			s.list(field)
		case v.Kind() == reflect.Pointer:
			s.fields(func(c *Case) reflect.Value { return field(c).Elem() })
		case name == "For":
			set(v.Interface().(time.Duration).Round(time.Second))
		default:
			s.try(func(c *Case) { field(c).SetZero() })
		}
	}
}
