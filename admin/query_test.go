package admin

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// A query means the same to the app as to the client, with every field set and with any bytes.
func TestQueryTravelsWhole(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, q := range []Query{
		{},
		{Limit: 7, After: "a b&c=d"},
		{Detail: IDs},
		{
			Filter: Filter{
				Filter: pawl.Filter{State: pawl.Dead, Queue: "q\xff&", Kind: "k\n", Reason: pawl.ReasonPoison, DiedSince: at.Add(-1), DiedBefore: at, Order: pawl.OrderDied, Newest: true},
				Queues: []string{"a", "b\xff"}, Kinds: []string{"k", "l"},
				States: []pawl.State{pawl.Dead, pawl.Ready}, Reasons: []pawl.Reason{pawl.ReasonPoison, "r"},
				Error: "time\x00out", Payload: []string{"a=1", "b~x y", "a=1"}, Since: at.Add(1), Until: at.Add(2), Before: at.Add(3),
			},
			Detail: Whole, After: "x", Limit: 1000,
		},
	} {
		values, err := url.ParseQuery(valuesOf(q).Encode())
		require.NoError(t, err)
		got, _, err := queryOf(values)
		require.NoError(t, err)
		require.Equal(t, q, got)
	}
}

// A parameter that is unknown, twice, or no value of its kind is refused by its name: a
// condition that is left out would choose jobs that nobody meant.
func TestQueryRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for text, names := range map[string]string{
		"quue=mail":                  "quue",
		"queue=a&queue=b":            "queue",
		"limit=-1":                   "limit",
		"limit=1e3":                  "limit",
		"limit=99999999999999999999": "limit",
		"detail=all":                 "detail",
		"form=xml":                   "form",
		"since=yesterday":            "since",
		"until=2026-01-02":           "until",
		"died_before=0":              "died_before",
	} {
		values, err := url.ParseQuery(text)
		require.NoError(t, err)
		_, _, err = queryOf(values)
		require.ErrorIs(t, err, pawl.ErrInvalid, text)
		require.ErrorContains(t, err, names)
	}
}
