// Package account keeps the accounts of a queue outside of its database. The clients report each
// operation before it begins and after its answer. Whatever the order in which their reports arrive, the
// account says in the end what must be in the database, and what cannot be.
package account

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/gopawl/pawl"
)

// Outcome is the answer to an operation.
type Outcome string

// The outcomes, as clients report them. An operation without an answer, because its client was killed,
// counts as Unknown.
const (
	Done    Outcome = "done"    // it was acknowledged
	Refused Outcome = "refused" // an error says that nothing happened
	Unknown Outcome = "unknown" // an error says that it may have happened
	Lost    Outcome = "lost"    // the lease had expired
	Early   Outcome = "early"   // the lease was lost before it expired
)

// The ways to end a lease. Book writes a row of the app in the transaction that acks the job.
const (
	Ack     = "ack"
	Book    = "book"
	Nack    = "nack"
	Abandon = "abandon"
	Release = "release"
)

// Account is what the clients of one queue reported. Its methods may be called from any goroutine.
type Account struct {
	mu       sync.Mutex
	clients  map[string]*client
	jobs     map[pawl.ID]*job
	runs     map[string]*operation // by the ID that it was started with
	unheard  int                   // jobs that fetches without an answer may have leased
	stored   int                   // jobs of acknowledged enqueues
	answered int                   // operations
	wrong    []error
}

// New returns the account of an empty queue.
func New() *Account {
	return &Account{clients: make(map[string]*client), jobs: make(map[pawl.ID]*job), runs: make(map[string]*operation)}
}

// client is what one process has reported.
type client struct {
	open     map[string]*operation // by number
	attempts map[string]*attempt   // by number
}

// operation is a call of a client.
type operation struct {
	verb    string
	jobs    []*job // of an enqueue
	tries   []*try // of a settlement
	most    int    // of a fetch
	outcome Outcome
}

// job is what the clients know of a job.
type job struct {
	id       pawl.ID
	enqueue  *operation // nil if no process reported one
	attempts []*attempt
}

// attempt is a lease.
type attempt struct {
	job               *job
	attempts, crashes int // when it was fetched
	tries             []*try
	lost              bool // it expired
}

// try is a call that was to end an attempt.
type try struct {
	verb    string
	outcome Outcome // "" while it is open
}

// Stored returns the number of jobs that acknowledged enqueues stored.
func (a *Account) Stored() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored
}

// Answered returns the number of operations that were acknowledged.
func (a *Account) Answered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

// Hear takes in a line of a client. Lines are "begin VERB NUMBER WORD..." and "end NUMBER WORD...",
// where the numbers are the client's own:
//
//	begin enqueue 1 ID...              end 1 OUTCOME
//	begin start 2 RUN                  end 2 OUTCOME
//	begin fetch 3 MOST                 end 3 ATTEMPT:ID:ATTEMPTS:CRASHES..., or end 3 unknown
//	begin settle 4 VERB:ATTEMPT...     end 4 OUTCOME...
//	lost ATTEMPT OUTCOME
//	odd TEXT
func (a *Account) Hear(name, line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clients[name]
	if c == nil {
		c = &client{open: make(map[string]*operation), attempts: make(map[string]*attempt)}
		a.clients[name] = c
	}
	if err := a.hear(c, strings.Fields(line)); err != nil {
		a.wrong = append(a.wrong, fmt.Errorf("client %s reported %.300q: %w", name, line, err))
	}
}

var errNonsense = fmt.Errorf("that makes no sense")

func (a *Account) hear(c *client, words []string) error {
	switch {
	case len(words) >= 3 && words[0] == "begin":
		return a.begin(c, words[1], words[2], words[3:])
	case len(words) >= 2 && words[0] == "end":
		op := c.open[words[1]]
		if op == nil {
			return errNonsense
		}
		delete(c.open, words[1])
		return a.end(c, op, words[2:])
	case len(words) == 3 && words[0] == "lost":
		at := c.attempts[words[1]]
		if at == nil {
			return errNonsense
		}
		return at.lose(Outcome(words[2]))
	case len(words) > 0 && words[0] == "odd":
		return fmt.Errorf("no caller can understand this error")
	}
	return errNonsense
}

// begin takes in that a client calls something.
func (a *Account) begin(c *client, verb, number string, words []string) error {
	op := &operation{verb: verb}
	c.open[number] = op
	switch verb {
	case "enqueue":
		for _, word := range words {
			id, err := pawl.ParseID(word)
			if err != nil {
				return err
			}
			j := a.job(id)
			j.enqueue = op
			op.jobs = append(op.jobs, j)
		}
	case "start":
		if len(words) != 1 {
			return errNonsense
		}
		a.runs[words[0]] = op
	case "fetch":
		if len(words) != 1 {
			return errNonsense
		}
		var err error
		op.most, err = strconv.Atoi(words[0])
		return err
	case "settle":
		for _, word := range words {
			verb, number, _ := strings.Cut(word, ":")
			at := c.attempts[number]
			if at == nil {
				return errNonsense
			}
			t := &try{verb: verb}
			at.tries = append(at.tries, t)
			op.tries = append(op.tries, t)
		}
	default:
		return errNonsense
	}
	return nil
}

// end takes in the answer to a call.
func (a *Account) end(c *client, op *operation, words []string) error {
	switch op.verb {
	case "fetch":
		if len(words) == 1 && words[0] == string(Unknown) {
			a.unheard += op.most // they crash if the client dies before it releases them
			return nil
		}
		if len(words) > op.most {
			return fmt.Errorf("%d jobs, and %d at most were asked for", len(words), op.most)
		}
		for _, word := range words {
			if err := a.lease(c, strings.Split(word, ":")); err != nil {
				return err
			}
		}
		a.answered++
		return nil
	case "settle":
		if len(words) != len(op.tries) {
			return errNonsense
		}
		for i, t := range op.tries {
			t.outcome = Outcome(words[i])
			switch {
			case t.outcome == Early:
				return fmt.Errorf("a lease was lost before it expired")
			case t.outcome == Done:
				a.answered++
			}
		}
		return nil
	}
	if len(words) != 1 {
		return errNonsense
	}
	if op.outcome = Outcome(words[0]); op.outcome == Done {
		a.answered++
		a.stored += len(op.jobs)
	}
	return nil
}

// lease takes in a lease: the number of the attempt, the job, and how often it had failed and crashed.
func (a *Account) lease(c *client, words []string) error {
	if len(words) != 4 {
		return errNonsense
	}
	id, err := pawl.ParseID(words[1])
	if err != nil {
		return err
	}
	at := &attempt{job: a.job(id)}
	if at.attempts, err = strconv.Atoi(words[2]); err != nil {
		return err
	}
	if at.crashes, err = strconv.Atoi(words[3]); err != nil {
		return err
	}
	at.job.attempts = append(at.job.attempts, at)
	c.attempts[words[0]] = at
	return nil
}

// lose takes in that a lease is lost.
func (at *attempt) lose(o Outcome) error {
	at.lost = true
	if o == Early {
		return fmt.Errorf("a lease was lost before it expired")
	}
	return nil
}

func (a *Account) job(id pawl.ID) *job {
	j := a.jobs[id]
	if j == nil {
		j = &job{id: id}
		a.jobs[id] = j
	}
	return j
}

// Ended takes in that a client has ended. One that was not killed has an answer to each call.
func (a *Account) Ended(name string, killed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clients[name]
	if c == nil {
		return
	}
	for number, op := range c.open {
		if !killed {
			a.wrong = append(a.wrong, fmt.Errorf("client %s ended without an answer to %s %s", name, op.verb, number))
		}
		op.outcome = Unknown
		a.unheard += op.most
	}
	delete(a.clients, name)
}
