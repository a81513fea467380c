package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// flowsName is the bucket of workflows.
var flowsName = []byte("pawl.workflow")

// flowBuckets are its buckets. No bucket of the queue has one of these names.
var flowBuckets = []string{"runs", "ids", "steps", "blobs", "signals", "seen", "published", "blocked", "ended", "attributes",
	"answers", "streams", "items", "places"}

func ofFlows(bucket string) bool { return slices.Contains(flowBuckets, bucket) }

// sealFlow corrects the checksum at the end of a workflow row: over the name of its bucket,
// the key and the value, in big-endian order.
func sealFlow(bucket string, key, sealed []byte) {
	if n := len(sealed) - 4; n >= 0 {
		sum := crc32.Update(crc32.Checksum([]byte(bucket), castagnoli), castagnoli, key)
		binary.BigEndian.PutUint32(sealed[n:], crc32.Update(sum, castagnoli, sealed[:n]))
	}
}

// steady replaces random IDs by fixed ones.
type steady struct{ pairs [][2][]byte }

// steadyOf assigns fixed IDs to the runs of a file, in the order of their names.
func steadyOf(ctx context.Context, path string, seed uint64) (s steady, err error) {
	r, err := bolt.OpenReader(path)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	list, err := workflow.Read(r).List(ctx, workflow.Filter{}, "", pawl.MaxListed)
	if err != nil {
		return s, err
	}
	slices.SortFunc(list.Runs, func(a, b workflow.Info) int { return strings.Compare(a.ID, b.ID) })
	const behindJobs = 200
	for n, info := range list.Runs {
		id := jobID(seed, behindJobs+n)
		s.pairs = append(s.pairs, [2][]byte{bytes.Clone(info.Run[:]), id[:]}, [2][]byte{[]byte(info.Run.String()), []byte(id.String())})
	}
	return s, nil
}

// isRun reports whether a job is the run of a workflow.
func isRun(e *pawl.Envelope) bool { return strings.HasPrefix(e.Kind, workflow.KindPrefix) }

// replace replaces the random IDs.
func (s steady) replace(b []byte) (changed []byte) {
	for _, p := range s.pairs {
		b = bytes.ReplaceAll(b, p[0], p[1])
	}
	return b
}

// row replaces the IDs in a row, and seals it if it changed.
func (s steady) row(bucket string, k, v []byte) (key, value []byte) {
	if len(s.pairs) == 0 {
		return k, v // the row was already damaged
	}
	key, value = s.replace(k), s.replace(v)
	if bucket == "runs" {
		value = withoutChanges(value)
	}
	if bytes.Equal(key, k) && bytes.Equal(value, v) {
		return k, v
	}
	sealRow(bucket, key, value)
	return key, value
}

// changesAt is the column of a run's row that says how often the row was written.
const changesAt = 27

// withoutChanges sets column changesAt to 0, since its value depends on which calls shared
// a commit.
func withoutChanges(row []byte) []byte {
	var columns []msgpack.RawMessage
	if len(row) < 5 || msgpack.Unmarshal(row[1:len(row)-4], &columns) != nil || len(columns) <= changesAt {
		return row
	}
	columns[changesAt] = msgpack.RawMessage{0}
	content, err := msgpack.Marshal(columns)
	if err != nil {
		return row
	}
	return slices.Concat(row[:1], content, row[len(row)-4:])
}

// storyOf is the content of a sound file about a run.
type storyOf struct {
	info      workflow.Info
	journal   map[uint32]workflow.Entry
	signals   []workflow.Pending
	published map[string][]byte
	streams   map[string]workflow.StreamInfo
	items     map[uint64]workflow.Item[[]byte] // items of its stream

	input, output []byte
}

// storiesOf reads the runs of a sound file.
func storiesOf(ctx context.Context, r *bolt.Reader) (all map[pawl.ID]*storyOf, ids []pawl.ID, err error) {
	rd := workflow.Read(r)
	list, err := rd.List(ctx, workflow.Filter{}, "", pawl.MaxListed)
	if err != nil {
		return nil, nil, err
	}
	all = make(map[pawl.ID]*storyOf)
	for _, info := range list.Runs {
		s := &storyOf{
			journal: make(map[uint32]workflow.Entry),
			streams: make(map[string]workflow.StreamInfo), items: make(map[uint64]workflow.Item[[]byte]),
		}
		if s.info, err = rd.Info(ctx, info.Run); err != nil { // with holders, unlike the Info in a list
			return nil, nil, err
		}
		journal, err := rd.Journal(ctx, info.Run, true)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range journal {
			s.journal[e.Seq] = e
		}
		if s.signals, err = rd.Signals(ctx, info.Run); err != nil {
			return nil, nil, err
		}
		if s.published, err = rd.Published(ctx, info.Run); err != nil {
			return nil, nil, err
		}
		s.input, err = rd.Input(ctx, info.Run)
		if err == nil {
			s.output, err = rd.Output(ctx, info.Run)
		}
		if err := errors.Join(err, s.readStream(ctx, rd)); err != nil {
			return nil, nil, err
		}
		all[info.Run] = s
		ids = append(ids, info.Run)
	}
	return all, ids, rd.Check(ctx)
}

// readStream reads what the run has appended.
func (s *storyOf) readStream(ctx context.Context, rd *workflow.Reader) error {
	streams, err := rd.Streams(ctx, s.info.Run)
	if err != nil {
		return err
	}
	for _, info := range streams {
		s.streams[info.Name] = info
	}
	items, err := rd.Items(ctx, s.info.Run, printed.Name(), 0, workflow.MaxListed)
	for _, item := range items {
		s.items[item.N] = item
	}
	return err
}

// rootsOf returns the root buckets to copy.
func rootsOf(tx *bbolt.Tx) (names [][]byte) {
	for _, name := range [][]byte{rootName, flowsName} {
		if tx.Bucket(name) != nil {
			names = append(names, name)
		}
	}
	return names
}
