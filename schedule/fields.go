package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// field describes a field of an expression: its name and its values.
type field struct {
	name     string
	min, max int
	names    []string // names of the values, beginning with min
}

var fields = [numFields]field{
	second:     {name: "second", max: 59},
	minute:     {name: "minute", max: 59},
	hour:       {name: "hour", max: 23},
	dayOfMonth: {name: "day of the month", min: 1, max: 31},
	month: {name: "month", min: 1, max: 12, names: []string{
		"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
	}},
	dayOfWeek: {name: "day of the week", max: 6, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// fields reads an expression of fields, and returns its normal form.
func (p *parser) fields() (text string, err error) {
	words := p.words
	switch len(words) {
	case numFields - 1:
		words = slices.Concat([]word{{text: "0"}}, words)
	case numFields:
	default:
		return "", invalid("has %s; it needs 5, or 6 with seconds first", fieldCount(len(words)))
	}
	for i, w := range words {
		w.text = strings.ToUpper(w.text)
		if (i == dayOfMonth || i == dayOfWeek) && strings.ContainsAny(w.text, "*?") {
			p.spec.anyDay = true
		}
		for rest, more := w, true; more; {
			var part word
			part, rest, more = rest.cut(",")
			if err := p.part(i, part); err != nil {
				return "", err
			}
		}
	}
	if p.spec.nextClock(0) == never {
		return "", invalid("no day matches it")
	}
	normal := make([]string, len(p.words))
	for i, w := range p.words {
		normal[i] = strings.ToUpper(w.text)
	}
	return strings.Join(normal, " "), nil
}

func fieldCount(n int) string {
	if n == 1 {
		return "1 field"
	}
	return strconv.Itoa(n) + " fields"
}

// part reads a part of a field between commas.
func (p *parser) part(i int, w word) error {
	if read, err := p.special(i, w); read || err != nil {
		return err
	}
	f := &fields[i]
	values, step, stepped := w.cut("/")
	by := 1
	if stepped {
		var err error
		if by, err = number(step); err != nil || by < 1 || by > f.max {
			return step.wrong("%s: the step %q is not in 1-%d", f.name, step.text, f.max)
		}
	}
	first, last, err := p.values(i, values, stepped, &by)
	if err != nil {
		return err
	}
	if last < first { // wraps around
		last += f.max - f.min + 1
	}
	for n := first; n <= last; n += by {
		p.spec.sets[i] |= 1 << (f.min + (n-f.min)%(f.max-f.min+1))
	}
	return nil
}

// values reads a value, a range, or a sign that stands for one. An H without a step stands for one
// value.
func (p *parser) values(i int, w word, stepped bool, by *int) (first, last int, err error) {
	f := &fields[i]
	if w.text == "*" || w.text == "?" && (i == dayOfMonth || i == dayOfWeek) {
		return f.min, f.max, nil
	}
	if rest, hashed := strings.CutPrefix(w.text, "H"); hashed {
		return p.hashed(i, word{rest, w.column + 1}, stepped, by)
	}
	from, to, ranged := w.cut("-")
	if first, err = f.value(from); err != nil {
		return 0, 0, err
	}
	switch {
	case !ranged && stepped:
		return first, f.max, nil
	case !ranged:
		return first, first, nil
	}
	last, err = f.value(to)
	if i == dayOfWeek && to.text == "7" && from.text != "7" { // a range up to Sunday
		last = 7
	}
	return first, last, err
}

// hashed chooses a value by the name, within the whole field or within a range in parentheses.
func (p *parser) hashed(i int, w word, stepped bool, by *int) (first, last int, err error) {
	f := &fields[i]
	first, last = f.min, f.max
	if i == dayOfMonth {
		last = 28 // the last day that every month has
	}
	if w.text != "" {
		inside, open := strings.CutPrefix(w.text, "(")
		inside, closed := strings.CutSuffix(inside, ")")
		from, to, ranged := word{inside, w.column + 1}.cut("-")
		if !open || !closed || !ranged {
			return 0, 0, w.wrong("%s: a range in parentheses may follow H, as in H(1-5)", f.name)
		}
		if first, err = f.value(from); err != nil {
			return 0, 0, err
		}
		if last, err = f.value(to); err != nil {
			return 0, 0, err
		}
		if last < first {
			return 0, 0, to.wrong("%s: a range behind H does not wrap around", f.name)
		}
	}
	among := last - first + 1
	if stepped {
		among = min(among, *by)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d", p.spec.name, i)
	first += int(h.Sum64() % uint64(among))
	if !stepped {
		last = first
	}
	return first, last, nil
}

// value reads a number or a name of a field.
func (f *field) value(w word) (int, error) {
	if n := slices.Index(f.names, w.text); n >= 0 {
		return f.min + n, nil
	}
	n, err := number(w)
	switch isWeekday := len(f.names) == 7; {
	case err != nil && f.names != nil:
		return 0, w.wrong("%s: %q is not a number or a name such as %s", f.name, w.text, f.names[0])
	case err != nil:
		return 0, w.wrong("%s: %q is not a number", f.name, w.text)
	case isWeekday && n == 7:
		return 0, nil
	case n < f.min || n > f.max:
		return 0, w.wrong("%s: %d is not in %d-%d", f.name, n, f.min, f.max)
	}
	return n, nil
}

// number reads a number that has digits only.
func number(w word) (int, error) {
	n, err := strconv.ParseUint(w.text, 10, 16)
	return int(n), err
}

// special reads a part that only a day field can have. It returns false if w is not such a part.
func (p *parser) special(i int, w word) (read bool, err error) {
	f := &fields[i]
	switch i {
	case dayOfMonth:
		return p.specialDay(f, w)
	case dayOfWeek:
	default:
		return false, nil
	}
	if day, n, found := w.cut("#"); found {
		d, err := f.value(day)
		if err != nil {
			return true, err
		}
		nth, err := number(n)
		if err != nil || nth < 1 || nth > 5 {
			return true, n.wrong("%s: a number from 1 to 5 follows #", f.name)
		}
		p.spec.nth |= 1 << (7*nth + d)
		return true, nil
	}
	if day, found := strings.CutSuffix(w.text, "L"); found {
		if day == "" {
			return true, w.wrong("%s: say the last of which day, as in FRIL", f.name)
		}
		d, err := f.value(word{day, w.column})
		p.spec.nth |= 1 << d
		return true, err
	}
	return false, nil
}

// specialDay reads a part that only the day of the month can have.
func (p *parser) specialDay(f *field, w word) (read bool, err error) {
	if w.text == "LW" {
		p.spec.lastWeekday = true
		return true, nil
	}
	if day, found := strings.CutSuffix(w.text, "W"); found {
		d, err := f.value(word{day, w.column})
		p.spec.nearest |= 1 << d
		return true, err
	}
	if before, found := strings.CutPrefix(w.text, "L"); found {
		days, n := 0, word{strings.TrimPrefix(before, "-"), w.column + 2}
		if before != "" {
			if days, err = number(n); err != nil || !strings.HasPrefix(before, "-") || days > 30 {
				return true, w.wrong("%s: L stands alone, or a number up to 30 follows, as in L-3", f.name)
			}
		}
		p.spec.lastDays |= 1 << days
		return true, nil
	}
	return false, nil
}
