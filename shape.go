package pawl

import (
	"encoding"
	"reflect"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/tagparser/v2"
)

// fieldTag is the struct tag that names a field which has no msgpack tag.
const fieldTag = "json"

// A shape is what a Go type accepts from MessagePack. The decoder of msgpack v5.4.1
// drops what a type cannot hold: the high bits of an integer, a field that the struct
// lacks, a nil where a value belongs. [misfit] compares the bytes with the shape first.
type shape struct {
	typ    reflect.Type
	key    slot            // of a map
	elem   slot            // of a slice, an array or a map
	fields []field         // of a struct, in their order
	byName map[string]slot // the same, and by other names that the decoder takes
	hollow reflect.Type    // a struct in it whose fields are all unexported; nil if it has none
}

// slot is a place for a value: a type, and whether nil is a value of it.
type slot struct {
	shape   *shape // nil if the decoder loses nothing, or the type decodes itself
	nilable bool
}

// field is a field of a struct as it travels.
type field struct {
	name string
	slot
}

// shapes caches the slots of types: reflect.Type to slot.
var shapes sync.Map

// slotOf returns the slot of a type.
func slotOf(t reflect.Type) slot {
	if known, ok := shapes.Load(t); ok {
		return known.(slot)
	}
	s := shaper{}.slot(t)
	shapes.Store(t, s)
	return s
}

// shaper makes shapes, one for each type, so that a type may contain itself.
type shaper map[reflect.Type]*shape

func (m shaper) slot(t reflect.Type) slot {
	if decodesItself(t) || hasCodec(t) {
		return slot{nilable: true}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return slot{m.slot(t.Elem()).shape, true}
	case reflect.Bool, reflect.String:
		return slot{}
	case reflect.Slice, reflect.Array:
		nilable := t.Kind() == reflect.Slice
		if t.Elem().Kind() == reflect.Uint8 {
			return slot{nilable: nilable} // bytes
		}
		return slot{m.shape(t), nilable}
	case reflect.Map:
		return slot{m.shape(t), true}
	case reflect.Struct,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return slot{m.shape(t), false}
	}
	return slot{nilable: true}
}

func (m shaper) shape(t reflect.Type) *shape {
	if known, ok := m[t]; ok {
		return known
	}
	s := &shape{typ: t}
	m[t] = s
	switch t.Kind() {
	case reflect.Map:
		s.key, s.elem = m.slot(t.Key()), m.slot(t.Elem())
		s.contains(s.key, s.elem)
	case reflect.Slice, reflect.Array:
		s.elem = m.slot(t.Elem())
		s.contains(s.elem)
	case reflect.Struct:
		s.byName = make(map[string]slot)
		m.addFields(s, t)
		if len(s.fields) == 0 && t.NumField() > 0 {
			s.hollow = t
		}
	}
	return s
}

func (s *shape) contains(slots ...slot) {
	for _, in := range slots {
		if in.shape != nil && s.hollow == nil {
			s.hollow = in.shape.hollow
		}
	}
}

// addFields adds the fields of a struct.
func (m shaper) addFields(s *shape, t reflect.Type) {
	for _, f := range fieldsOf(t, nil, hasCodec) {
		in := slot{nilable: true}
		if !f.interned {
			in = m.slot(f.typ)
		}
		in.nilable = in.nilable || f.nilable
		if f.inlined {
			s.byName[f.name] = in
			continue
		}
		s.contains(in)
		s.add(field{f.name, in})
		if f.alias != "" {
			s.byName[f.alias] = in
		}
	}
}

func (s *shape) add(f field) {
	s.fields = append(s.fields, f)
	s.byName[f.name] = f.slot
}

// fieldType is a field before the shape of its type is known. That type may contain the struct
// itself.
type fieldType struct {
	name, alias string
	typ         reflect.Type
	interned    bool // a string that may travel as a reference to an earlier one
	nilable     bool // it lies within a pointer
	inlined     bool // it is an embedded struct whose fields stand for it
}

// fieldsOf lists the fields of a struct, named and inlined as msgpack does it. Within are the
// structs in which it is embedded.
func fieldsOf(t reflect.Type, within []reflect.Type, hasCodec func(reflect.Type) bool) (list []fieldType) {
	taken := make(map[string]bool)
	for i := range t.NumField() {
		sf := t.Field(i)
		if !encoded(sf) {
			continue
		}
		tag := tagOf(sf)
		f := fieldType{name: tag.Name, alias: tag.Options["alias"], typ: sf.Type, interned: tag.HasOption("intern")}
		if f.name == "" {
			f.name = sf.Name
		}
		if sf.Anonymous && !tag.HasOption("noinline") {
			var inner []fieldType
			if inner, f.inlined = inline(sf.Type, tag.HasOption("inline"), taken, append(within, t), hasCodec); f.inlined {
				f.alias = ""
			}
			for _, g := range inner {
				taken[g.name] = true
			}
			list = append(list, inner...)
		}
		taken[f.name] = true
		if f.alias != "" {
			taken[f.alias] = true
		}
		list = append(list, f)
	}
	return list
}

// inline lists the fields of an embedded struct that stand for it. Unless the tag asks for
// that, an embedded struct that shares a field name with the outer one is a field of its own.
func inline(t reflect.Type, asked bool, taken map[string]bool, within []reflect.Type, hasCodec func(reflect.Type) bool) (list []fieldType, inlined bool) {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !asked && (decodesItself(t) || encodesItself(t) || hasCodec(t)) {
		return nil, false
	}
	if slices.Contains(within, t) {
		return nil, true
	}
	for _, f := range fieldsOf(t, within, hasCodec) {
		switch {
		case f.inlined:
		case !taken[f.name]:
			f.alias, f.nilable = "", f.nilable || pointer // the fields of a nil pointer travel as nil
			list = append(list, f)
		case !asked:
			return nil, false
		}
	}
	return list, true
}

// encoded reports whether msgpack encodes a field.
func encoded(f reflect.StructField) bool {
	return (f.IsExported() || f.Anonymous) && tagOf(f).Name != "-"
}

// tagOf parses the tag that names a field: msgpack, or else json.
func tagOf(f reflect.StructField) *tagparser.Tag {
	text := f.Tag.Get("msgpack")
	if text == "" {
		text = f.Tag.Get(fieldTag)
	}
	return tagparser.Parse(text)
}

// decodesItself reports whether msgpack leaves the bytes of a value to its type.
func decodesItself(t reflect.Type) bool { return implementsAny(t, decoders) }

var decoders = []reflect.Type{
	reflect.TypeFor[msgpack.CustomDecoder](),
	reflect.TypeFor[msgpack.Unmarshaler](),
	reflect.TypeFor[encoding.BinaryUnmarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
}

func implementsAny(t reflect.Type, interfaces []reflect.Type) bool {
	return slices.ContainsFunc(interfaces, func(i reflect.Type) bool {
		return t.Implements(i) || reflect.PointerTo(t).Implements(i)
	})
}

// checkArguments refuses a type of arguments that would travel without its content.
func checkArguments(t reflect.Type) error {
	s := slotOf(t).shape
	if s == nil || s.hollow == nil || encodesItself(t) {
		return nil
	}
	return invalid("arguments", "%v has no exported field, so nothing of it would be stored; export its fields", s.hollow)
}
