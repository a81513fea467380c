package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Text is a string with any bytes. In JSON it is a string if it is valid UTF-8, and
// {"base64":"…"} otherwise.
type Text string

// rawText is a text that has no JSON string.
type rawText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(rawText{[]byte(t)})
	}
	b, err := marshal(string(t))
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == '{':
		var raw rawText
		if err := strict(b, &raw); err != nil {
			return fmt.Errorf(`text in place of {"base64":"…"}: %w`, err)
		}
		*t = Text(raw.Base64)
		return nil
	case !utf8.Valid(b):
		return errors.New(`text with bytes that are no UTF-8; write it as {"base64":"…"}`)
	}
	return json.Unmarshal(b, (*string)(t))
}

// each converts the elements of a list. The result is never null.
func each[T, U any](list []T, to func(T) U) []U {
	all := make([]U, len(list))
	for i, one := range list {
		all[i] = to(one)
	}
	return all
}

func textOrNull(s string) *Text {
	if s == "" {
		return nil
	}
	return (*Text)(&s)
}

func textOf(t *Text) string {
	if t == nil {
		return ""
	}
	return string(*t)
}

// Headers is the headers of a job. In JSON they are an object, or a list of {"key":…,"value":…}
// if a key is not valid UTF-8.
type Headers map[string]string

type header struct {
	Key   Text `json:"key"`
	Value Text `json:"value"`
}

// MarshalJSON implements json.Marshaler.
func (h Headers) MarshalJSON() ([]byte, error) {
	object := make(map[string]Text, len(h))
	list := make([]header, 0, len(h))
	plain := true
	for _, key := range slices.Sorted(maps.Keys(h)) {
		plain = plain && utf8.ValidString(key)
		object[key] = Text(h[key])
		list = append(list, header{Text(key), Text(h[key])})
	}
	if plain {
		return json.Marshal(object)
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Headers) UnmarshalJSON(b []byte) error {
	*h = nil
	if len(b) > 0 && b[0] == '[' {
		var list []header
		if err := strict(b, &list); err != nil {
			return err
		}
		for _, one := range list {
			h.set(string(one.Key), one.Value)
		}
		return nil
	}
	var object map[string]Text
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	for key, value := range object {
		h.set(key, value)
	}
	return nil
}

func (h *Headers) set(key string, value Text) {
	if *h == nil {
		*h = make(Headers)
	}
	(*h)[key] = string(value)
}

// Stamp is a time. In JSON it is RFC 3339 in UTC with nine digits, null for the zero time, and
// for a year outside RFC 3339 "@" with the seconds since 1970 and nine digits.
type Stamp struct{ time.Time }

const stampLayout = "2006-01-02T15:04:05.000000000Z"

func stampOf(t time.Time) Stamp { return Stamp{t} }

// String returns the time as in JSON, or "" for the zero time.
func (s Stamp) String() string {
	t := s.UTC()
	switch year := t.Year(); {
	case t.IsZero():
		return ""
	case year < 0 || year > 9999:
		return fmt.Sprintf("@%d.%09d", t.Unix(), t.Nanosecond())
	}
	return t.Format(stampLayout)
}

// MarshalJSON implements json.Marshaler.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(s.String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stamp) UnmarshalJSON(b []byte) error {
	*s = Stamp{}
	if string(b) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if since, ok := strings.CutPrefix(text, "@"); ok {
		whole, part, _ := strings.Cut(since, ".")
		seconds, err := strconv.ParseInt(whole, 10, 64)
		if err != nil {
			return invalid("time", "%q: %v", truncate(text), err)
		}
		nanos, err := strconv.ParseUint(part, 10, 32)
		if err != nil || len(part) != 9 {
			return invalid("time", "%q has no nine digits behind its seconds", truncate(text))
		}
		s.Time = time.Unix(seconds, int64(nanos)).UTC()
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return invalid("time", "%q is not of the form 2006-01-02T15:04:05Z", truncate(text))
	}
	s.Time = t.UTC()
	return nil
}

// Span is a duration. In JSON it is a string in Go's notation, such as 1m30s, and null for 0.
type Span time.Duration

// Duration returns the span as a time.Duration.
func (s Span) Duration() time.Duration { return time.Duration(s) }

// MarshalJSON implements json.Marshaler.
func (s Span) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(s.Duration().String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Span) UnmarshalJSON(b []byte) error {
	*s = 0
	if string(b) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return invalid("duration", "%q is not of the form 1m30s", truncate(text))
	}
	*s = Span(d)
	return nil
}

// strict reads JSON into v, which must have a field for everything in it.
func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func invalid(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// truncate shortens a text for an error message.
func truncate(s string) string { return ellipsis.Truncate(s, 64) }
