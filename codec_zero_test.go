package pawl_test

import (
	"errors"
	"math/big"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// level is an enum without a text for its zero value.
type level int

func (l level) MarshalText() ([]byte, error) {
	if l != 1 {
		return nil, errors.New("no such level")
	}
	return []byte("high"), nil
}

func (l *level) UnmarshalText([]byte) error { *l = 1; return nil }

// Rule: arguments are checked beside a field whose zero value cannot be encoded, and beside one
// whose pointer encodes it.
func TestFieldsThatEncodeThemselvesHideNoOthers(t *testing.T) {
	type enum struct {
		Level level
		Small int8
	}
	type pointers struct {
		Link  url.URL
		N     big.Int
		Small int8
	}
	b, err := driver.EncodePayload(map[string]any{"Small": 300})
	require.NoError(t, err)
	require.ErrorIs(t, driver.DecodePayload(b, new(enum)), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, driver.DecodePayload(b, new(pointers)), pawl.ErrPayloadEncoding)

	b, err = driver.EncodePayload(&pointers{Small: 1})
	require.NoError(t, err)
	require.NoError(t, driver.DecodePayload(b, new(pointers)))
}
