package pawl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func TestFilterMatches(t *testing.T) {
	at := time.Unix(100, 0)
	alive := &pawl.Envelope{Kind: "mail", Queue: "slow", State: pawl.Ready}
	dead := &pawl.Envelope{Kind: "mail", Queue: "slow", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPoison, At: at}}
	for name, test := range map[string]struct {
		filter      pawl.Filter
		alive, dead bool
	}{
		"nothing":                 {pawl.Filter{}, true, true},
		"state":                   {pawl.Filter{State: pawl.Dead}, false, true},
		"another state":           {pawl.Filter{State: pawl.Leased}, false, false},
		"queue":                   {pawl.Filter{Queue: "slow"}, true, true},
		"another queue":           {pawl.Filter{Queue: "slo"}, false, false},
		"kind":                    {pawl.Filter{Kind: "mail"}, true, true},
		"another kind":            {pawl.Filter{Kind: "Mail"}, false, false},
		"reason":                  {pawl.Filter{Reason: pawl.ReasonPoison}, false, true},
		"another reason":          {pawl.Filter{Reason: pawl.ReasonPermanent}, false, false},
		"died before":             {pawl.Filter{DiedBefore: at.Add(1)}, false, true},
		"died at that time":       {pawl.Filter{DiedBefore: at}, false, false},
		"died since":              {pawl.Filter{DiedSince: at}, false, true},
		"died since, too early":   {pawl.Filter{DiedSince: at.Add(1)}, false, false},
		"order":                   {pawl.Filter{Order: pawl.OrderDied, Newest: true}, true, true},
		"reason and time":         {pawl.Filter{Reason: pawl.ReasonPoison, DiedBefore: at.Add(1)}, false, true},
		"reason, not the time":    {pawl.Filter{Reason: pawl.ReasonPoison, DiedBefore: at}, false, false},
		"time, not the reason":    {pawl.Filter{Reason: pawl.ReasonDeadline, DiedBefore: at.Add(1)}, false, false},
		"all":                     {pawl.Filter{State: pawl.Dead, Queue: "slow", Kind: "mail", Reason: pawl.ReasonPoison, DiedBefore: at.Add(1)}, false, true},
		"all but the queue":       {pawl.Filter{State: pawl.Dead, Queue: "fast", Kind: "mail", Reason: pawl.ReasonPoison, DiedBefore: at.Add(1)}, false, false},
		"a state, a death beside": {pawl.Filter{State: pawl.Ready, Reason: pawl.ReasonPoison}, false, false},
	} {
		require.Equal(t, test.alive, test.filter.Matches(alive), name)
		require.Equal(t, test.dead, test.filter.Matches(dead), name)
	}
}

// Rule: a filter with an unknown state or order, or with the order of death for jobs that are
// not dead, is refused.
func TestFilterCheck(t *testing.T) {
	for _, f := range []pawl.Filter{{}, {State: pawl.Dead, Order: pawl.OrderDied}, {Order: pawl.OrderCreated, Newest: true}} {
		require.NoError(t, driver.CheckFilter(f))
	}
	for _, f := range []pawl.Filter{{State: "asleep"}, {Order: "size"}, {Order: pawl.OrderDied}, {State: pawl.Ready, Order: pawl.OrderDied}} {
		require.ErrorIs(t, driver.CheckFilter(f), pawl.ErrInvalid)
	}
}
