package workflow_test

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/gopawl/pawl/workflow"
)

// A run draws a token and reads the clock. Both stay the same whatever happens.
func ExampleDecide() {
	invite := workflow.Define("invite", func(r *workflow.Run, _ string) (string, error) {
		token, err := workflow.Decide(r, "token", rand.Text)
		if err != nil {
			return "", err
		}
		now, err := workflow.Now(r, "invited")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d characters, %v", len(token), now.Location()), workflow.SleepUntil(r, "wait", now.Add(time.Millisecond))
	})
	fmt.Println(result(invite, "ada"))
	// Output: 26 characters, UTC <nil>
}
