package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// refuse enqueues arguments that cannot be, and sees that the queue is not asked.
func refuse[T any](t *testing.T, args T) error {
	t.Helper()
	q := new(intake)
	job, err := pawl.Define[T]("some.kind").Enqueue(context.Background(), q, args)
	require.Error(t, err)
	require.ErrorContains(t, err, "some.kind")
	require.True(t, job.ID.IsZero())
	require.Empty(t, q.jobs)
	return err
}

func TestArgumentsWithoutAnEncodingAreRefused(t *testing.T) {
	require.ErrorIs(t, refuse(t, make(chan int)), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, refuse(t, func() {}), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, refuse(t, complex(1, 2)), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, refuse(t, struct{ In struct{ C chan int } }{}), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, refuse(t, map[string]any{"f": func() {}}), pawl.ErrPayloadEncoding)
	require.ErrorIs(t, refuse[any](t, lists(33, 1)), pawl.ErrPayloadEncoding, "33 levels")
}

func lists(n int, value any) any {
	for range n {
		value = []any{value}
	}
	return value
}

// A kind refuses what no queue takes, to the byte; the rest is the queue's to
// refuse.
func TestPayloadLimit(t *testing.T) {
	k := pawl.Define[[]byte]("k")
	fits := make([]byte, pawl.MaxBatchBytes-5) // long bytes have a head of 5

	q := new(intake)
	_, err := k.Enqueue(context.Background(), q, fits)
	require.NoError(t, err)
	require.Len(t, q.jobs[0].Payload, pawl.MaxBatchBytes)
	_, err = k.Envelope(append(fits, 0))
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
	require.NotErrorIs(t, err, pawl.ErrPayloadEncoding, "the two have different remedies")
}

func TestJobRefusesBytesThatAreNotItsArguments(t *testing.T) {
	text, err := msgpack.Marshal("text")
	require.NoError(t, err)
	for name, payload := range map[string][]byte{
		"none":          nil,
		"truncated":     {0x81, 0xa2, 'T'},
		"trailing":      {0x80, 0xc0},
		"a bomb":        {0xdd, 0xff, 0xff, 0xff, 0xff},
		"another type":  text,
		"a wrong field": {0x81, 0xa3, 'N', 'u', 'm', 0xa1, 'x'},
		"unused code":   {0xc1},
	} {
		job, err := pawl.Define[mail]("some.kind").Job(&pawl.Envelope{Kind: "some.kind", Payload: payload})
		require.ErrorIs(t, err, pawl.ErrPayloadEncoding, name)
		require.ErrorContains(t, err, "some.kind", name)
		require.Nil(t, job, name)
	}
}

// msgpack panics over some bytes that do not fit, such as the nil of a pointer that
// a new build has made a value.
func TestJobSurvivesAPanicOfTheDecoder(t *testing.T) {
	e, err := pawl.Define[struct{ At *time.Time }]("k").Envelope(struct{ At *time.Time }{})
	require.NoError(t, err)
	job, err := pawl.Define[struct{ At time.Time }]("k").Job(e)
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
	require.Nil(t, job)

	list := []byte{0x81, 0x90, 0xc0} // a list as the key of a map
	_, err = pawl.Define[map[any]any]("k").Job(&pawl.Envelope{Payload: list})
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
}

// msgpack takes an extension where a map belongs and reads on inside its data,
// where a declared length is believed: ten bytes would ask for 64 GB.
func TestJobRefusesABombInsideAnExtension(t *testing.T) {
	bomb := []byte{0x81, 0xa0, 0xdd, 0xff, 0xff, 0xff, 0xff, 0x00}
	for name, head := range map[string][]byte{
		"time":             {0xd7, 0xff},
		"of 8 bytes":       {0xd7, 0x05},
		"of any length":    {0xc7, 0x08, 0x05},
		"length in 2 byte": {0xc8, 0x00, 0x08, 0x05},
		"length in 4 byte": {0xc9, 0x00, 0x00, 0x00, 0x08, 0x05},
	} {
		payload := append(head, bomb...)
		_, err := pawl.Define[map[string]any]("k").Job(&pawl.Envelope{Payload: payload})
		require.ErrorIs(t, err, pawl.ErrPayloadEncoding, name)

		payload = append([]byte{0x81, 0xa1, 'M'}, payload...)
		_, err = pawl.Define[struct{ M map[string]any }]("k").Job(&pawl.Envelope{Payload: payload})
		require.ErrorIs(t, err, pawl.ErrPayloadEncoding, name)
	}
}

// A time may have the bytes of a map in it, and an extension of the app's own too.
func TestJobReadsExtensionsThatLookLikeMaps(t *testing.T) {
	type args struct {
		At   time.Time
		Any  any
		Rest map[string]time.Time
	}
	at := time.Unix(9, 0x81<<22) // its data begin with 0x81
	k := pawl.Define[args]("k")
	e, err := k.Envelope(args{at, at, map[string]time.Time{"a": at, "b": time.Unix(0x80<<24, 0)}})
	require.NoError(t, err)
	job, err := k.Job(e)
	require.NoError(t, err)
	require.True(t, at.Equal(job.Args.At))
	require.True(t, at.Equal(job.Args.Any.(time.Time)))
	require.True(t, at.Equal(job.Args.Rest["a"]))
	require.True(t, time.Unix(0x80<<24, 0).Equal(job.Args.Rest["b"]))
}

// The index of an interned string is an extension of one byte, which msgpack reads
// as a code: where it begins a large map it is refused before it is stored.
func TestInternedStrings(t *testing.T) {
	type tag struct {
		Name string `msgpack:",intern"`
	}
	k := pawl.Define[[]tag]("k")
	tags := func(n int) (all []tag) {
		for range 2 {
			for i := range n {
				all = append(all, tag{fmt.Sprintf("tag %d", i)})
			}
		}
		return all
	}
	e, err := k.Envelope(tags(0xde)) // index 0xdd is the last
	require.NoError(t, err)
	job, err := k.Job(e)
	require.NoError(t, err)
	require.Equal(t, tags(0xde), job.Args)

	_, err = k.Envelope(tags(0xdf))
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
}

// What is stored beside jobs has the form of their arguments: a kind reads what EncodePayload
// wrote, and the other way round, with the same limits and the same error for what does not
// fit.
func TestPayloadsBesideJobs(t *testing.T) {
	args := mail{To: "somebody@example.org"}
	b, err := driver.EncodePayload(args)
	require.NoError(t, err)
	e, err := pawl.Define[mail]("k").Envelope(args)
	require.NoError(t, err)
	require.Equal(t, e.Payload, b)
	var back mail
	require.NoError(t, driver.DecodePayload(b, &back))
	require.Equal(t, args, back)

	_, err = driver.EncodePayload(func() {})
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
	_, err = driver.EncodePayload(lists(33, 1))
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
	_, err = driver.EncodePayload(make([]byte, pawl.MaxBatchBytes))
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
	for name, foreign := range map[string][]byte{
		"none": nil, "cut off": b[:len(b)-1], "trailing": append(b, 0xc0), "a bomb": {0xdd, 0xff, 0xff, 0xff, 0xff},
	} {
		require.ErrorIs(t, driver.DecodePayload(foreign, new(mail)), pawl.ErrPayloadEncoding, name)
	}
	b, err = driver.EncodePayload(struct{ At *time.Time }{})
	require.NoError(t, err)
	require.ErrorIs(t, driver.DecodePayload(b, new(struct{ At time.Time })), pawl.ErrPayloadEncoding, "what a decoder panics over")
}

// Tree has itself within a struct in which it is embedded.
type Tree struct {
	Name  string
	First *Leaf
	Size  int
}

// Leaf is a tree with more.
type Leaf struct {
	Tree
	Color string
}

// Rule: types that embed each other are decoded with all of their fields, whichever comes first.
func TestTypesThatEmbedEachOther(t *testing.T) {
	tree := Tree{Name: "a", First: &Leaf{Tree{"b", &Leaf{Color: "red"}, 2}, "green"}, Size: 1}
	kind := pawl.Define[Tree]("tree")
	e, err := kind.Envelope(tree)
	require.NoError(t, err)
	job, err := kind.Job(e)
	require.NoError(t, err)
	require.Equal(t, tree, job.Args)
}
