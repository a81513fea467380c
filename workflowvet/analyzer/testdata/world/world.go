package world

import (
	"context"
	"net/http"
	"os"

	"github.com/gopawl/pawl/workflow"
)

var (
	engine *workflow.Engine
	child  *workflow.Flow[int, int]
	client http.Client
)

var Flow = workflow.Define("f", func(r *workflow.Run, n int) (string, error) {
	_ = os.Getenv("HOME")                       // want `os.Getenv in a workflow may do or return something else when the run continues; do it in a step`
	if _, err := os.ReadFile("a"); err != nil { // want `os.ReadFile in a workflow`
		return "", err
	}
	if _, err := http.Get("http://a"); err != nil { // want `http.Get in a workflow`
		return "", err
	}
	if _, err := client.Get("http://a"); err != nil { // want `http.Client.Get in a workflow`
		return "", err
	}
	if _, err := child.Start(context.Background(), engine, "c", n); err != nil { // want `workflow.Flow.Start in a workflow happens again when the run continues; do it in a step, or use the form that takes the Run`
		return "", err
	}
	if _, err := child.StartFrom(r, "c", n); err != nil {
		return "", err
	}
	_ = os.ErrNotExist
	_ = http.StatusText(200)
	return workflow.Step(r, "s", func(ctx context.Context) (string, error) {
		_, err := child.Start(ctx, engine, "c", n)
		return os.Getenv("HOME"), err
	})
})
