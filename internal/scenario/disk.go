package scenario

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/pages"
)

// Rule: if the last page that was written is torn, the journal is complete as of the previous
// commit: the step whose end is lost runs again under its key.
func (suite) Scenario12TornLastPage(t *testing.T) {
	needsFile(t)
	story{first: tripStopsIn("end of b", after), then: func(k *kit) {
		f, err := os.OpenFile(k.path, os.O_RDWR, 0)
		require.NoError(k.t, err)
		metas, err := pages.Metas(f)
		require.NoError(k.t, err)
		require.Len(k.t, metas, 2)
		last := metas[0]
		if metas[1].TxID > last.TxID {
			last = metas[1]
		}
		// Only half of the page is written.
		_, err = f.WriteAt(make([]byte, 24), int64(last.Page)*int64(last.PageSize)+56)
		require.NoError(k.t, err)
		require.NoError(k.t, f.Close())

		k.slots = -1
		k.open(trip(k))
		require.Equal(k.t, []string{"step a done: 1"}, k.journal(find(k, trip(k), "1").Run()))
		k.close()
		k.slots = 1
		require.Equal(k.t, []string{"a", "b", "b", "c"}, tripEnds(k))
		k.sameKeys("b", 2)
	}}.run(t)
}
