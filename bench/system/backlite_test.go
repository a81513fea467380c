package system

import "testing"

func TestBacklite(t *testing.T) {
	for _, j := range []journal{walFull, walNormal} {
		t.Run(j.synchronous, func(t *testing.T) {
			s := newBacklite("backlite", j)
			testEmbedded(t, s)
			testEmbeddedWakes(t, s)
			q := openEmbedded(t, s)
			defer q.Close()
			testEmbeddedPragmas(t, q.(*backliteQueue).db, j)
		})
	}
}
