package workflow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// attribute is a named text that belongs to a run. Lists find runs by attributes.
type attribute struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Name, Value string
}

// Attributes describes the run with names and values, such as the customer and the region, for lists: see [Filter].
// They are stored without the [Codec]. A name has 1 to [MaxAttributeName] bytes, without NUL, /, #, and =, and does not
// begin with an underscore. A value has 1 to [MaxAttributeValue] bytes, without NUL. Both are UTF-8. A run has at most
// [MaxAttributes]. The start returns [pawl.ErrInvalid] for anything else. If several options set the same name, the
// last one counts.
//
// [SetAttribute] changes them. A restart keeps them, and a fork copies those of the other run. A child has none at its
// start.
func Attributes(attributes map[string]string) StartOption {
	return func(o *startOptions) {
		for name, value := range attributes {
			err := validAttribute(name, value)
			if err == nil && value == "" {
				err = &pawl.InvalidError{Field: "attribute", Reason: fmt.Sprintf("%q is empty; leave it out", name)}
			}
			if err == nil {
				o.attributes, err = setAttribute(o.attributes, name, value)
			}
			if o.err == nil {
				o.err = err
			}
		}
	}
}

// SetAttribute changes an attribute of the run, or removes it if value is "". It is a step named "set" and the name of
// the attribute, with a space between. One commit stores the end of the step and the attribute. The error is a *StepError
// that matches [pawl.ErrInvalid] if the run has too many attributes, or the name or value is invalid; see [Attributes].
// Any other error means that the run does not continue now: return it.
func SetAttribute(r *Run, name, value string) error {
	if err := validAttribute(name, value); err != nil {
		return err
	}
	return r.s.within("set "+name, decodeNothing, func(context.Context) (*effect, error) {
		m := &setOne{run: r.x.run, name: name, value: value}
		return &effect{m, requestBytes, func() any { return struct{}{} }, func(err error) error { return err }}, nil
	})
}

// setOne is the mutation that changes an attribute.
type setOne struct {
	run         pawl.ID
	name, value string

	row *runRow
	old string
}

// Declare declares the run.
func (s *setOne) Declare(n *driver.Needs) { needsRun(n, s.run) }

// Check changes the row in memory.
func (s *setOne) Check(ops driver.Ops) (err error) {
	if s.row, err = rowsOf(ops).mustRun(s.run); err != nil {
		return err
	}
	s.old = s.row.attribute(s.name)
	s.row.Attributes, err = setAttribute(s.row.Attributes, s.name, s.value)
	return err
}

// Apply writes the row, and the rows of the index.
func (s *setOne) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if s.old != "" && s.old != s.value {
		if err := r.delete(tableFound, append(foundBy(s.name, s.old), s.run[:]...)); err != nil {
			return err
		}
	}
	if s.value != "" && s.old != s.value {
		if err := r.put(tableFound, append(foundBy(s.name, s.value), s.run[:]...), nil); err != nil {
			return err
		}
	}
	return r.putRun(s.run, s.row)
}

// setAttribute returns the attributes with another value of a name, sorted by name.
func setAttribute(all []attribute, name, value string) ([]attribute, error) {
	at, found := findAttribute(all, name)
	switch {
	case found && value == "":
		return slices.Delete(all, at, at+1), nil
	case found:
		all[at].Value = value
	case value == "":
	case len(all) == MaxAttributes:
		return all, &pawl.InvalidError{Field: "attributes", Reason: fmt.Sprintf("there are more than %d", MaxAttributes)}
	default:
		all = slices.Insert(all, at, attribute{Name: name, Value: value})
	}
	return all, nil
}

// attributes returns the attributes of a run, nil if it has none.
func (row *runRow) attributes() map[string]string {
	if len(row.Attributes) == 0 {
		return nil
	}
	all := make(map[string]string, len(row.Attributes))
	for _, a := range row.Attributes {
		all[a.Name] = a.Value
	}
	return all
}

// attribute returns the value of an attribute, "" if there is none.
func (row *runRow) attribute(name string) string {
	if at, found := findAttribute(row.Attributes, name); found {
		return row.Attributes[at].Value
	}
	return ""
}

// findAttribute returns the place of a name.
func findAttribute(all []attribute, name string) (at int, found bool) {
	return slices.BinarySearchFunc(all, name, func(a attribute, name string) int { return cmp.Compare(a.Name, name) })
}

// validAttribute checks a name and a value, which may be "".
func validAttribute(name, value string) error {
	reason := ""
	switch err := validName("attribute", name); {
	case err != nil:
		return err
	case len(name) > MaxAttributeName:
		reason = fmt.Sprintf("its name has %d bytes, at most %d are allowed", len(name), MaxAttributeName)
	case strings.ContainsRune(name, '='):
		reason = fmt.Sprintf("%q has a =, which separates the name from the value", name)
	case len(value) > MaxAttributeValue:
		reason = fmt.Sprintf("the value of %s has %d bytes, at most %d are allowed", name, len(value), MaxAttributeValue)
	case strings.ContainsRune(value, 0):
		reason = fmt.Sprintf("the value of %s has a NUL", name)
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		reason = fmt.Sprintf("%q is not UTF-8, or its value is not", name)
	default:
		return nil
	}
	return &pawl.InvalidError{Field: "attribute", Reason: reason}
}

// soundAttributes reports whether the attributes are as an engine writes them.
func soundAttributes(all []attribute) bool {
	for i, a := range all {
		if validAttribute(a.Name, a.Value) != nil || a.Value == "" || i > 0 && all[i-1].Name >= a.Name {
			return false
		}
	}
	return len(all) <= MaxAttributes
}
