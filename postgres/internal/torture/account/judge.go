package account

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// Found is what is in the database in the end, when every job that could run has run.
type Found struct {
	Jobs map[pawl.ID]pawl.State
	Rows map[pawl.ID]int // of the app, by job
	Runs map[string]Run  // by the ID that a run was started with

	// Turns are the turns of the jobs of each key, some of them twice. The IDs of a key are in the order of the jobs.
	Turns map[string][]pawl.ID
}

// Run is a workflow run in the end.
type Run struct {
	Ended bool
	Rows  []int // how often each transaction of its steps took effect, [RowsOfRun] of them
}

// mostWrong is how many errors a verdict names.
const mostWrong = 10

// RowsOfRun is the number of transactions in the steps of a run.
const RowsOfRun = 2

// Judge compares the account with what is there. Its error names what breaks a promise.
func (a *Account) Judge(f Found) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	wrong := a.wrong
	crashes := 0 // that no reported attempt explains
	for id := range f.Jobs {
		a.job(id)
	}
	for id := range f.Rows {
		a.job(id)
	}
	for _, j := range a.jobs {
		if err := j.judge(f.Jobs[j.id], f.Rows[j.id]); err != nil {
			wrong = append(wrong, fmt.Errorf("job %s: %w (%s)", j.id, err, j))
		}
		if !j.stored(f.Jobs[j.id]) && j.enqueue != nil && j.enqueue.anyStored(f) {
			wrong = append(wrong, fmt.Errorf("job %s is missing, and others of its batch are stored", j.id))
		}
		crashes += j.surplus()
	}
	if crashes > a.unheard {
		wrong = append(wrong, fmt.Errorf("%d crashes were counted that nobody had, and fetches without an answer had %d jobs at most", crashes, a.unheard))
	}
	wrong = append(append(wrong, a.judgeRuns(f.Runs)...), judgeTurns(f.Turns)...)
	if more := len(wrong) - mostWrong; more > 0 {
		wrong = append(wrong[:mostWrong:mostWrong], fmt.Errorf("and %d more", more))
	}
	return errors.Join(wrong...)
}

// judge compares a job with its state in the end, "" for none, and the number of its rows.
func (j *job) judge(state pawl.State, rows int) error {
	count := j.count()
	ends := count.of(Done, Ack) + rows + count.of(Done, Abandon)
	switch {
	case j.enqueue == nil:
		return errors.New("nobody enqueued it")
	case j.enqueue.outcome == Refused && j.stored(state):
		return errors.New("its enqueue was refused, and it is stored")
	case rows > 1:
		return fmt.Errorf("its transaction took effect %d times", rows)
	case rows < count.of(Done, Book):
		return fmt.Errorf("%d transactions were acknowledged, and %d took effect", count.of(Done, Book), rows)
	case rows > count.of(Done, Book)+count.of(Unknown, Book):
		return errors.New("a transaction took effect that was refused")
	case ends > 1:
		return fmt.Errorf("it ended %d times", ends)
	}
	return cmp.Or(j.judgeState(state, rows > 0, count), j.judgeAttempts(count))
}

// judgeState compares how a job ended with its state.
func (j *job) judgeState(state pawl.State, booked bool, count counts) error {
	acked := booked || count.of(Done, Ack) > 0
	mayBeAcked := acked || count.of(Unknown, Ack) > 0
	mayBeDead := !acked && count.of(Done, Abandon)+count.of(Unknown, Abandon) > 0
	switch {
	case state == "" && j.enqueue.outcome != Done && len(j.attempts) == 0:
		return nil // it was not stored
	case state == "" && count.of(Done, Abandon) > 0:
		return errors.New("it was abandoned, and is gone")
	case state == "" && !mayBeAcked:
		return errors.New("it is lost")
	case state == "" && oracle.JobOf(j.id).Retain > 0:
		return errors.New("its record is missing")
	case state == pawl.Dead && !mayBeDead:
		return errors.New("it is dead, and nobody abandoned it")
	case state == pawl.Completed && !mayBeAcked:
		return errors.New("it is completed, and nobody acked it")
	case state != "" && state != pawl.Dead && state != pawl.Completed:
		return fmt.Errorf("it is %s, and should have ended", state)
	}
	return nil
}

// judgeAttempts compares the failures that were counted with those that were acknowledged, at the
// attempt that ended the job.
func (j *job) judgeAttempts(count counts) error {
	for _, at := range j.attempts {
		for _, t := range at.tries {
			if t.outcome != Done || t.verb == Nack || t.verb == Release {
				continue
			}
			least, most := count.of(Done, Nack), count.of(Done, Nack)+count.of(Unknown, Nack)
			if at.attempts < least || at.attempts > most {
				return fmt.Errorf("%d failures were counted, and there were %d to %d", at.attempts, least, most)
			}
		}
	}
	return nil
}

// surplus returns how many crashes were counted of a job that none of its attempts explains.
func (j *job) surplus() (n int) {
	may := 0
	for _, at := range j.attempts {
		if at.mayHaveCrashed() {
			may++
		}
		n = max(n, at.crashes)
	}
	return max(0, n-may)
}

// mayHaveCrashed reports whether a lease may have ended without an acknowledged settlement.
func (at *attempt) mayHaveCrashed() bool {
	for _, t := range at.tries {
		if t.outcome == Done {
			return false
		}
	}
	return true
}

// stored reports whether a job has been in the queue.
func (j *job) stored(state pawl.State) bool { return state != "" || len(j.attempts) > 0 }

// anyStored reports whether a job of an enqueue has been in the queue.
func (op *operation) anyStored(f Found) bool {
	for _, j := range op.jobs {
		if j.stored(f.Jobs[j.id]) {
			return true
		}
	}
	return false
}

// counts says how many tries to end a job had an outcome.
type counts map[try]int

func (j *job) count() counts {
	c := make(counts)
	for _, at := range j.attempts {
		done := make(map[string]bool)
		for _, t := range at.tries {
			if t.outcome == Done {
				done[t.verb] = true
			}
		}
		for _, t := range at.tries {
			outcome := t.outcome
			if outcome == "" {
				outcome = Unknown // its client was killed
			}
			if outcome == Unknown && done[t.verb] {
				continue // the same call with the same token was acknowledged later
			}
			c[try{t.verb, outcome}]++
		}
	}
	return c
}

func (c counts) of(outcome Outcome, verb string) int { return c[try{verb, outcome}] }

// String tells the story of a job.
func (j *job) String() string {
	text := "enqueue: nobody"
	if j.enqueue != nil {
		text = "enqueue: " + string(j.enqueue.outcome)
	}
	for _, at := range j.attempts {
		text += fmt.Sprintf("; attempt with %d failures and %d crashes:", at.attempts, at.crashes)
		for _, t := range at.tries {
			text += fmt.Sprintf(" %s %s", t.verb, t.outcome)
		}
		if at.lost {
			text += " lost"
		}
	}
	return text
}

// judgeRuns compares the runs with their starts. Each transaction of a run's steps took effect once.
func (a *Account) judgeRuns(found map[string]Run) (wrong []error) {
	for id, start := range a.runs {
		switch run, there := found[id]; {
		case there && start.outcome == Refused:
			wrong = append(wrong, fmt.Errorf("run %s: its start was refused, and it is there", id))
		case !there && start.outcome == Done:
			wrong = append(wrong, fmt.Errorf("run %s is lost", id))
		case there && !run.Ended:
			wrong = append(wrong, fmt.Errorf("run %s has not ended", id))
		case there:
			if len(run.Rows) != RowsOfRun || slices.Max(run.Rows) > 1 {
				wrong = append(wrong, fmt.Errorf("run %s: the transactions of its steps took effect %v times", id, run.Rows))
			}
		}
	}
	for id := range found {
		if a.runs[id] == nil {
			wrong = append(wrong, fmt.Errorf("run %s: nobody started it", id))
		}
	}
	return wrong
}

// judgeTurns requires that no job had its turn before one of its key that was enqueued earlier.
func judgeTurns(turns map[string][]pawl.ID) (wrong []error) {
	for key, ids := range turns {
		for i := 1; i < len(ids); i++ {
			if bytes.Compare(ids[i-1][:], ids[i][:]) > 0 {
				wrong = append(wrong, fmt.Errorf("job %s of key %s had its turn before job %s", ids[i-1], key, ids[i]))
			}
		}
	}
	return wrong
}
