package workflow

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
)

// Rule: the entry of a Select names its case whatever the signal carried: no value, a payload, or bytes that are none, that
// are too deep in a map, or that a codec has encoded.
func TestSelectedWithAnyValue(t *testing.T) {
	for name, value := range map[string][]byte{
		"none": nil, "a payload": {0xc3}, "a list that is cut off": {0x92, 1}, "two values": {1, 2}, "an encoded value": {encodedMark, 1},
		"32 lists":  append(bytes.Repeat([]byte{0x91}, 32), 1),
		"300 lists": append(bytes.Repeat([]byte{0x91}, 300), 1),
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := driver.EncodePayload(&selection{Payload: value, Cases: []string{signalCase + "go"}})
			require.NoError(t, err)
			e := Entry{Kind: KindSelect, Result: stored}
			e.Result, err = new(Reader).shownResult(&e)
			require.NoError(t, err)
			require.Equal(t, "signal go", e.Selected())
			require.NoError(t, driver.DecodePayload(e.Result, new(any)))
		})
	}
}
