package system

import "testing"

func TestGoqite(t *testing.T) {
	for _, j := range []journal{walFull, walNormal} {
		t.Run(j.synchronous, func(t *testing.T) {
			s := newGoqite("goqite", j)
			testEmbedded(t, s)
			testEmbeddedWakes(t, s)
			q := openEmbedded(t, s)
			defer q.Close()
			testEmbeddedPragmas(t, q.(*goqiteQueue).db, j)
		})
	}
}
