package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a row with a field that this build does not know, or that is cut off, is damaged. The build
// does not drop a field that it cannot read.
func TestFieldsOfRows(t *testing.T) {
	rows := map[string]struct {
		row   []byte
		parse func(key, sealed []byte) error
	}{
		"queue": {(&queueRow{name: "email", paused: true}).append(nil), func(k, v []byte) error { _, err := parseQueueRow(k, v); return err }},
		"key": {(&keyRow{waiting: 1, lanes: make([]keyLane, 2)}).append(nil),
			func(k, v []byte) error { _, err := parseKeyRow(k, v); return err }},
	}
	key := []byte("key")
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, r.parse(key, seal(key, r.row)))
			for _, fields := range [][]byte{appendField(nil, 255, []byte("later")), {1}, {1, 4, 0}} {
				err := r.parse(key, seal(key, append(r.row[:len(r.row):len(r.row)], fields...)))
				require.ErrorIs(t, err, pawl.ErrCorrupt, "fields %x", fields)
			}
		})
	}
}
