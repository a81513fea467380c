package families

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// programs is the folder of two examples, which work on each server right after its faults: ledger, whose
// transactions contain acks, and order, whose orders are workflows. Each has its own schema, and each is
// killed once for every piece of work.
type programs string

// missing reports what this machine lacks for a family.
func missing() string {
	if lack := cluster.Missing(); lack != "" {
		return lack
	}
	return harness.MissingSource()
}

// buildPrograms builds the examples.
func buildPrograms(env *harness.Env) (programs, error) {
	source, err := harness.Source(env.Ctx)
	if err != nil {
		return "", err
	}
	return programs(env.Dir), harness.Build(env.Ctx, filepath.Join(source, "examples"), "build", "-o", env.Dir+string(filepath.Separator), "./ledger", "./order")
}

// run lets both programs do their work, and judges their books.
func (p programs) run(ctx context.Context, t *harness.Try, url string) error {
	ctx, cancel := context.WithTimeout(ctx, booksLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := p.work(ctx, t, url); err != nil {
		return err
	}
	if err := judgeBooks(ctx, conn, t.Dir); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP SCHEMA ledger, shop CASCADE")
	return err
}

// work lets both programs do their work.
func (p programs) work(ctx context.Context, t *harness.Try, url string) error {
	if err := p.ledger(ctx, t, url); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	for _, s := range stories {
		if err := p.order(ctx, t, url, s); err != nil {
			return fmt.Errorf("order %s: %w", s.order, err)
		}
	}
	return nil
}

// judgeBooks judges the books of both, the effects of the orders by their log in the folder of a try.
func judgeBooks(ctx context.Context, conn *pgx.Conn, folder string) error {
	if err := judgeLedger(ctx, conn); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return judgeOrders(filepath.Join(folder, shop, "effects.log"))
}

// shop is the state folder of the orders.
const shop = "shop"

// booksLimit is how long both programs may take.
const booksLimit = 5 * time.Minute

// How much work the ledger has.
const (
	accounts  = 5
	transfers = 60
	opening   = 10_000_00 // cents of each account at the start
)

// start starts a program. It ends with ctx.
func (p programs) start(ctx context.Context, name string, args ...string) (cmd *exec.Cmd, errs *bytes.Buffer) {
	cmd, errs = exec.CommandContext(ctx, filepath.Join(string(p), name), args...), new(bytes.Buffer)
	cmd.Stderr = errs
	return cmd, errs
}

// ledger makes all transfers. The first process is killed after some of them.
func (p programs) ledger(ctx context.Context, t *harness.Try, url string) error {
	args := []string{"-db", url, "-accounts", strconv.Itoa(accounts), "-transfers", strconv.Itoa(transfers), "-seed", strconv.FormatUint(t.Seed, 10)}
	first, errs := p.start(ctx, "ledger", args...)
	out, err := first.StdoutPipe()
	if err != nil {
		return err
	}
	if err := first.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for n := t.Rand.IntN(10); n >= 0 && lines.Scan(); n-- {
	}
	_ = first.Process.Kill()
	if err := first.Wait(); first.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("%w: %s", err, errs)
	}
	rest, errs := p.start(ctx, "ledger", args...)
	if err := rest.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, errs)
	}
	return nil
}

// judgeLedger compares the sums by itself, apart from the audit of the program.
func judgeLedger(ctx context.Context, conn *pgx.Conn) error {
	var sum, posted, different, fees int64
	err := conn.QueryRow(ctx, "SELECT sum(cents) FROM ledger.account").Scan(&sum)
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT count(*), count(DISTINCT (transfer, fee)), count(*) FILTER (WHERE fee) FROM ledger.journal").Scan(&posted, &different, &fees)
	}
	switch {
	case err != nil:
		return err
	case sum != accounts*opening:
		return fmt.Errorf("the accounts have %d cents, and had %d", sum, accounts*opening)
	case posted != different:
		return fmt.Errorf("%d of %d movements are there twice", posted-different, posted)
	case posted != 2*fees || fees == 0:
		return fmt.Errorf("%d movements are there, of which %d are fees", posted, fees)
	}
	return nil
}

// story is an order and what has to happen in the world, once each and in this order.
type story struct {
	order, cents, answer string
	effects              []string
}

var stories = []story{
	{"shipped", "12900", "approve", []string{"reserve", "charge", "ship"}},
	{"refused", "12900", "refuse", []string{"reserve", "charge", "refund", "release"}},
	{"declined", "200000", "", []string{"reserve", "release"}},
}

// order takes an order through the shop. The first process of each command is killed at any moment.
func (p programs) order(ctx context.Context, t *harness.Try, url string, s story) error {
	commands := [][]string{{"place", s.order, s.cents}}
	if s.answer != "" {
		commands = append(commands, []string{s.answer, s.order})
	}
	for _, words := range commands {
		words = append([]string{"-state", filepath.Join(t.Dir, shop), "-db", url}, words...)
		first, errs := p.start(ctx, "order", words...)
		if err := first.Start(); err != nil {
			return err
		}
		kill := time.AfterFunc(time.Duration(t.Rand.IntN(150))*time.Millisecond, func() { _ = first.Process.Kill() })
		err := first.Wait()
		kill.Stop()
		if first.ProcessState.ExitCode() == 0 {
			continue // it was faster
		}
		if first.ProcessState.ExitCode() > 0 {
			return fmt.Errorf("%w: %s", err, errs)
		}
		rest, errs := p.start(ctx, "order", words...)
		if err := rest.Run(); err != nil && !strings.Contains(errs.String(), "the run has ended") { // by the answer of the process that was killed
			return fmt.Errorf("%w: %s", err, errs)
		}
	}
	return nil
}

// judgeOrders compares the effects on the world with the stories.
func judgeOrders(log string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	effects := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line) // key, effect, order
		if len(words) != 3 {
			return fmt.Errorf("a line is %q", line)
		}
		effects[words[2]] = append(effects[words[2]], words[1])
	}
	var wrong []error
	for _, s := range stories {
		if !slices.Equal(effects[s.order], s.effects) {
			wrong = append(wrong, fmt.Errorf("order %s: the effects are %v, and should be %v", s.order, effects[s.order], s.effects))
		}
	}
	return errors.Join(wrong...)
}
