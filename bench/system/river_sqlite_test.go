package system

import "testing"

func TestRiverSQLite(t *testing.T) {
	for _, j := range []journal{walFull, deleteFull} {
		t.Run(j.mode, func(t *testing.T) {
			s := newRiverSQLite("river-sqlite", j)
			testEmbedded(t, s)
			testEmbeddedWakes(t, s)
			q := openEmbedded(t, s)
			defer q.Close()
			testEmbeddedPragmas(t, q.(*riverSQLiteQueue).db, j)
		})
	}
}
