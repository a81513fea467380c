package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// Rule: a logger of log/slog or of hclog goes into any Logger option as it is, and gets
// each line with its keys and values.
func TestAnyLogger(t *testing.T) {
	for name, newLogger := range map[string]func(*bytes.Buffer) pawl.Logger{
		"slog":  func(b *bytes.Buffer) pawl.Logger { return slog.New(slog.NewTextHandler(b, nil)) },
		"hclog": func(b *bytes.Buffer) pawl.Logger { return hclog.New(&hclog.LoggerOptions{Output: b}) },
	} {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			log := newLogger(&lines)
			q := memory.New(&memory.Options{Logger: log})
			defer q.Close()
			kind := pawl.Define[struct{}]("fail")
			if _, err := kind.Enqueue(t.Context(), q, struct{}{}); err != nil {
				t.Fatal(err)
			}
			w := worker.New(q, &worker.Options{Logger: log})
			worker.Handle(w, kind, func(context.Context, *pawl.Job[struct{}]) error {
				return pawl.Permanent(errors.New("no such address"))
			})
			if err := w.Drain(t.Context(), pawl.WaitDrained); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"job is dead", "kind=fail", "no such address"} {
				if !strings.Contains(lines.String(), want) {
					t.Errorf("the log lacks %q: %s", want, lines.String())
				}
			}
		})
	}
}
