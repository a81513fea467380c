package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
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
	"github.com/gopawl/pawl/internal/memdir"
)

// asChild makes the test binary behave as the program itself, so that a test can
// kill it.
const asChild = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runLedger runs the program in this process.
func runLedger(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// openReader opens a file that no process holds.
func openReader(t *testing.T, state string) *bolt.Reader {
	t.Helper()
	q, err := bolt.OpenReader(state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// readBooks reads the books by itself, apart from the audit: the sum of all balances,
// and how often each transfer and each fee was posted. It also checks the file.
func readBooks(t *testing.T, q *bolt.Reader) (sum int64, posted map[step]int) {
	t.Helper()
	posted = make(map[step]int)
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		b := tx.Bucket(bucketLedger)
		require.NoError(t, b.Bucket(bucketAccounts).ForEach(func(_, v []byte) error {
			cents, err := strconv.ParseInt(string(v), 10, 64)
			sum += cents
			return err
		}))
		return b.Bucket(bucketJournal).ForEach(func(_, v []byte) error {
			var e Entry
			err := json.Unmarshal(v, &e)
			posted[step{e.Transfer, e.Fee}]++
			return err
		})
	}))
	return sum, posted
}

// Rule: every transfer is made once, with its fee, or refused for want of funds, and no
// money is made or lost; started again, it changes nothing.
func TestInProcess(t *testing.T) {
	state := filepath.Join(memdir.New(t), "ledger.db")
	args := []string{"-state", state, "-accounts", "5", "-transfers", "150"}
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

// Rule: a transfer without funds is a dead letter that says so, and nothing of its
// transaction is there.
func TestRefusedJobIsDead(t *testing.T) {
	state := filepath.Join(memdir.New(t), "ledger.db")
	code, _, errs := runLedger("-state", state, "-accounts", "2", "-transfers", "60")
	require.Equal(t, 0, code, errs)
	q := openReader(t, state)
	_, posted := readBooks(t, q)
	dead := 0
	for job, err := range dlq.List(t.Context(), q, pawl.Filter{}) {
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
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asChild+"=1")
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
func TestKilledTwentyTimes(t *testing.T) {
	const accounts, transfers = 10, 600
	var state string
	var args []string
	said, runs := 0, 0
	before := make(map[step]int)
	fresh := func() {
		runs++
		state = filepath.Join(memdir.New(t), fmt.Sprintf("ledger%d.db", runs))
		args = []string{"-state", state, "-accounts", strconv.Itoa(accounts), "-transfers", strconv.Itoa(transfers)}
		said, before = 0, make(map[step]int)
	}
	check := func(t *testing.T) *statement {
		q := openReader(t, state)
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

// Rule: killed while it opens the accounts, it leaves a file that has none, or one with
// all accounts and all transfers.
func TestKilledWhileOpening(t *testing.T) {
	const transfers = 3000
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			state := filepath.Join(memdir.New(t), "ledger.db")
			_, ok := killed(t, 0, rand.N(120*time.Millisecond), "-state", state, "-transfers", strconv.Itoa(transfers))
			require.True(t, ok)
			if _, err := os.Stat(state); os.IsNotExist(err) {
				return // so soon that there is no file yet
			}
			q, opened := openReader(t, state), false
			require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
				opened = tx.Bucket(bucketLedger) != nil
				return nil
			}))
			stats, err := q.Stats(t.Context())
			require.NoError(t, err)
			if !opened {
				require.Empty(t, stats.Queues)
				return
			}
			_, err = audit(t.Context(), q) // which finds each transfer once
			require.NoError(t, err)
		})
	}
}

// Rule: the audit finds a transfer that was made twice, one that is missing, a fee
// without a transfer, and money that comes from nowhere.
func TestAuditFinds(t *testing.T) {
	for want, change := range map[string]func(b books) error{
		"transfer 1 was made 1 times and is 1 times in the queue": func(b books) error {
			return b.post(Entry{Transfer: 1, From: accountName(0), To: accountName(1), Amount: 7})
		},
		"transfer 2 was made 0 times, its fee charged 1 times": func(b books) error {
			return b.post(Entry{Transfer: 2, Fee: true, From: accountName(0), To: bank, Amount: feeCents})
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
			l := opened(t)
			s, err := audit(t.Context(), l.q)
			require.NoError(t, err)
			require.Equal(t, 3, s.waiting)
			require.NoError(t, l.q.Update(t.Context(), func(tx *bbolt.Tx) error { return change(booksIn(tx)) }))
			_, err = audit(t.Context(), l.q)
			require.ErrorContains(t, err, want)
		})
	}
	t.Run("missing", func(t *testing.T) {
		l := opened(t)
		leases, err := l.q.Fetch(t.Context(), pawl.Request{Queues: []string{pawl.DefaultQueue}, Max: 1})
		require.NoError(t, err)
		require.NoError(t, l.q.Settle(t.Context(), leases[0].Ack()))
		_, err = audit(t.Context(), l.q)
		require.ErrorContains(t, err, "transfer 1 was made 0 times and is 0 times in the queue")
	})
}

// opened is a ledger with two accounts and three transfers that were not made.
func opened(t *testing.T) *ledger {
	t.Helper()
	q, err := bolt.Open(filepath.Join(memdir.New(t), "ledger.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	l := &ledger{q: q, plan: plan{Accounts: 2, Transfers: 3}, out: io.Discard}
	require.NoError(t, l.openBooks(t.Context()))
	return l
}

// Rule: bad input gets a clear error and the right exit code.
func TestBadInput(t *testing.T) {
	state := filepath.Join(memdir.New(t), "ledger.db")
	for _, args := range [][]string{{"file"}, {"-accounts", "1"}, {"-transfers", "-1"}, {"-seed", "x"}} {
		code, _, errs := runLedger(append([]string{"-state", state}, args...)...)
		require.Equal(t, 2, code, errs)
		require.NoFileExists(t, state)
	}
	code, _, _ := runLedger("-state", state, "-transfers", "3")
	require.Equal(t, 0, code)
	code, _, errs := runLedger("-state", state, "-transfers", "4")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "was created with -accounts 10 -transfers 3 -seed 1")
	code, _, errs = runLedger("-state", filepath.Join(state, "x"))
	require.Equal(t, 1, code)
	require.NotEmpty(t, errs)
}
