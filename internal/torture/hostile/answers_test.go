package hostile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: a request that is answered with another value, without its error, with an error of another class, or with
// another text is a violation, and its text is readable.
func TestWrongAnswerIsSeen(t *testing.T) {
	value, rejected, failed := requests[0], requests[1], requests[2]
	says := func(text string) error { return &workflow.UpdateError{Update: ask.Name(), Text: text} }
	for _, test := range []struct {
		rule string
		request
		answer string
		err    error
		wrong  string // "" when it is right
	}{
		{"the value", value, "7", nil, ""},
		{"the rejection", rejected, "", fmt.Errorf("it says: %w: %w", workflow.ErrRejected, errNegative), ""},
		{"the error", failed, "", fmt.Errorf("it says: %w", errUnlucky), ""},
		{"another value", value, "8", nil, `request "seven" was answered with "8", the sound answer is "7"`},
		{"an error in place of the value", value, "7", errUnlucky, `with "7" and the error "it is unlucky", the sound answer is "7"`},
		{"a value in place of the error", failed, "", nil, `with "", the sound answer is "" and the error "it is unlucky"`},
		{"a value beside the error", failed, "13", errUnlucky, `with "13" and the error`},
		{"another error", failed, "", errNegative, `the error "it is negative", the sound answer is "" and the error "it is unlucky"`},
		{"no rejection", rejected, "", errNegative, "silently wrong"},
		{"a rejection that was none", failed, "", fmt.Errorf("%w: %w", workflow.ErrRejected, errUnlucky), "silently wrong"},
		{"an error of the library", failed, "", errors.Join(errUnlucky, workflow.ErrTooLarge), "silently wrong"},
		{"the text alone", failed, "", says("it is unlucky"), "silently wrong"},
		{"another text", failed, "", errors.Join(errUnlucky, says("it is lucky")), "silently wrong"},
	} {
		err := test.same(test.answer, test.err)
		if test.wrong == "" {
			require.NoError(t, err, test.rule)
			continue
		}
		require.ErrorContains(t, err, test.wrong, test.rule)
		require.NotContains(t, err.Error(), "%!", test.rule)
	}
}
