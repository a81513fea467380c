package pawl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: the error for arguments that do not fit their type names the field, whether the decoder or
// the comparison with the type refuses it.
func TestMisfitNamesTheField(t *testing.T) {
	type line struct {
		Count uint8
		Note  *string
	}
	type order struct {
		ID    string `json:"id"`
		Lines []line
		By    map[string]line `msgpack:"by,alias:per"`
	}
	kind := pawl.Define[order]("order")
	for want, args := range map[string]any{
		"id: ":                 map[string]any{"id": 7},
		"Lines: ":              map[string]any{"id": "a", "Lines": "b"},
		"Lines[1].Count: ":     map[string]any{"Lines": []any{map[string]any{"Count": 1}, map[string]any{"Count": "many"}}},
		"by.x.Note: ":          map[string]any{"by": map[string]any{"x": map[string]any{"Note": true}}},
		"per.x.Count: ":        map[string]any{"per": map[string]any{"x": map[string]any{"Count": 1.5}}},
		"Lines[0].Count: 300 ": map[string]any{"Lines": []any{map[string]any{"Count": 300}}},
		`has no field "it"`:    map[string]any{"it": 1},
	} {
		payload, err := driver.EncodePayload(args)
		require.NoError(t, err)
		_, err = kind.Job(&pawl.Envelope{Kind: "order", Payload: payload})
		require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
		require.ErrorContains(t, err, want)
	}
}
