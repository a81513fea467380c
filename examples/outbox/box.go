package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/connect"
)

// Message is the payload of a job.
type Message struct{ Text string }

// send is the kind of a delivery. Sync gives up on a message after 20 retries.
var send = pawl.Define[Message]("outbox.message", pawl.MaxRetries(20))

// path returns the path of the file.
func (p *program) path() (string, error) {
	if p.db != "" {
		return p.db, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w; name a file with -db", err)
	}
	return filepath.Join(folder, "outbox", "outbox.db"), nil
}

// open opens the file for changes, and creates it if needed. If another outbox command has the file, the
// result works through that one.
func (p *program) open(ctx context.Context) (*connect.Client, error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return connect.Open(ctx, path, &connect.Options{
		Queue: &bolt.Options{
			MaxCrashes: bolt.NoMaxCrashes, // killing a sync is not the fault of a message
		},
		Name:   "outbox",
		Logger: hclog.NewNullLogger(),
	})
}

func (p *program) add(ctx context.Context, flags *flag.FlagSet, args []string) (err error) {
	words, err := p.parse(flags, "TEXT... | -", args)
	if err != nil {
		return err
	}
	text := strings.Join(words, " ")
	if text == "-" {
		b, err := io.ReadAll(p.stdin)
		if err != nil {
			return err
		}
		text = strings.TrimSuffix(string(b), "\n")
	}
	if strings.TrimSpace(text) == "" {
		return usageError{"the message is empty"}
	}
	c, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	job, err := send.Envelope(Message{text})
	if err != nil {
		return err
	}
	if err := store(ctx, c, job); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, job.ID)
	return err
}

// store stores a message once, under an ID of its own. A sync that is killed amid the call may have stored
// it; then store tries again.
func store(ctx context.Context, c *connect.Client, job *pawl.Envelope) error {
	job.ID = pawl.NewID(time.Now())
	for {
		_, err := c.Enqueue(ctx, job)
		switch {
		case errors.Is(err, pawl.ErrConflict): // an earlier try stored it
			return nil
		case !errors.Is(err, pawl.ErrUnknownOutcome) || ctx.Err() != nil:
			return err
		}
	}
}
