package scenario

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// cipherOf returns a cipher that encrypts with the first of the keys.
func cipherOf(ids ...string) *workflow.Cipher {
	keys := make(map[string][]byte)
	for _, id := range ids {
		keys[id] = bytes.Repeat([]byte(id[:1]), workflow.CipherKeyBytes)
	}
	c, err := workflow.NewCipher(ids[0], keys)
	if err != nil {
		panic(err)
	}
	return c
}

// codecFor returns the codec of a kit, or nil. Nothing else that a scenario sees may depend on it.
func codecFor(path string) workflow.Codec {
	h := fnv.New32()
	_, _ = h.Write([]byte(path))
	if h.Sum32()%2 == 0 {
		return nil
	}
	return cipherOf("every day")
}

const secret = "the secret of the customer"

var (
	hint   = workflow.DefineSignal[string]("hint")
	shown  = workflow.DefineValue[string]("shown")
	nobody = workflow.DefineSignal[string]("nobody")
)

// discreet is a flow whose values are all secret.
func discreet(k *kit) (parent *workflow.Flow[string, string], child *workflow.Flow[string, string]) {
	child = workflow.Define("child", func(_ *workflow.Run, in string) (string, error) { return in, nil })
	parent = workflow.Define("discreet", func(r *workflow.Run, in string) (string, error) {
		if in == secret {
			return "", workflow.Restart(r, "again: "+in)
		}
		a, err := act(k, r, "step", in)
		if err != nil {
			return "", err
		}
		b, err := workflow.Decide(r, "decided", func() string { return a })
		if err != nil {
			return "", err
		}
		if err := shown.Publish(r, b); err != nil {
			return "", err
		}
		if err := lines.Append(r, b); err != nil {
			return "", err
		}
		var c string
		if _, err := workflow.Select(r, "which", hint.Case(&c)); err != nil {
			return "", err
		}
		d, err := hint.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		e, err := workflow.StepTx(r, "tx", func(Tx) (string, error) { return d, nil })
		if err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return "", err
		}
		return workflow.Call(r, "child", child, c+e)
	})
	return parent, child
}

// Rule: with a cipher, no value of a run is in its rows, from its start to its end, and readers without the
// cipher see that it is encoded. The engine reads all of it.
func (suite) ValuesAreEncoded(t *testing.T, k *kit) {
	k.codec = cipherOf("a")
	f, child := discreet(k)
	k.open(f, child)
	h := startAndSettle(k, f, "1", secret)
	hidden := func(run pawl.ID) {
		rows, err := k.e.Rows(t.Context(), run, "")
		require.NoError(t, err)
		require.NotEmpty(t, rows.Rows)
		for _, row := range rows.Rows {
			require.NotContains(t, string(row.Value), "secret")
		}
		rd := workflow.Read(k.q)
		input, err := rd.Input(t.Context(), run)
		require.NoError(t, err)
		require.True(t, workflow.Encoded(input))
	}
	hidden(h.Run())
	say := func(v string) { require.NoError(t, hint.Send(t.Context(), k.e, h.Run(), v, "")) }
	say("one secret, ")
	require.NoError(t, nobody.Send(t.Context(), k.e, h.Run(), "secret", ""))
	hidden(h.Run())
	payload, err := driver.EncodePayload("two secrets")
	require.NoError(t, err)
	k.settle()
	require.NoError(t, k.e.Send(t.Context(), h.Run(), hint.Name(), payload, ""))
	k.settle()
	hidden(h.Run())
	v, published, err := shown.Get(t.Context(), k.e, h.Run())
	require.NoError(t, err)
	require.True(t, published)
	require.Equal(t, "again: "+secret, v)
	require.Equal(t, []string{"again: " + secret}, linesOf(k, h.Run()))
	k.crash()
	require.NoError(t, k.e.Verify(t.Context(), h.Run()))
	returns(k, find(k, f, "1"), "one secret, two secrets")
	hidden(h.Run())
	hidden(find(k, child, "1/child@1").Run())
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))

	again := start(k, f, "1", secret) // found by its fingerprint, since it has restarted
	require.Equal(t, h.Run(), again.Run())
	_, err = f.Start(t.Context(), k.e, "1", "other")
	require.ErrorIs(t, err, workflow.ErrConflict)
	_, err = child.Start(t.Context(), k.e, "1/child@1", "one secret, two secrets")
	require.NoError(t, err)

	encoded := 0
	journal, err := workflow.Read(k.q).Journal(t.Context(), h.Run(), true)
	require.NoError(t, err)
	for _, e := range journal {
		if workflow.Encoded(e.Result) {
			encoded++
		}
	}
	require.Equal(t, 5, encoded) // a Select has its payload within
	require.Contains(t, k.journal(h.Run()), "step step done: again: "+secret)
	require.Contains(t, k.journal(h.Run()), `select which done: map[case:signal hint value:one secret, ]`)
	signals, err := k.e.Signals(t.Context(), h.Run())
	require.NoError(t, err)
	require.Len(t, signals, 1)
	require.False(t, workflow.Encoded(signals[0].Payload))
	values, err := k.e.Published(t.Context(), h.Run())
	require.NoError(t, err)
	require.False(t, workflow.Encoded(values[shown.Name()]))
	k.carriable(h.Run())
}

// Rule: keys rotate. An engine without the key of a value blocks the run with an error that names the key, and
// loses nothing: with the key, the same build continues the run when its worker starts, and no step runs twice.
func (suite) CodecThatDoesNotFit(t *testing.T) {
	broken := brokenCodec{errors.New("no entropy")}
	for name, c := range map[string]struct {
		codec workflow.Codec
		why   string
	}{
		"another key":       {cipherOf("b"), `no key has the ID "a"`},
		"a wrong key":       {wrongCipher(t), `key "a" does not fit`},
		"none":              {nil, "this engine has no codec"},
		"another codec":     {halves{}, "not of halves"},
		"one that panics":   {brokenCodec{}, "the codec panicked"},
		"one without power": {broken, "no entropy"},
		"the next key":      {cipherOf("b", "a"), ""},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			k.codec = cipherOf("a")
			f, child := discreet(k)
			k.open(f, child)
			h := startAndSettle(k, f, "1", secret)
			require.NoError(t, hint.Send(t.Context(), k.e, h.Run(), "x", ""))
			k.close()
			k.codec = c.codec
			k.again()
			require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			k.settle()
			if c.why != "" {
				info := k.info(h.Run())
				require.Equal(t, workflow.Blocked, info.Status)
				require.Contains(t, info.Error, c.why)
				require.Contains(t, info.Error, workflow.ErrCodec.Error())
				require.ErrorIs(t, k.e.Verify(t.Context(), h.Run()), workflow.ErrCodec)
				_, err := f.Start(t.Context(), k.e, "1", secret)
				require.ErrorIs(t, err, workflow.ErrCodec)
				_, _, err = shown.Get(t.Context(), k.e, h.Run())
				require.ErrorIs(t, err, workflow.ErrCodec)
				k.carriable(h.Run())
				k.close()
				k.codec = cipherOf("b", "a")
				k.again()
			}
			require.NoError(t, hint.Send(t.Context(), k.e, h.Run(), "y", ""))
			returns(k, find(k, f, "1"), "xy")
			require.Equal(t, []string{"step"}, slices.Compact(k.effects()))
			require.Len(t, k.effects(), 1)
		})
	}
}

// Rule: a codec that fails when it encodes a result blocks the run, and fails neither the step nor the run.
func (suite) CodecFailsToEncode(t *testing.T) {
	for name, call := range map[string]func(k *kit, r *workflow.Run) error{
		"step": func(k *kit, r *workflow.Run) error { _, err := act(k, r, "s", 1); return err },
		"tx": func(_ *kit, r *workflow.Run) error {
			_, err := workflow.StepTx(r, "s", func(Tx) (int, error) { return 1, nil })
			return err
		},
		"decide": func(_ *kit, r *workflow.Run) error { _, err := workflow.Now(r, "n"); return err },
		"show":   func(_ *kit, r *workflow.Run) error { return shown.Publish(r, "x") },
		"send":   func(_ *kit, r *workflow.Run) error { return hint.SendFrom(r, r.Run(), "x") },
		"child": func(_ *kit, r *workflow.Run) error {
			_, err := workflow.Call(r, "c", workflow.Define("none", func(*workflow.Run, int) (int, error) { return 0, nil }), 1)
			return err
		},
		"restart": func(_ *kit, r *workflow.Run) error { return workflow.Restart(r, 1) },
		"result":  func(*kit, *workflow.Run) error { return nil },
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			k.codec = &fragile{}
			undone := false
			f := workflow.Define("f", func(r *workflow.Run, n int) (int, error) {
				r.Undo("undo", func(context.Context) error { undone = true; return nil })
				if n == 1 {
					return 1, nil
				}
				k.codec.(*fragile).fails = true
				if err := call(k, r); err != nil {
					return 0, err
				}
				return 1, nil
			})
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Contains(t, k.info(h.Run()).Error, "no entropy")
			require.False(t, undone)
			require.Empty(t, k.entries(h.Run()))
		})
	}
}

// brokenCodec fails, or panics without an error.
type brokenCodec struct{ error }

func (c brokenCodec) Encode([]byte) ([]byte, error) { return c.fail() }
func (c brokenCodec) Decode([]byte) ([]byte, error) { return c.fail() }

func (c brokenCodec) fail() ([]byte, error) {
	if c.error == nil {
		panic("out of order")
	}
	return nil, c.error
}

// fragile fails to encode from some time on.
type fragile struct{ fails bool }

func (c *fragile) Encode(b []byte) ([]byte, error) {
	if c.fails {
		return nil, errors.New("no entropy")
	}
	return b, nil
}

func (*fragile) Decode(b []byte) ([]byte, error) { return b, nil }

// halves is a codec of another sort.
type halves struct{}

func (halves) Encode(b []byte) ([]byte, error) { return b, nil }
func (halves) Decode([]byte) ([]byte, error)   { return nil, errors.New("not of halves") }

// wrongCipher has another key under a known ID.
func wrongCipher(t *testing.T) workflow.Codec {
	c, err := workflow.NewCipher("a", map[string][]byte{"a": make([]byte, workflow.CipherKeyBytes)})
	require.NoError(t, err)
	return c
}

// Rule: a codec can be added to a store that has runs.
func (suite) CodecIsAdded(t *testing.T, k *kit) {
	k.codec = nil
	f, child := discreet(k)
	k.open(f, child)
	h := startAndSettle(k, f, "1", secret)
	require.NoError(t, hint.Send(t.Context(), k.e, h.Run(), "x", ""))
	k.close()
	k.codec = cipherOf("a")
	k.again()
	require.NoError(t, hint.Send(t.Context(), k.e, h.Run(), "y", ""))
	returns(k, find(k, f, "1"), "xy")
	require.Equal(t, []string{"step"}, k.effects())
}
