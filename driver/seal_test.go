package driver

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

var (
	sealSpace  = NewSpace("seal")
	oneTable   = sealSpace.Table("one")
	otherTable = sealSpace.Table("other")
)

// Rule: a row that a newer build wrote is not taken for damage, and a row of a form that never
// existed is. Both return an error that a caller can match.
func TestFormOfARow(t *testing.T) {
	bucket, key := oneTable, []byte("key")
	inForm := func(form byte) []byte {
		value := append([]byte{form}, "content"...)
		return binary.BigEndian.AppendUint32(value, sealOf(bucket, key, value))
	}
	content, err := Unseal(bucket, key, inForm(RowForm))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))

	_, err = Unseal(bucket, key, inForm(RowForm+1))
	require.ErrorIs(t, err, pawl.ErrNewerFormat)
	require.NotErrorIs(t, err, pawl.ErrCorrupt)

	_, err = Unseal(bucket, key, inForm(0))
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.NotErrorIs(t, err, pawl.ErrNewerFormat)
}

// Rule: a row in the place of another is damage: under another key, and in another table.
func TestARowBelongsToItsPlace(t *testing.T) {
	sealed := Seal(oneTable, []byte("key"), []byte("content"))
	_, err := Unseal(oneTable, []byte("kez"), sealed)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	_, err = Unseal(otherTable, []byte("key"), sealed)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}
