package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// MaxLength is the maximum length of an expression in bytes.
const MaxLength = 1024

// Parse reads an expression. An error is a [*pawl.InvalidError] with the field "schedule". Its reason
// gives the column of the part that is wrong, in bytes from 1.
func Parse(text string) (Spec, error) { return ParseNamed("", text) }

// ParseNamed is like [Parse] for a schedule with a name. The name decides which values an H stands
// for, so schedules with different names spread over time.
func ParseNamed(name, text string) (Spec, error) {
	if len(text) > MaxLength {
		return Spec{}, invalid("has %d bytes, and may have %d", len(text), MaxLength)
	}
	p := parser{spec: Spec{name: name}, words: split(text)}
	if err := p.all(); err != nil {
		return Spec{}, err
	}
	return p.spec, nil
}

func invalid(format string, args ...any) error {
	return &pawl.InvalidError{Field: "schedule", Reason: fmt.Sprintf(format, args...)}
}

// word is a part of an expression without spaces.
type word struct {
	text   string
	column int
}

func (w word) wrong(format string, args ...any) error {
	return invalid("%s (column %d)", fmt.Sprintf(format, args...), w.column)
}

// cut splits a word at the first separator.
func (w word) cut(sep string) (before, after word, found bool) {
	b, a, found := strings.Cut(w.text, sep)
	return word{b, w.column}, word{a, w.column + len(b) + len(sep)}, found
}

// split returns the words of an expression up to a comment.
func split(text string) (words []word) {
	start := -1
	for i, c := range []byte(text + " ") {
		switch space := c == ' ' || c == '\t' || c == '\n' || c == '\r'; {
		case space && start >= 0:
			words = append(words, word{text[start:i], start + 1})
			start = -1
		case !space && start < 0:
			if c == '#' {
				return words
			}
			start = i
		}
	}
	return words
}

type parser struct {
	spec  Spec
	words []word
}

func (p *parser) all() error {
	zone := ""
	if len(p.words) > 0 {
		if key, value, found := p.words[0].cut("="); found {
			if key.text != "TZ" && key.text != "CRON_TZ" {
				return key.wrong("%q is not TZ or CRON_TZ", key.text)
			}
			if err := p.zone(value); err != nil {
				return err
			}
			zone, p.words = "TZ="+value.text+" ", p.words[1:]
		}
	}
	if len(p.words) == 0 {
		return invalid("is empty")
	}
	text, err := p.when()
	p.spec.text = zone + text
	return err
}

func (p *parser) zone(name word) (err error) {
	if name.text == "" || name.text == "Local" {
		return name.wrong("name a time zone, as in TZ=Europe/Berlin")
	}
	if p.spec.location, err = Location(name.text); err != nil {
		return name.wrong("the time zone %v", err)
	}
	return nil
}

// atOpen is the expression that happens when a scheduler starts.
const atOpen = "@open"

// shorthands are the expressions with a name.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// when reads what follows the time zone, and returns its normal form.
func (p *parser) when() (text string, err error) {
	first := p.words[0]
	if !strings.HasPrefix(first.text, "@") {
		return p.fields()
	}
	text = strings.ToLower(first.text)
	if text == "@every" {
		return p.interval()
	}
	fields, known := shorthands[text]
	p.spec.open = text == atOpen
	switch {
	case !known && !p.spec.open:
		return "", first.wrong("%q is not @every, @open, or one of @yearly, @monthly, @weekly, @daily, and @hourly", first.text)
	case len(p.words) > 1:
		return "", p.words[1].wrong("nothing may follow %s", text)
	case p.spec.open:
		return text, nil
	}
	p.words = split(fields)
	_, err = p.fields()
	return text, err
}

// interval reads what follows @every.
func (p *parser) interval() (text string, err error) {
	if len(p.words) != 2 {
		return "", p.words[0].wrong("@every needs one interval, as in @every 90s")
	}
	every, phase, shifted := p.words[1].cut("/")
	if p.spec.every, err = seconds(every); err != nil {
		return "", err
	}
	if p.spec.every < 1 {
		return "", every.wrong("the interval is at least 1s")
	}
	text = "@every " + strings.ToLower(every.text)
	if !shifted {
		return text, nil
	}
	if p.spec.phase, err = seconds(phase); err != nil {
		return "", err
	}
	if p.spec.phase < 0 || p.spec.phase >= p.spec.every {
		return "", phase.wrong("the part behind / is at least 0s and less than the interval")
	}
	return text + "/" + strings.ToLower(phase.text), nil
}

// seconds reads a duration of whole seconds.
func seconds(w word) (int64, error) {
	d, err := time.ParseDuration(strings.ToLower(w.text))
	switch {
	case err != nil:
		return 0, w.wrong("%q is not a duration such as 90s or 1h30m", w.text)
	case d%time.Second != 0:
		return 0, w.wrong("%q is not a whole number of seconds", w.text)
	}
	return int64(d / time.Second), nil
}
