package pawl_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

type node struct {
	Name string
	Next *node `msgpack:",omitempty"`
}

// selves are values that contain themselves. msgpack follows them until the stack
// overflows, which ends the process; the size limit comes too late for most and
// never for a pointer, which writes no byte.
func selves() map[string]any {
	ring := &node{Name: "a", Next: &node{Name: "b"}}
	ring.Next.Next = ring
	list := []any{1, nil}
	list[1] = list
	type typed []typed
	deep := typed{nil}
	deep[0] = deep
	dict := map[string]any{"x": 1}
	dict["self"] = dict
	var pointer any
	pointer = &pointer
	type inner struct{ Up any }
	up := &inner{}
	up.Up = map[string][]*inner{"x": {up}}
	return map[string]any{
		"ring of structs": ring, "ring by value": *ring, "list": list, "typed list": deep,
		"map": dict, "pointer to itself": pointer, "through several": up,
		"in a corner": []any{1, "x", map[string]any{"y": []any{nil, list}}},
	}
}

func TestValueThatContainsItselfIsRefused(t *testing.T) {
	for name, value := range selves() {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, refuse(t, value), pawl.ErrPayloadEncoding)
		})
	}
}

// clock encodes itself, so what it points to does not matter.
type clock struct{ Self *clock }

func (c *clock) MarshalText() ([]byte, error) { return []byte("noon"), nil }

// The same value in several places, deep values and types that could recur are no
// reason to refuse.
func TestValueThatDoesNotContainItselfIsAccepted(t *testing.T) {
	shared := &node{Name: "shared"}
	c := &clock{}
	c.Self = c
	chain := &node{}
	for range 25 {
		chain = &node{Name: "n", Next: chain}
	}
	type private struct {
		Name string
		self any
		Skip any `msgpack:"-"`
	}
	failed := &cyclicError{}
	failed.Cause = failed
	p := private{Name: "p"}
	p.self, p.Skip = &p, &p
	for name, value := range map[string]any{
		"shared":                []any{shared, shared, []*node{shared, shared}},
		"chain":                 chain,
		"32 levels":             lists(32, 1),
		"encodes itself":        []any{c, time.Now(), big.NewInt(7)},
		"fields left out":       &p,
		"nil inside":            []any{nil, (*node)(nil), map[string]any(nil)},
		"error":                 map[string]error{"e": failed},
		"no arguments":          nil,
		"empty struct":          struct{}{},
		"interface as map keys": map[any]any{"a": 1, 2: []any{"b"}},
	} {
		_, err := pawl.Define[any]("k").Envelope(value)
		require.NoError(t, err, name)
	}
}

type cyclicError struct{ Cause *cyclicError }

func (e *cyclicError) Error() string { return "the text is what msgpack writes" }

// Thirty lists of two, each twice the one below, are a thousand million values
// when written out.
func TestSharedValueThatExplodesIsTooLarge(t *testing.T) {
	var value any = "x"
	for range 30 {
		value = []any{value, value}
	}
	_, err := pawl.Define[any]("k").Envelope(value)
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
}
