package hostile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// printed is the stream of the runs of stories.
var printed = workflow.DefineStream[string]("lines")

// ask is an update to which the run called asks answers.
var ask = workflow.DefineUpdate[int, string]("ask")

var errNegative, errUnlucky = errors.New("it is negative"), errors.New("it is unlucky")

// request is a request that the run has in the sound file, and its answer.
type request struct {
	key    string
	number int
	answer string
	err    error // has the text of the answer's error, and matches the same errors
}

var requests = []request{
	{"seven", 7, "7", nil}, {"minus one", -1, "", fmt.Errorf("%w: %w", workflow.ErrRejected, errNegative)}, {"thirteen", 13, "", errUnlucky},
}

// verdicts are the errors by which a caller of the update distinguishes answers.
var verdicts = append([]error{workflow.ErrRejected, errNegative, errUnlucky}, flowAnswers...)

// same requires that the answer is that of the sound file: the same value, or an error with the same text that matches
// the same errors.
func (q request) same(answer string, err error) error {
	same := answer == q.answer && (err == nil) == (q.err == nil)
	if got := (*workflow.UpdateError)(nil); same && errors.As(err, &got) {
		same = got.Text == q.err.Error()
	}
	for _, verdict := range verdicts {
		same = same && errors.Is(err, verdict) == errors.Is(q.err, verdict)
	}
	if same {
		return nil
	}
	return fmt.Errorf("silently wrong: request %q was answered with %s, the sound answer is %s", q.key, said(answer, err), said(q.answer, q.err))
}

// said describes an answer.
func said(answer string, err error) string {
	if err == nil {
		return strconv.Quote(answer)
	}
	return fmt.Sprintf("%q and the error %q", answer, err)
}

// asks answers three requests, and rejects requests without an answer.
func asks(r *workflow.Run) (string, error) {
	for range 3 {
		q, err := ask.Wait(r, workflow.Forever, func(n int) error {
			if n < 0 {
				return errNegative
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		var unlucky error
		if q.Value == 13 {
			unlucky = errUnlucky
		}
		if err := q.Answer(r, strconv.Itoa(q.Value), unlucky); err != nil {
			return "", err
		}
	}
	return "", nil
}

// makeRequests sends the requests to the run, which answers them.
func (c *crew) makeRequests(run pawl.ID) (err error) {
	for _, q := range requests {
		b, encodeErr := driver.EncodePayload(q.number)
		err = errors.Join(err, encodeErr, c.Send(c.ctx, run, ask.Name(), b, q.key))
	}
	return errors.Join(err, c.all())
}

// mostAnswer limits how long a request waits for an answer that the file has lost.
const mostAnswer = 20 * time.Millisecond

// again repeats a request. Its answer is that of the sound file, unless the file has lost the answer, or the request.
func (t *trial) again(e *workflow.Engine) error {
	var run pawl.ID
	for id, s := range t.stories {
		if s.info.ID == "asks" {
			run = id
		}
	}
	ctx, stop := context.WithTimeout(t.ctx, mostAnswer)
	defer stop()
	q := requests[t.rand.IntN(len(requests))]
	answer, err := ask.Call(ctx, e, run, q.number, q.key)
	switch isAnswer := err == nil || errors.As(err, new(*workflow.UpdateError)); {
	case isAnswer && !t.forged:
		return q.same(answer, err)
	case isAnswer, errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return matchable(err)
}

// sameStreams requires that the rows of streams are unchanged, if their content is known.
func sameStreams(are []workflow.StreamInfo, known *storyOf) error {
	if known == nil {
		return nil
	}
	for _, is := range are {
		if was, ok := known.streams[is.Name]; !ok || is != was {
			return fmt.Errorf("silently wrong: the stream %+v was %+v", is, was)
		}
	}
	return nil
}

// sameItems requires that the items of the stream are unchanged, if they are known. Each item says how many are
// missing before it.
func sameItems(are []workflow.Item[[]byte], known *storyOf) error {
	if known == nil {
		return nil
	}
	next := uint64(1)
	for _, is := range are {
		was := known.items[is.N]
		if was.Skipped = is.N - next; !reflect.DeepEqual(is, was) {
			return fmt.Errorf("silently wrong: the item %+v was %+v", is, was)
		}
		next = is.N + 1
	}
	return nil
}
