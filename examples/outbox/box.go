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

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
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

// open opens the file for changes, and creates it if needed.
func (p *program) open() (*bolt.Queue, error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	q, err := bolt.Open(path, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // killing a sync is not the fault of a message
		Logger:     hclog.NewNullLogger(),
	})
	return q, explain(err)
}

// explain adds what a locked file means here.
func explain(err error) error {
	if errors.Is(err, bolt.ErrLocked) {
		return fmt.Errorf("%w; another outbox command is running, probably sync; try again after it", err)
	}
	return err
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
	q, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	job, err := send.Enqueue(ctx, q, Message{text})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, job.ID)
	return err
}
