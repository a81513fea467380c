package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func init() {
	Role("test-lines", func(args Args) error {
		for _, line := range args {
			Emit(line)
		}
		return nil
	})
	Role("test-silent", func(Args) error { return untilKilled() })
	Role("test-stands", func(Args) error {
		EndAfter(10 * time.Millisecond)
		select {}
	})
	Role("test-spins", func(Args) error {
		EndAfter(10 * time.Millisecond)
		for spun = 0; ; spun++ {
		}
	})
	Role("test-error", func(Args) error {
		EmitError("wrong", errors.New("two\nlines"))
		return nil
	})
	Role("test-echo", func(Args) error {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			Emit(in.Text())
		}
		return nil
	})
	Role("test-up", func(Args) error {
		Emit(Up)
		Emit("line")
		return untilKilled()
	})
}

// untilKilled reads an input that never comes.
func untilKilled() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func start(t *testing.T, role string, args ...any) *Child {
	t.Helper()
	c, err := Start(t.Context(), nil, role, args...)
	require.NoError(t, err)
	return c
}

// Rule: the lines of a child are passed on until its family has enough. A child that ends or
// falls silent before is an error.
func TestFollow(t *testing.T) {
	var lines []string
	hear := func(word, rest string) (bool, error) {
		lines = append(lines, word+"|"+rest)
		return word == "end", nil
	}
	require.NoError(t, start(t, "test-lines", "a b c", "end", "more").Follow(time.Hour, hear))
	require.Equal(t, []string{"a|b c", "end|"}, lines)
	require.ErrorIs(t, start(t, "test-lines", "a").Follow(time.Hour, hear), ErrEnded)
	err := start(t, "test-silent").Follow(time.Millisecond, hear)
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorContains(t, err, "no end in 1ms")
	var wrong error
	err = start(t, "test-error").Follow(time.Hour, func(_, rest string) (bool, error) {
		wrong = ErrorOf(rest)
		return true, nil
	})
	require.NoError(t, err)
	require.EqualError(t, wrong, "two\nlines")
}

// Rule: a question gets its answer, or an error when the child takes too long.
func TestAsk(t *testing.T) {
	c := start(t, "test-echo")
	for _, question := range []string{"one", "two"} {
		var answer string
		require.NoError(t, c.Ask(time.Hour, question, &answer))
		require.Equal(t, question, answer)
	}
	c.Kill()
	c.Rest()
	c = start(t, "test-silent")
	require.ErrorContains(t, c.Ask(time.Millisecond, "one", new(string)), "it did not end within 1ms")
	c.Rest()
}

// Rule: a kill comes after the setup of a child, and the other lines of the child are returned.
func TestKillWithin(t *testing.T) {
	r := family(func(try *Try) error {
		lines, killed, err := try.KillWithin(time.Millisecond, 0, "test-up")
		switch {
		case err != nil:
			return err
		case !killed || len(lines) > 1 || len(lines) == 1 && lines[0] != "line":
			return errors.New("the child was not killed after its setup")
		}
		_, killed, err = try.KillWithin(time.Hour, 0, "test-lines", Up)
		if err == nil && killed {
			err = errors.New("a child that had ended was killed")
		}
		return err
	}).Run(context.Background(), Plan{Goal: 2, Seed: 1})
	require.Empty(t, r.First)
}

// Rule: values are drawn by their weights, and one without weight never is.
func TestPick(t *testing.T) {
	drawn := make(map[int]int)
	require.Empty(t, family(func(try *Try) error {
		for range 1000 {
			drawn[Pick(try.Rand, []int{0, 1, 9}, func(n int) int { return n })]++
		}
		return nil
	}).Run(context.Background(), Plan{Goal: 1, Once: true}).First)
	require.Zero(t, drawn[0])
	require.Greater(t, drawn[9], 4*drawn[1])
	require.Positive(t, drawn[1])
}

// spun keeps the loop of a process that spins.
var spun int

// Rule: a process that stands still, or that spins, ends itself and says where it was.
func TestEndAfter(t *testing.T) {
	for _, role := range []string{"test-stands", "test-spins"} {
		c := start(t, role)
		c.Rest()
		require.Contains(t, c.Stderr(), "it did not end within 10ms of CPU time")
		require.Contains(t, c.Stderr(), "goroutine ")
	}
}
