package bolt

import ("testing"; "context"; "github.com/stretchr/testify/require")

func TestSmoke(t *testing.T) {
	q := openTest(t, nil)
	e := add(t, q, nil)
	l := fetch(t, q, 1)
	require.Len(t, l, 1)
	require.NoError(t, q.Ack(context.Background(), l[0]))
	require.Nil(t, find(t, q, e.ID))
}
