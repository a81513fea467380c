package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/examples/internal/itself"
	"github.com/gopawl/pawl/examples/internal/places"
	"github.com/gopawl/pawl/internal/memdir"
)

func TestMain(m *testing.M) { itself.Main(main, func() int { return places.Main(m) }) }

// runLedger runs the program in this process.
func runLedger(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// reopened opens a store that no process holds.
func reopened(t *testing.T, place string) store {
	t.Helper()
	q, err := openStore(t.Context(), place)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// closedFile is a file that no process holds.
type closedFile struct{ *bolt.Reader }

func (f closedFile) view(ctx context.Context, fn func(books) error) error {
	return f.View(ctx, func(tx *bbolt.Tx) error { return fn(fileBooks{tx: tx}) })
}

// readOnly opens a store without a change of it, as far as its engine can. It checks a file.
func readOnly(t *testing.T, place string) reader {
	t.Helper()
	if places.IsServer(place) {
		return reopened(t, place)
	}
	q, err := bolt.OpenReader(place)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		return nil
	}))
	return closedFile{q}
}

// readBooks reads the books by itself, apart from the audit: the sum of all balances,
// and how often each transfer and each fee was posted.
func readBooks(t *testing.T, q reader) (sum int64, posted map[step]int) {
	t.Helper()
	posted = make(map[step]int)
	require.NoError(t, q.view(t.Context(), func(b books) error {
		balances, journal, err := b.read()
		for _, cents := range balances {
			sum += cents
		}
		for _, e := range journal {
			posted[step{e.Transfer, e.Fee}]++
		}
		return err
	}))
	return sum, posted
}

// Rule: every transfer is made once, with its fee, or refused for want of funds, and no
// money is made or lost; started again, it changes nothing.
func TestInProcess(t *testing.T) { places.Each(t, inProcess) }

func inProcess(t *testing.T, fresh func() (place string)) {
	args := []string{"-db", fresh(), "-accounts", "5", "-transfers", "150"}
	code, out, errs := runLedger(args...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "150 transfers to go")
	require.Contains(t, out, "sum 5000000 cents, as at the start")
	var made, refused, waiting, fees, feesWaiting int
	statement := out[strings.Index(out, "made "):]
	_, err := fmt.Sscanf(statement, "made %d, refused %d, waiting %d; fees charged %d, waiting %d",
		&made, &refused, &waiting, &fees, &feesWaiting)
	require.NoError(t, err)
	require.Equal(t, 150, made+refused)
	require.Positive(t, refused)
	require.Equal(t, []int{0, made, 0}, []int{waiting, fees, feesWaiting})
	require.Contains(t, statement, fmt.Sprintf("  %-12s %10d\n", bank, fees*feeCents))

	code, again, errs := runLedger(args...)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "0 transfers to go\n"+statement, again)
}

// Rule: a transfer without funds is a dead job that says so, and nothing of its
// transaction is there.
func TestRefusedJobIsDead(t *testing.T) { places.Each(t, refusedJobIsDead) }

func refusedJobIsDead(t *testing.T, fresh func() (place string)) {
	place := fresh()
	code, _, errs := runLedger("-db", place, "-accounts", "2", "-transfers", "60")
	require.Equal(t, 0, code, errs)
	q := reopened(t, place)
	_, posted := readBooks(t, q)
	dead := 0
	for job, err := range dlq.List(t.Context(), q.(dlq.Reader), pawl.Filter{}) {
		require.NoError(t, err)
		transfer, err := makeTransfer.Job(job)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonPermanent, job.Death.Reason)
		require.Equal(t, errFunds.Error(), job.LastError())
		require.Equal(t, 1, job.Attempts)
		require.Zero(t, posted[step{transfer.Args.Number, false}])
		require.Zero(t, posted[step{transfer.Args.Number, true}])
		dead++
	}
	require.Positive(t, dead)
}

// killed runs the program as a child process until it has printed some lines and a
// moment has passed, and kills it. It returns the last line, and false when the program
// was done before.
func killed(t *testing.T, lines int, moment time.Duration, args ...string) (last string, ok bool) {
	t.Helper()
	cmd := itself.Command(t.Context(), args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	printed := bufio.NewScanner(out)
	for n := 0; n < lines && printed.Scan(); n++ {
		last = printed.Text()
	}
	select {
	case <-time.After(moment):
	case <-t.Context().Done():
	}
	require.NoError(t, cmd.Process.Kill())
	for printed.Scan() {
		last = printed.Text()
	}
	err = cmd.Wait()
	if err == nil {
		return last, false
	}
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it ended by itself: %s", errs.String())
	return last, true
}

// Rule: killed at any moment and started again, it makes each transfer once. After each
// kill the sum of all balances is that of the start, no transfer was made twice, and as many
// were made as it said; in the end none is missing.
func TestKilledTwentyTimes(t *testing.T) { places.Each(t, killedTwentyTimes) }

func killedTwentyTimes(t *testing.T, another func() (place string)) {
	const accounts, transfers = 10, 600
	var place string
	var args []string
	said, runs := 0, 0
	before := make(map[step]int)
	fresh := func() {
		runs++
		place = another()
		args = []string{"-db", place, "-accounts", strconv.Itoa(accounts), "-transfers", strconv.Itoa(transfers)}
		said, before = 0, make(map[step]int)
	}
	check := func(t *testing.T) *statement {
		q := readOnly(t, place)
		sum, posted := readBooks(t, q)
		require.EqualValues(t, accounts*openingBalance, sum)
		for step, times := range posted {
			require.Equal(t, 1, times, "%+v", step)
		}
		for step := range before {
			require.Contains(t, posted, step, "it was made before the kill")
		}
		s, err := audit(t.Context(), q)
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.made, said)
		before = posted
		return s
	}
	fresh()
	for kills := 0; kills < 20; {
		last, ok := killed(t, 1+rand.IntN(2), rand.N(3*time.Millisecond), args...)
		if n, _, progress := strings.Cut(last, " of "); progress {
			var err error
			said, err = strconv.Atoi(n)
			require.NoError(t, err)
		}
		name := fmt.Sprintf("run %d after kill %d", runs, kills)
		if ok {
			kills++
			t.Run(name, func(t *testing.T) { check(t) })
			continue
		}
		t.Run(name, func(t *testing.T) { require.Zero(t, check(t).waiting) })
		fresh() // it was faster than the kills
	}
	code, _, errs := runLedger(args...)
	require.Equal(t, 0, code, errs)
	s := check(t)
	require.Equal(t, transfers, s.made+s.refused)
	require.Equal(t, s.made, s.fees)
}

// Rule: killed while it opens the accounts, it leaves none, or all accounts and all transfers.
func TestKilledWhileOpening(t *testing.T) { places.Each(t, killedWhileOpening) }

func killedWhileOpening(t *testing.T, fresh func() (place string)) {
	const transfers = 3000
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			place := fresh()
			if _, ok := killed(t, 0, rand.N(120*time.Millisecond), "-db", place, "-transfers", strconv.Itoa(transfers)); !ok {
				return // it was faster than the kill
			}
			if _, err := os.Stat(place); os.IsNotExist(err) && !places.IsServer(place) {
				return // so soon that there is no file yet
			}
			q, opened := reopened(t, place), false
			require.NoError(t, q.change(t.Context(), func(b books) error {
				stored, err := b.plan()
				opened = stored != nil
				return err
			}))
			if opened {
				_, err := audit(t.Context(), q) // which finds each transfer once
				require.NoError(t, err)
				return
			}
			for job, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				require.Fail(t, "there is a job without books", "%v", job)
			}
		})
	}
}

// Rule: the audit finds a transfer that was made twice, one that is missing, a fee
// without a transfer, and money that comes from nowhere.
func TestAuditFinds(t *testing.T) { places.Each(t, auditFinds) }

func auditFinds(t *testing.T, fresh func() (place string)) {
	for want, change := range map[string]func(b books) error{
		"transfer 1 was made 1 times and is 1 times in the queue": func(b books) error {
			return post(b, Entry{Transfer: 1, From: accountName(0), To: accountName(1), Amount: 7})
		},
		"transfer 2 was made 0 times, its fee charged 1 times": func(b books) error {
			return post(b, Entry{Transfer: 2, Fee: true, From: accountName(0), To: bank, Amount: feeCents})
		},
		"sum to 2000001, not 2000000": func(b books) error {
			_, err := b.add(bank, 1)
			return err
		},
		"not the sums of the journal entries": func(b books) error {
			_, err := b.add(bank, 1)
			if err == nil {
				_, err = b.add(accountName(0), -1)
			}
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			l := opened(t, fresh())
			s, err := audit(t.Context(), l.store)
			require.NoError(t, err)
			require.Equal(t, 3, s.waiting)
			require.NoError(t, l.store.change(t.Context(), change))
			_, err = audit(t.Context(), l.store)
			require.ErrorContains(t, err, want)
		})
	}
	t.Run("missing", func(t *testing.T) {
		l := opened(t, fresh())
		leases, err := l.store.Fetch(t.Context(), pawl.Request{Queues: []string{pawl.DefaultQueue}, Max: 1})
		require.NoError(t, err)
		require.NoError(t, l.store.Settle(t.Context(), leases[0].Ack()))
		_, err = audit(t.Context(), l.store)
		require.ErrorContains(t, err, "transfer 1 was made 0 times and is 0 times in the queue")
	})
}

// opened is a ledger with two accounts and three transfers that were not made.
func opened(t *testing.T, place string) *ledger {
	t.Helper()
	l := &ledger{store: reopened(t, place), plan: plan{Accounts: 2, Transfers: 3}, out: io.Discard}
	require.NoError(t, l.openBooks(t.Context()))
	return l
}

// Rule: bad input gets a clear error and the right exit code.
func TestBadInput(t *testing.T) {
	state := filepath.Join(memdir.New(t), "ledger.db")
	for _, args := range [][]string{{"file"}, {"-accounts", "1"}, {"-transfers", "-1"}, {"-seed", "x"}} {
		code, _, errs := runLedger(append([]string{"-db", state}, args...)...)
		require.Equal(t, 2, code, errs)
		require.NoFileExists(t, state)
	}
	code, _, _ := runLedger("-db", state, "-transfers", "3")
	require.Equal(t, 0, code)
	code, _, errs := runLedger("-db", state, "-transfers", "4")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "were opened with -accounts 10 -transfers 3 -seed 1")
	code, _, errs = runLedger("-db", filepath.Join(state, "x"))
	require.Equal(t, 1, code)
	require.NotEmpty(t, errs)
}
