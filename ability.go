package pawl

import (
	"fmt"
	"strings"
)

// Ability is a part of the contract that some queues lack. A queue refuses what it cannot do: the
// call returns an [*InvalidError] that matches [ErrUnsupported], and stores nothing. A set of
// abilities is their sum.
type Ability uint32

// The abilities. The first seven are settings of jobs and of requests.
const (
	UniqueKeys      Ability = 1 << iota // Envelope.UniqueKey
	IdempotencyKeys                     // Envelope.IdempotencyKey
	Priorities                          // Envelope.Priority other than 0
	Deadlines                           // Envelope.Deadline
	Retention                           // Envelope.Retain
	RetryShares                         // Request.RetryShare
	LimitKeys                           // Envelope.Key and Cost, the Limits of queues, and Throttle
	Synced                              // a change is on stable storage when its call returns nil
	Shared                              // several processes may have the queue open at a time
	Results                             // Settlement.Result, and Await
	Groups                              // Envelope.Group
	Cursors                             // Envelope.Cursor, and SaveCursor
	RunNotes                            // Job.Progress, and Log
	OrderedKeys                         // Limits.InOrder
	Prerequisites                       // Envelope.After and AfterAny
	FairKeys                            // Limits.Fair
	BoundedQueues                       // Limits.MaxWaiting and MaxWaitingPerKey
	SharedPools                         // Limits.Pool
)

var abilityNames = [...]string{
	"unique keys", "idempotency keys", "priorities", "deadlines", "retention", "retry shares", "limit keys", "synced changes", "shared use", "results",
	"groups", "cursors", "progress and logs", "ordered keys", "prerequisites", "fair keys", "bounded queues", "shared pools",
}

// String names the abilities.
func (a Ability) String() string {
	var names []string
	for i, name := range abilityNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Require returns nil if a queue has all the abilities in a. Otherwise it returns an [*InvalidError]
// that names the missing ones and matches [ErrUnsupported]. Call it when the program starts. A queue
// without a method Abilities has none, so a type that wraps a queue must have that method.
func Require(q Queue, a Ability) error {
	able, declares := q.(interface{ Abilities() Ability })
	if declares {
		return requireOf(able.Abilities(), a)
	}
	if a == 0 {
		return nil
	}
	const reason = "it declares no abilities, and the program requires %v; a type that wraps a queue needs a method Abilities"
	return &InvalidError{Field: "queue", Reason: fmt.Sprintf(reason, a), Lacks: a}
}

// requireOf returns an error that names the abilities in a that are not in has.
func requireOf(has, a Ability) error {
	lacks := a &^ has
	if lacks == 0 {
		return nil
	}
	return &InvalidError{Field: "queue", Reason: fmt.Sprintf("it lacks %v, which the program requires", lacks), Lacks: lacks}
}
