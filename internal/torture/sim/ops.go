package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Case has everything that determines a simulation, except the scheduling of
// goroutines.
type Case struct {
	Seed       uint64
	Lease      time.Duration
	MaxCrashes int  // as in bolt.Options
	Clock      bool // the wall clock is stepped
	Pool       int  `json:",omitempty"` // how many jobs of all queues run at a time; 0 for any number
	Suspect    bool // one job crashes its process whenever it runs, and nothing else does
	Ops        []Op
}

// Op is one step of a case.
type Op struct {
	Do string

	Jobs   []Job         `json:",omitempty"` // jobs to store, in one batch
	Job    int           `json:",omitempty"` // the number of a job, or of a lease that was taken
	Verb   string        `json:",omitempty"` // verb that ends a lease
	For    time.Duration `json:",omitempty"`
	Keep   bool          `json:",omitempty"` // the attempts of a dead job
	N      int           `json:",omitempty"` // jobs to take; events until a crash
	Queue  string        `json:",omitempty"`
	Worker int           `json:",omitempty"` // number of a worker, less than workers
	Crew   *Crew         `json:",omitempty"`
	Beside []Op          `json:",omitempty"` // steps carried out at the same time
}

// Job is a job to store, with the actions of its handler.
type Job struct {
	N        int // its number in other steps
	Kind     string
	Queue    string
	Priority int8          `json:",omitempty"`
	Delay    time.Duration `json:",omitempty"`
	Deadline time.Duration `json:",omitempty"` // time from its enqueue to its deadline
	Retries  int           `json:",omitempty"`
	Timeout  time.Duration `json:",omitempty"`
	Retain   time.Duration `json:",omitempty"`
	Unique   string        `json:",omitempty"`
	Reject   bool          `json:",omitempty"` // reject the job if the unique key is taken
	Effect   string        `json:",omitempty"` // its idempotency key
	TTL      time.Duration `json:",omitempty"`
	Size     int           `json:",omitempty"` // bytes of its payload
	Runs     []Run         `json:",omitempty"` // actions of its attempts; the last one is repeated
}

// Run is the action of a handler in one attempt.
type Run struct {
	Do   string        // one of the results below
	Take time.Duration `json:",omitempty"`
	Deaf bool          `json:",omitempty"` // it ignores the end of its context
	For  time.Duration `json:",omitempty"` // time of a snooze, or until the retry
}

// Results of attempts.
const (
	succeeds  = "ok"
	fails     = "fail"
	retries   = "later" // pawl.RetryAfter
	permanent = "permanent"
	snoozes   = "snooze"
	panics    = "panic"
	exits     = "goexit"
	kills     = "kill" // the process dies
)

// Crew is the settings of a worker.
type Crew struct {
	Queues, Kinds []string
	Concurrency   int
	Weights       map[string]int `json:",omitempty"`
	RetryShare    float64        `json:",omitempty"`
	Timeout       time.Duration  `json:",omitempty"`
	Stuck         time.Duration
	Drain, Grace  time.Duration
	Backoff       time.Duration `json:",omitempty"`
}

// Save writes a case to a file for [Load].
func (c *Case) Save(path string) error {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Load reads a case from a file.
func Load(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := new(Case)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s is not a case: %w", path, err)
	}
	return c, nil
}
