package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// The JSON of requests and answers is derived from their Go types, so no operation converts its
// own and no field is forgotten. It differs from encoding/json:
//
//  - a field has its Go name in snake case; the fields of an embedded struct are at
//    the level of the others
//  - a string may have any bytes, see [Text]; a time is a [Stamp], a duration a [Span], a
//    job a [Job], an error a problem
//   - a map with string keys is a list of {"key":…,"value":…}
//
// Each Go type has a second one, its wire type, which encoding/json reads and writes. Values are
// copied between the two.
//
// Rejected alternatives: plain encoding/json, which replaces bytes that are not UTF-8 and fails
// on a year beyond 9999; structs written by hand for each body, which took 900 lines of copying;
// gob or MessagePack, which are unreadable with curl.

// conversion is a wire type that is not derived from the Go type.
type conversion struct {
	wire reflect.Type
	to   func(v reflect.Value, form PayloadForm) reflect.Value
	from func(v reflect.Value) (reflect.Value, error)
}

func converts[T, W any](to func(T, PayloadForm) W, from func(W) (T, error)) (reflect.Type, conversion) {
	return reflect.TypeFor[T](), conversion{
		wire: reflect.TypeFor[W](),
		to: func(v reflect.Value, form PayloadForm) reflect.Value {
			value, _ := v.Interface().(T) // a nil error has no type
			return reflect.ValueOf(to(value, form))
		},
		from: func(v reflect.Value) (reflect.Value, error) {
			value, err := from(v.Interface().(W))
			return reflect.ValueOf(&value).Elem(), err
		},
	}
}

var conversions = make(map[reflect.Type]conversion)

func init() {
	add := func(t reflect.Type, c conversion) { conversions[t] = c }
	add(converts(
		func(t time.Time, _ PayloadForm) Stamp { return Stamp{t} },
		func(s Stamp) (time.Time, error) { return s.Time, nil }))
	add(converts(
		func(d time.Duration, _ PayloadForm) Span { return Span(d) },
		func(s Span) (time.Duration, error) { return s.Duration(), nil }))
	add(converts(
		func(err error, _ PayloadForm) *problem { p, _ := problemOf(err); return p },
		func(p *problem) (error, error) { return p.err(), nil }))
	add(converts(wireJob, envelopeOf))
	add(converts(
		func(l pawl.Listed, form PayloadForm) listedJob {
			p, _ := problemOf(l.Err)
			return listedJob{Job: *wireJob(l.Job, form), Error: p}
		},
		listedOf))
	add(converts(
		func(s workflow.Status, _ PayloadForm) string { return string(s) },
		func(text string) (workflow.Status, error) {
			if status := workflow.Status(text); text == "" || slices.Contains(runStatuses, status) {
				return status, nil
			}
			return "", invalid("status", "%q is none of %v", truncate(text), runStatuses)
		}))
}

// wireJob returns a job with its payload, if the job was read with one.
func wireJob(e *pawl.Envelope, form PayloadForm) *Job {
	if e == nil {
		return nil
	}
	if e.Payload == nil {
		form = PayloadNone
	}
	j := JobOf(e, form)
	return &j
}

func envelopeOf(j *Job) (*pawl.Envelope, error) {
	if j == nil {
		return nil, nil
	}
	return j.Envelope()
}

// listedJob is one job of a page.
type listedJob struct {
	Job
	Error *problem `json:"error"` // of a damaged job
}

// briefJob is the entry in a page for a damaged job, or for a job in the detail [IDs].
type briefJob struct {
	ID    string   `json:"id"`
	Kind  Text     `json:"kind,omitempty"`
	Queue Text     `json:"queue,omitempty"`
	State string   `json:"state,omitempty"`
	Error *problem `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler. Each stored job has a time of creation, so a job
// without one was listed briefly.
func (l listedJob) MarshalJSON() ([]byte, error) {
	if l.Error != nil || l.CreatedAt.IsZero() {
		return marshal(briefJob{l.ID, l.Kind, l.Queue, l.State, l.Error})
	}
	return marshal(l.Job)
}

func listedOf(l listedJob) (listed pawl.Listed, err error) {
	listed.Err = l.Error.err()
	if listed.Err != nil {
		listed.Job = new(pawl.Envelope)
		listed.Job.ID, err = pawl.ParseID(l.ID)
		return listed, err
	}
	listed.Job, err = l.Envelope()
	return listed, err
}

// encode writes v as JSON with a newline at its end.
func encode(v any, form PayloadForm) ([]byte, error) {
	from := reflect.ValueOf(v)
	to := reflect.New(wireType(from.Type())).Elem()
	toWire(to, from, form)
	return marshal(to.Interface())
}

// decodeAnswer reads an answer of an app. It ignores fields of a newer app.
func decodeAnswer(text []byte, v any) error {
	return decodeWith(json.Unmarshal, text, v)
}

// requestLevels is how many levels of a request have a limited number of elements: those of all
// lists that become Go values. The size of the body limits deeper levels.
const requestLevels = 4

// decodeRequest reads a body. It rejects an unknown field, a duplicate name, and a list of more
// than [pawl.MaxBatchJobs] elements: a small body cannot demand memory by the number of its
// commas.
func decodeRequest(body []byte, v any) error {
	err := strictJSON(body, pawl.MaxBatchJobs, requestLevels)
	if err == nil {
		err = decodeWith(strict, body, v)
	}
	switch {
	case err == nil, errors.Is(err, pawl.ErrInvalid), errors.Is(err, pawl.ErrBatchTooLarge):
		return err
	case errors.Is(err, errManyElements):
		return fmt.Errorf("%w: %w", pawl.ErrBatchTooLarge, err)
	}
	return invalid("body", "%v", err)
}

func decodeWith(read func([]byte, any) error, text []byte, v any) error {
	to := reflect.ValueOf(v).Elem()
	from := reflect.New(wireType(to.Type()))
	if err := read(text, from.Interface()); err != nil {
		return err
	}
	return fromWire(to, from.Elem())
}

// marshal returns v as JSON with a newline at its end.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // escaping turns one byte into six
	err := enc.Encode(v)
	return b.Bytes(), err
}

// wireTypes caches the derived wire types.
var wireTypes sync.Map

// wireType returns the type that represents t in JSON.
func wireType(t reflect.Type) reflect.Type {
	if c, ok := conversions[t]; ok {
		return c.wire
	}
	if known, ok := wireTypes.Load(t); ok {
		return known.(reflect.Type)
	}
	wire := deriveWireType(t)
	wireTypes.Store(t, wire)
	return wire
}

func deriveWireType(t reflect.Type) reflect.Type {
	if ownsJSON(t) {
		return t
	}
	switch t.Kind() {
	case reflect.String:
		return reflect.TypeFor[Text]()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return t
		}
		return reflect.SliceOf(wireType(t.Elem()))
	case reflect.Pointer:
		return reflect.PointerTo(wireType(t.Elem()))
	case reflect.Map:
		return reflect.SliceOf(reflect.StructOf([]reflect.StructField{
			{Name: "Key", Type: reflect.TypeFor[Text](), Tag: `json:"key"`},
			{Name: "Value", Type: wireType(t.Elem()), Tag: `json:"value"`},
		}))
	case reflect.Struct:
		fields := fieldsOf(t)
		wire := make([]reflect.StructField, len(fields))
		for i, f := range fields {
			tag := f.Tag
			if tag.Get("json") == "" {
				tag = reflect.StructTag(`json:"` + snake(f.Name) + `"`)
			}
			wire[i] = reflect.StructField{Name: f.Name, Type: wireType(f.Type), Tag: tag}
		}
		return reflect.StructOf(wire)
	}
	return t
}

// ownsJSON reports whether a type defines its own JSON.
func ownsJSON(t reflect.Type) bool {
	type unmarshaler interface{ UnmarshalJSON([]byte) error }
	type textUnmarshaler interface{ UnmarshalText([]byte) error }
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[unmarshaler]()) || p.Implements(reflect.TypeFor[textUnmarshaler]()) ||
		t == reflect.TypeFor[Job]() || t == reflect.TypeFor[Payload]() || t == reflect.TypeFor[problem]()
}

// fieldsOf returns the fields of a struct, with those of embedded structs in their places.
func fieldsOf(t reflect.Type) (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.IsExported() {
			all = append(all, f)
		}
	}
	return all
}

// snake returns a Go name in snake case: DiedSince is died_since, and NewID is new_id.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(strings.ReplaceAll(name, "IDs", "Ids"))
	for i, r := range runes {
		next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || next) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// toWire copies a value to a value of its wire type.
func toWire(to, from reflect.Value, form PayloadForm) {
	if c, ok := conversions[from.Type()]; ok {
		to.Set(c.to(from, form))
		return
	}
	if to.Type() == from.Type() {
		to.Set(from)
		return
	}
	switch from.Kind() {
	case reflect.String:
		to.SetString(from.String())
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				toWire(to.Index(i), from.Index(i), form)
			}
		}
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			toWire(to.Elem(), from.Elem(), form)
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		keys := from.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		to.Set(reflect.MakeSlice(to.Type(), len(keys), len(keys)))
		for i, key := range keys {
			to.Index(i).Field(0).SetString(key.String())
			toWire(to.Index(i).Field(1), from.MapIndex(key), form)
		}
	case reflect.Struct:
		for i, f := range fieldsOf(from.Type()) {
			toWire(to.Field(i), from.FieldByIndex(f.Index), form)
		}
	}
}

// fromWire copies a value of a wire type to a value of the Go type.
func fromWire(to, from reflect.Value) (err error) {
	if c, ok := conversions[to.Type()]; ok {
		v, err := c.from(from)
		if err == nil {
			to.Set(v)
		}
		return err
	}
	if to.Type() == from.Type() {
		to.Set(from)
		return nil
	}
	switch to.Kind() {
	case reflect.String:
		to.SetString(from.String())
	case reflect.Slice:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if to.Type().Elem().Kind() == reflect.Pointer && from.Index(i).IsNil() {
				return invalid("body", "element %d of a list is null", i)
			}
			if err := fromWire(to.Index(i), from.Index(i)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			return fromWire(to.Elem(), from.Elem())
		}
	case reflect.Map:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.MakeMapWithSize(to.Type(), min(from.Len(), math.MaxInt16)))
		for i := range from.Len() {
			value := reflect.New(to.Type().Elem()).Elem()
			if err := fromWire(value, from.Index(i).Field(1)); err != nil {
				return err
			}
			to.SetMapIndex(reflect.ValueOf(from.Index(i).Field(0).String()), value)
		}
	case reflect.Struct:
		for i, f := range fieldsOf(to.Type()) {
			if err := fromWire(to.FieldByIndex(f.Index), from.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", snake(f.Name), err)
			}
		}
	}
	return nil
}
