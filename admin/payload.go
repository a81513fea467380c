package admin

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ParsePayload checks the terms of [Filter.Payload]; its error is a *pawl.InvalidError. A term
// is a path, or a path, an operator and a value:
//
//	user.id          the field exists
//	user.id=42       it is this number, Boolean, null, or string
//	user.id="42"     it is this string
//	user.id!=42      the opposite: also true if the field does not exist
//	user.name~ada    it is a string, or the text of a number or time, that contains this, in
//	                 upper or lower case
//	items.0.sku      a number in a path is an index into a list
//	"a.b".c          a key with a dot or an operator in it is quoted
//	.                the payload itself, for arguments other than a struct or map
//
// A payload that is not MessagePack has no fields.
func ParsePayload(terms []string) error {
	_, err := parseTerms(terms)
	return err
}

// term is one condition on a payload.
type term struct {
	path     []string // empty for the payload itself
	operator string   // "" requires only that the field exists
	value    string   // in lower case for "~"
	quoted   bool     // the value is a string
}

// maxTerms is the most terms of one filter: each walks over every payload.
const maxTerms = 32

func parseTerms(texts []string) (terms []term, err error) {
	if len(texts) > maxTerms {
		return nil, invalid("payload", "%d terms, a filter has at most %d", len(texts), maxTerms)
	}
	for _, text := range texts {
		t, err := parseTerm(text)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return terms, nil
}

func parseTerm(text string) (t term, err error) {
	rest := text
	if behind, ok := strings.CutPrefix(text, "."); ok {
		rest = behind
		if t.operator, t.value = operatorOf(rest); rest != "" && t.operator == "" {
			return t, invalid("payload", "%q begins with a dot; the path of a field begins with its name", truncate(text))
		}
	} else {
		for more := true; more; {
			var step string
			if step, rest, err = parseStep(rest); err != nil {
				return t, invalid("payload", "%q %v", truncate(text), err)
			}
			t.path = append(t.path, step)
			rest, more = strings.CutPrefix(rest, ".")
		}
		if t.operator, t.value = operatorOf(rest); rest != "" && t.operator == "" {
			return t, invalid("payload", "%q has something other than = != ~ behind a quoted name", truncate(text))
		}
	}
	if t.operator != "" && strings.HasPrefix(t.value, `"`) {
		if t.value, err = strconv.Unquote(t.value); err != nil {
			return t, invalid("payload", "%q has a value that begins with a quote and does not end with one", truncate(text))
		}
		t.quoted = true
	}
	if t.operator == "~" {
		t.value = strings.ToLower(t.value)
	}
	return t, nil
}

// operatorOf splits the text after a path.
func operatorOf(rest string) (operator, value string) {
	for _, operator := range []string{"!=", "=", "~"} {
		if value, ok := strings.CutPrefix(rest, operator); ok {
			return operator, value
		}
	}
	return "", ""
}

// parseStep splits the first name off a path.
func parseStep(text string) (step, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", errors.New("has a name that begins with a quote and does not end with one")
		}
		step, _ = strconv.Unquote(quoted)
		return step, text[len(quoted):], nil
	}
	end := strings.IndexAny(text, ".=~!")
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return "", "", errors.New("has no name where a path needs one")
	}
	if text[end:] != "" && text[end] == '!' && !strings.HasPrefix(text[end:], "!=") {
		return "", "", errors.New("has a ! that is no !=; put the name in quotes")
	}
	return text[:end], text[end:], nil
}

// matchTerms reports whether all terms hold.
func matchTerms(terms []term, payload []byte) bool {
	if len(terms) == 0 {
		return true
	}
	sound := wellFormed(payload) == nil
	for i := range terms {
		at := -1
		if sound {
			at = find(payload, terms[i].path)
		}
		if !terms[i].holds(payload, at) {
			return false
		}
	}
	return true
}

// find returns where the value of a path begins in a valid payload, or -1. The last of duplicate
// keys counts, as it does for a decoder.
func find(payload []byte, path []string) int {
	p := &packed{in: payload}
	for _, step := range path {
		v, err := p.next()
		if err != nil {
			return -1
		}
		found := -1
		switch v.shape {
		case shapeList:
			place, err := strconv.ParseUint(step, 10, 32)
			for i := range v.n {
				if err == nil && i == place {
					found = p.at
					break
				}
				_ = p.skip(0)
			}
		case shapeMap:
			for range v.n {
				key := p.at
				_ = p.skip(0)
				if keyText(payload, key) == step {
					found = p.at
				}
				_ = p.skip(0)
			}
		}
		if found < 0 {
			return -1
		}
		p.at = found
	}
	return p.at
}

// keyText returns a key as the string that DecodeJSON makes of it, "" for a list or map.
func keyText(payload []byte, at int) string {
	p := &packed{in: payload, at: at}
	v, err := p.next()
	if err != nil {
		return ""
	}
	text, _ := v.scalar()
	return text
}

// holds reports whether the term holds for the value at an offset, -1 for none.
func (t *term) holds(payload []byte, at int) bool {
	if at < 0 {
		return t.operator == "!="
	}
	p := &packed{in: payload, at: at}
	v, err := p.next()
	if err != nil {
		return false // the payload was valid a moment ago
	}
	switch t.operator {
	case "=":
		return t.equals(&v)
	case "!=":
		return !t.equals(&v)
	case "~":
		text, _ := v.scalar()
		return v.shape != shapeList && v.shape != shapeMap && strings.Contains(strings.ToLower(text), t.value)
	}
	return true
}

// equals compares a value with that of the term. Whole numbers are compared exactly, others as
// 64-bit floats.
func (t *term) equals(v *item) bool {
	if t.quoted {
		return v.shape == shapeText && string(v.data) == t.value
	}
	switch v.shape {
	case shapeInt:
		if n, err := strconv.ParseInt(t.value, 10, 64); err == nil {
			return n == int64(v.n)
		}
		return t.isFloat(float64(int64(v.n)))
	case shapeUint:
		if n, err := strconv.ParseUint(t.value, 10, 64); err == nil {
			return n == v.n
		}
		return t.isFloat(float64(v.n))
	case shapeFloat32:
		f, err := strconv.ParseFloat(t.value, 32)
		return err == nil && float32(f) == math.Float32frombits(uint32(v.n)) || t.isFloat(v.float())
	case shapeFloat64:
		return t.isFloat(v.float())
	}
	text, ok := v.scalar()
	return ok && text == t.value
}

func (t *term) isFloat(f float64) bool {
	want, err := strconv.ParseFloat(t.value, 64)
	return err == nil && want == f
}
