package workflow_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
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

// Joined is what a room hears of a guest.
var Joined = workflow.DefineSignal[string]("joined")

// One run sends a signal to another.
func ExampleSignal_SendFrom() {
	ctx := context.Background()
	host := workflow.Define("host", func(r *workflow.Run, _ int) (string, error) { return Joined.Wait(r, workflow.Forever) })
	visit := func(r *workflow.Run, room pawl.ID, guest string) error {
		if err := Joined.SendFrom(r, room, guest); err != nil {
			return err
		}
		return nil
	}
	guest := workflow.Define("guest", func(r *workflow.Run, name string) (string, error) {
		room, err := host.StartFrom(r, "room of "+name, 0)
		if err != nil {
			return "", err
		}
		return "done", visit(r, room, name)
	})
	_, e, w, end := app(host, guest)
	defer end()
	_, _ = guest.Start(ctx, e, "1", "ada")
	_ = w.Drain(ctx, pawl.WaitFinished)
	h, _ := host.Handle(ctx, e, "room of ada")
	fmt.Println(h.Result(ctx))
	// Output: ada <nil>
}
