package admin

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// FuzzImport looks for an export that makes Import panic, that is found wrong only after
// something was stored, or that passes the check although a queue refuses it.
func FuzzImport(f *testing.F) {
	f.Add([]byte(exportLines(mixedLines()...)), false)
	f.Add([]byte(exportLines(
		jobLine(simpleJob(1, func(e *pawl.Envelope) { e.State, e.Death = pawl.Dead, &pawl.Death{Reason: "r", At: e.Created} })),
		`{"job":{"kind":"k","state":"completed","completed_at":"2999-01-01T00:00:00Z","retain":"1h","policy":"fixed 1s","unique_key":"u"}}`,
		`{"job":{"kind":"k","state":"leased","unique_key":"u","deadline":"2026-01-01T00:00:00Z","cancelled":true,"payload":{"value":{"a":[1,null]}}}}`,
	)), true)
	f.Add([]byte(exportLines( // a sleeping run of flow nap
		`{"run":{"run":"019ca8a0-4a38-7000-ae50-3ed72d44dada","form":1,"part":1,"last":true,"all_rows":3,"flow":"nap","id":"1","status":"sleeping","rows":[`+
			`{"in":"blobs","key":"AAAAAA==","value":"0w0hJr9ZGgAA"},`+
			`{"in":"steps","key":"AAAAAQ==","value":"3AAToACjYmVkAaVzbGVlcKdwZW5kaW5nANMAAAAAAAAAANMYmKwI/oLwANMAAAAAAAAAANMludLIV5zwAKDAwMIAwKExxCQwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDA="},`+
			`{"in":"runs","value":"3AAZo25hcKExqHNsZWVwaW5noTGnZGVmYXVsdNMYmKwH1Hz+ANMAAAAAAAAAANMAAiYP+SkAAMQQIpQfKak3/zpWaXBXnQmB+dMludLIV5zwAMAB0wAAAAAAAAAAzwAAAAAAAAAAAACgoMKgwMQkMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwzgAAAAD/xCQwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDA="}]}}`,
	)), true)
	to := transferQueue(f)
	f.Fuzz(func(t *testing.T, export []byte, keep bool) {
		w := &watched{Admin: Of(to)}
		imported, err := Import(context.Background(), w, bytes.NewReader(export), &ImportOptions{KeepIDs: keep})
		switch {
		case err == nil:
			require.Equal(t, imported.Checked, imported.Jobs+imported.Skipped)
		case errors.Is(err, pawl.ErrConflict): // stored by an earlier import
		default:
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, "nothing was stored")
			require.Empty(t, w.changes)
		}
	})
}
