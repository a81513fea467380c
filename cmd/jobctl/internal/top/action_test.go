package top

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// changes returns the calls that change something.
func (f *fake) changes() []string {
	return slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool {
		return call == "stats" || call == "job" || strings.HasPrefix(call, "list ")
	})
}

// Each dangerous key asks first and names the action; y carries it out, and the screen reports
// it.
func TestActionsAreConfirmed(t *testing.T) {
	cases := []struct {
		rule  string
		keys  []string // up to the question
		asks  string
		does  string
		shows string
	}{
		{"P pauses the queue that is selected", []string{"j", "P"}, "Pause queue email?", "pause email", "queue email is paused"},
		{"P resumes a paused queue", []string{"G", "P"}, "Resume queue reports?", "resume reports", "queue reports is resumed"},
		{"C cancels a running job", []string{"2", "C"}, "Cancel job …00000004 (thumbnail, queue default)?", "cancel …00000004", "is cancelled"},
		{"C cancels a waiting job", []string{"3", "j", "C"}, "Cancel job …00000007", "cancel …00000007", "is cancelled"},
		{"N runs a delayed job", []string{"3", "N"}, "Run job …00000006", "run-now …00000006", "is ready"},
		{"R retries a dead job", []string{"4", "R"}, "Retry job …00000009 (mail.send, queue email)?", "retry …00000009", "is ready again"},
		{"D deletes a dead job", []string{"4", "j", "D"}, "Delete job …0000000a (mail.send, queue email) for good?", "delete …0000000a", "is deleted"},
		{"in the detail the keys are about its job", []string{"4", "j", "enter", "R"}, "Retry job …0000000a", "retry …0000000a", "is ready again"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			for _, no := range []string{"n", "esc", "enter", "q", "space", "D"} {
				s := newScreen(t, sampleQueue(), 100, 20)
				s.press(c.keys...).has(c.asks, "y/n")
				require.Empty(t, s.queue.changes(), "nothing is done before the answer")
				s.press(no).has("nothing was changed").lacks("y/n")
				require.Empty(t, s.queue.changes(), "%q is not a yes", no)
				require.False(t, s.quit)
			}
			s := newScreen(t, sampleQueue(), 100, 20)
			s.press(c.keys...).press("y").has(c.shows).lacks("y/n")
			require.Equal(t, []string{c.does}, s.queue.changes())
			s.press("j", "k").lacks(c.shows)
		})
	}
}

// An action that does not apply to the job, or to the pane, is refused without a question.
func TestActionsThatDoNotApply(t *testing.T) {
	cases := []struct {
		rule  string
		keys  []string
		shows string
	}{
		{"a running job is no dead job", []string{"2", "R"}, "only a dead job can be retried"},
		{"a waiting job is no dead job", []string{"3", "D"}, "cancel the job first"},
		{"a ready job need not be run now", []string{"3", "j", "j", "N"}, "only a delayed job"},
		{"a dead job is not cancelled", []string{"4", "C"}, "only a waiting or running job"},
		{"the same in the detail", []string{"4", "enter", "C"}, "only a waiting or running job"},
		{"a queue is paused where it is seen", []string{"2", "P"}, "queues are paused in the first pane"},
		{"there is no job in the first pane", []string{"R"}, "P pause/resume"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			s := newScreen(t, sampleQueue(), 100, 20)
			s.press(c.keys...).has(c.shows).lacks("y/n")
			require.Empty(t, s.queue.changes())
		})
	}
}

// A failed action shows its error on one line, and the screen continues.
func TestFailedAction(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	s.press("4", "R")
	s.queue.jobs = slices.DeleteFunc(s.queue.jobs, func(e *pawl.Envelope) bool { return e.State == pawl.Dead })
	s.press("y").has("error: " + pawl.ErrNotFound.Error()).has("No dead jobs.")
	s.press("1", "P")
	s.queue.err = errors.New("disk \x1b[31m is\nfull")
	s.press("y").has(`error: disk \x1b[31m is; full`)
}

// A question names its subject even if names are long, and its end is always visible.
func TestQuestionFits(t *testing.T) {
	queue := sampleQueue()
	for _, e := range queue.jobs {
		e.Kind = strings.Repeat("very-long-", 20)
	}
	newScreen(t, queue, 40, 10).press("4", "R").has("Retry job …00000009 (very", "y/n")
}
