package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/worker"
)

// File names a file to import.
type File struct{ Path string }

// Row is one line of a file.
type Row struct {
	Path string
	N    int
	Line string
}

// Place is the cursor of the job that reads a file.
type Place struct {
	Offset int64
	Rows   int
}

// A file is imported once a month.
var (
	ReadFile  = pawl.Define[File]("import.read", pawl.IdempotencyTTL(30*24*time.Hour))
	ImportRow = pawl.Define[Row]("import.row", pawl.MaxRetries(3), pawl.IdempotencyTTL(30*24*time.Hour))
	SumUp     = pawl.Define[File]("import.sum")
)

const batch = 500 // rows of a commit

// groupOf returns the group of a file, by its whole path: two folders may have files of one name.
func groupOf(path string) string { return "import:" + path }

func handle(w *worker.Worker, q *bolt.Queue) {
	worker.Handle(w, ReadFile, func(ctx context.Context, job *pawl.Job[File]) error { return read(ctx, q, job) })
	worker.Handle(w, ImportRow, func(ctx context.Context, job *pawl.Job[Row]) error { return importRow(ctx, q, job) })
	worker.Handle(w, SumUp, func(ctx context.Context, job *pawl.Job[File]) error { return sumUp(ctx, q, job) })
}

// read enqueues a job for each row from its cursor on. When it was killed between an enqueue and the save of its
// cursor, the rows are enqueued again, and their keys have the queue keep the first ones.
func read(ctx context.Context, q *bolt.Queue, job *pawl.Job[File]) error {
	f, err := os.Open(job.Args.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	var at Place
	if _, err := job.LoadCursor(&at); err != nil {
		return err
	}
	if _, err := f.Seek(at.Offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(f); ; {
		rows, err := nextRows(lines, job.Args.Path, &at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			if err := q.Update(ctx, func(tx *bbolt.Tx) error { return setRows(tx, job.Args.Path, at.Rows) }); err != nil {
				return err
			}
			return group.Close(ctx, q, groupOf(job.Args.Path))
		}
		if _, err := q.Enqueue(ctx, rows...); err != nil {
			return err
		}
		if err := job.SaveCursor(ctx, at); err != nil {
			return err
		}
	}
}

// nextRows returns jobs for the next rows, none at the end of the file, and moves the cursor behind them.
func nextRows(lines *bufio.Reader, path string, at *Place) (rows []*pawl.Envelope, err error) {
	for len(rows) < batch {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line == "" {
			break
		}
		at.Offset, at.Rows = at.Offset+int64(len(line)), at.Rows+1
		e, err := ImportRow.Envelope(Row{path, at.Rows, strings.TrimSpace(line)}, pawl.InGroup(groupOf(path)),
			pawl.IdempotencyKey(fmt.Sprintf("%s#%d", groupOf(path), at.Rows)))
		if err != nil {
			return nil, err
		}
		rows = append(rows, e)
	}
	return rows, nil
}

// importRow adds the amount of a row to its name, in the transaction of the ack: both happen once, or neither.
func importRow(ctx context.Context, q *bolt.Queue, job *pawl.Job[Row]) error {
	name, text, _ := strings.Cut(job.Args.Line, ",")
	amount, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return pawl.Permanent(fmt.Errorf("row %d: %w", job.Args.N, err))
	}
	return q.Update(ctx, func(tx *bbolt.Tx) error {
		amounts, err := tx.CreateBucketIfNotExists([]byte("amounts"))
		if err != nil {
			return err
		}
		summary, err := summaryOf(tx, job.Args.Path)
		if err != nil {
			return err
		}
		return errors.Join(add(amounts, name, amount), add(summary, "imported", 1), q.AckTx(tx, job.Lease))
	})
}

// setRows notes how many rows a file has.
func setRows(tx *bbolt.Tx, path string, n int) error {
	summary, err := summaryOf(tx, path)
	if err != nil {
		return err
	}
	return summary.Put([]byte("rows"), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// summaryOf returns the bucket of a file's summary. It counts effects: the group also counts a row that was enqueued
// again after a kill, and whose key let it do nothing.
func summaryOf(tx *bbolt.Tx, path string) (*bbolt.Bucket, error) {
	return tx.CreateBucketIfNotExists([]byte(groupOf(path)))
}

// sumUp completes the summary of a file, in the transaction of the ack. It counts how often it did.
func sumUp(ctx context.Context, q *bolt.Queue, job *pawl.Job[File]) error {
	return q.Update(ctx, func(tx *bbolt.Tx) error {
		summary, err := summaryOf(tx, job.Args.Path)
		if err != nil {
			return err
		}
		return errors.Join(add(summary, "summaries", 1), q.AckTx(tx, job.Lease))
	})
}

// report prints the summary of a file and the sum of all amounts.
func report(ctx context.Context, q *bolt.Queue, path string, out io.Writer) error {
	return q.View(ctx, func(tx *bbolt.Tx) error {
		summary, total := tx.Bucket([]byte(groupOf(path))), uint64(0)
		if summary == nil || get(summary, "summaries") == 0 {
			return errors.New("there is no summary; a job has failed: see jobctl dead list")
		}
		if amounts := tx.Bucket([]byte("amounts")); amounts != nil {
			if err := amounts.ForEach(func(_, v []byte) error { total += binary.BigEndian.Uint64(v); return nil }); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "%d rows imported, %d failed, total %d, %d summary\n",
			get(summary, "imported"), get(summary, "rows")-get(summary, "imported"), total, get(summary, "summaries"))
		return err
	})
}

func add(b *bbolt.Bucket, key string, n uint64) error {
	return b.Put([]byte(key), binary.BigEndian.AppendUint64(nil, get(b, key)+n))
}

func get(b *bbolt.Bucket, key string) uint64 {
	if v := b.Get([]byte(key)); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
