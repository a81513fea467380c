package recurring

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gopawl/pawl/bench/system"
)

// plan is how a program is restarted.
type plan struct {
	restarts int
	up, down time.Duration
	last     time.Duration // up after the last restart, until leases of killed processes have ended
}

// load is jobs whose starts are limited.
type load struct {
	Jobs   int
	Starts int           // at most so many
	Per    time.Duration // in any period of this length
}

// restarted restarts a program with a schedule of each second, and counts its ticks.
func (s contender) restarted(ctx context.Context, dir string, p plan) (row, error) {
	t, stop, err := s.begin(ctx, dir, "restarts")
	if err != nil {
		return nil, err
	}
	err = s.restart(ctx, t, p)
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return nil, err
	}
	ticks, err := readTimes(t.Log)
	if err != nil {
		return nil, err
	}
	count, lost, doubled := accounts(ticks)
	return row{s.name, strconv.Itoa(count), strconv.Itoa(lost), strconv.Itoa(doubled)}, nil
}

// restart runs the program as planned.
func (s contender) restart(ctx context.Context, t task, p plan) error {
	for i := range p.restarts + 1 {
		child, err := t.start(ctx)
		if err != nil {
			return err
		}
		up, sig := p.up, syscall.SIGTERM
		switch {
		case i == p.restarts:
			up = p.last
		case i%2 == 0:
			sig = syscall.SIGKILL
		}
		if err := wait(ctx, up); err != nil {
			return err
		}
		if err := child.end(sig); err != nil {
			return err
		}
		if i < p.restarts {
			if err := wait(ctx, p.down); err != nil {
				return err
			}
		}
	}
	return nil
}

// limited has a system run jobs as fast as a limit lets it, and counts the starts in each period.
func (s contender) limited(ctx context.Context, dir string, l load) (row, error) {
	t, stop, err := s.begin(ctx, dir, "rate")
	if err != nil {
		return nil, err
	}
	t.Load = &l
	starts, err := s.work(ctx, t)
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return nil, err
	}
	took := starts[len(starts)-1].Sub(starts[0])
	return row{s.name, strconv.Itoa(s.processes), strconv.Itoa(most(starts, l.Per)), fmt.Sprintf("%.1f", float64(len(starts)-1)/took.Seconds())}, nil
}

// work has the processes of a system run all jobs. The first one has begun before the others come: it makes the
// tables.
func (s contender) work(ctx context.Context, t task) (starts []time.Time, err error) {
	var running []*process
	limit := time.Now().Add(10*time.Duration(t.Load.Jobs/t.Load.Starts+1)*t.Load.Per + time.Minute)
	for err == nil && len(starts) < t.Load.Jobs {
		if len(running) == 0 || len(starts) > 0 && len(running) < s.processes {
			t.Loads = len(running) == 0
			var p *process
			if p, err = t.start(ctx); err != nil {
				break
			}
			running = append(running, p)
		}
		if err = wait(ctx, 100*time.Millisecond); err != nil {
			break
		}
		if starts, err = readTimes(t.Log); err == nil && time.Now().After(limit) {
			err = fmt.Errorf("only %d of %d jobs started", len(starts), t.Load.Jobs)
		}
	}
	for _, p := range running {
		if endErr := p.end(syscall.SIGTERM); err == nil {
			err = endErr
		}
	}
	return starts, err
}

// begin starts the server of a system.
func (s contender) begin(ctx context.Context, dir, what string) (t task, stop func() error, err error) {
	t = task{System: s.name, Dir: filepath.Join(dir, s.name+"-"+what)}
	t.Log = filepath.Join(t.Dir, "times")
	if err := os.MkdirAll(t.Dir, 0o755); err != nil { // the server may be another user
		return t, nil, err
	}
	stop = func() error { return nil }
	if s.server != nil {
		var started *system.Server
		if started, t.URL, err = s.server(ctx, t.Dir); err == nil {
			stop = started.Stop
		}
	}
	return t, stop, err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readTimes returns the times in a file, sorted, each job once.
func readTimes(name string) (all []time.Time, err error) {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	seen := make(map[string]bool)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		at, id, _ := strings.Cut(lines.Text(), " ")
		if seen[id] {
			continue
		}
		seen[id] = true
		ns, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, time.Unix(0, ns))
	}
	slices.SortFunc(all, time.Time.Compare)
	return all, lines.Err()
}

// accounts counts the seconds from the first tick to the last one, those without a tick, and the ticks that a
// second has too many.
func accounts(ticks []time.Time) (seconds, lost, doubled int) {
	if len(ticks) == 0 {
		return 0, 0, 0
	}
	found := make(map[int64]int)
	for _, t := range ticks {
		found[t.Unix()]++
	}
	for second := ticks[0].Unix(); second <= ticks[len(ticks)-1].Unix(); second++ {
		seconds++
		switch n := found[second]; n {
		case 0:
			lost++
		default:
			doubled += n - 1
		}
	}
	return seconds, lost, doubled
}

// most returns the most starts in a period, wherever it begins. The starts are sorted.
func most(starts []time.Time, per time.Duration) (n int) {
	first := 0
	for i, t := range starts {
		for t.Sub(starts[first]) >= per {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}
