package top

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// model is what is shown and where the user is. Its methods run one at a time, in the goroutine
// of the program; see Elm, or bubbletea.
type model struct {
	ctx   context.Context
	link  *link
	opts  Options
	after func(time.Duration, tea.Msg) tea.Cmd // delivers a message later

	width, height int // of the terminal

	// The result error of the last reading.
	stats admin.Stats
	runs  workflow.Counts
	at    time.Time // when; zero before the first reading
	live  bool
	rates rates
	err   error // of the last reading
	lists [len(panes)]list
	// The beginnings of the lists of other panes, which the first pane shows.
	glimpses [len(panes)]list

	// Where the user is.
	pane   pane
	queue  string // the selected queue
	sort   int    // the order of the queues: an index into queueOrders
	filter filter
	typing *string // the filter while it is typed
	asked  *question
	detail *detail
	help   *pager

	note    string // safe; the result of the last action
	failed  error  // or why it failed
	reading bool   // a reading is in progress
	again   bool   // another reading must follow it
}

// tick asks for the next reading.
type tick struct{}

// repaint redraws the whole screen. When a terminal becomes wider, the renderer forgets what it
// drew beyond the old width, and would leave it there forever; the second drawing at the new
// size is correct.
type repaint struct{}

// settled is the time after which the first drawing of a new size is certainly over: there are
// sixty drawings a second.
const settled = 100 * time.Millisecond

// stoppedRefresh is how often to check whether the app of a snapshot is back.
const stoppedRefresh = 2 * time.Second

func newModel(ctx context.Context, l *link, opts Options) *model {
	return &model{ctx: ctx, link: l, opts: opts, after: func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	}}
}

// Init starts the ticks. The first reading waits for the size size of the terminal, which
// determines how many rows are visible.
func (m *model) Init() tea.Cmd { return m.after(m.opts.Refresh, tick{}) }

// Update handles one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		return m, tea.Batch(m.refresh(), m.after(settled, repaint{}))
	case repaint:
		return m, tea.ClearScreen
	case tick:
		return m, m.onTick()
	case reading:
		return m, m.take(msg)
	case still:
		m.err = nil
		return m, m.finish()
	case acted:
		m.note, m.failed = msg.note, msg.err
		m.add(m.link.takeNotices())
		for p := range m.lists {
			m.lists[p].drop(msg.ids)
		}
		return m, m.refresh()
	case tea.PasteMsg:
		if m.typing != nil {
			*m.typing += msg.Content
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// add appends a sentence to the note.
func (m *model) add(notices string) {
	if notices != "" && m.note != "" {
		m.note += "; "
	}
	m.note += plain.Text(notices)
}

// say shows an error about what the user did.
func (m *model) say(err error) { m.note, m.failed = "", err }

// fewestRows are read even for a terminal that shows fewer, so that the selection survives while
// the user resizes the window.
const fewestRows = 5

// want returns what the next reading should contain.
func (m *model) want() want {
	l := &m.lists[m.pane]
	w := want{pane: m.pane, filter: m.filter, from: l.from(), at: l.start(), rows: m.pageRows(), glance: m.pane != queuesPane && l.costly()}
	if w.at != w.from {
		w.rows -= len(l.rows)
	}
	if m.detail != nil {
		w.job, w.isRun = m.detail.id, m.detail.isRun
	}
	return w
}

// pageRows returns how many rows a page has.
func (m *model) pageRows() int { return max(m.rows(), fewestRows) }

// refresh reads immediately, or after the reading in progress.
func (m *model) refresh() tea.Cmd {
	if m.reading {
		m.again = true
		return nil
	}
	m.reading = true
	return m.read()
}

// onTick reads a live app, and checks whether a stopped app is back.
func (m *model) onTick() tea.Cmd {
	wait := m.opts.Refresh
	if !m.live {
		wait = max(wait, stoppedRefresh)
	}
	next := m.after(wait, tick{})
	switch {
	case m.reading || m.width == 0:
		return next
	case !m.live && !m.at.IsZero():
		m.reading = true
		return tea.Batch(next, m.probe())
	case m.detail != nil && m.detail.job != nil && len(m.detail.job.Payload) > largePayload:
		return next
	}
	return tea.Batch(next, m.refresh())
}

// finish ends a reading, and begins another one if it was requested in the meantime.
func (m *model) finish() tea.Cmd {
	again := m.again
	m.reading, m.again = false, false
	if again {
		return m.refresh()
	}
	return nil
}

// take shows a reading.
func (m *model) take(r reading) tea.Cmd {
	m.err = r.err
	if r.err != nil {
		m.live = false // the screen shows an earlier state
		return m.finish()
	}
	m.stats, m.at, m.live = r.stats, r.at, r.live()
	m.add(m.link.takeNotices())
	m.rates.add(r.stats, r.at)
	now := m.want()
	switch {
	case !r.want.job.IsZero():
		if m.detail != nil && m.detail.id == r.want.job {
			m.takeDetail(r)
		}
	case r.want.glance:
	case r.want.pane == now.pane && r.want.from == now.from && r.want.at == now.at && r.want.filter.String() == now.filter.String():
		if m.pane == queuesPane || m.pane == runsPane {
			m.runs = r.runs
		}
		for p, page := range r.pages {
			if m.pane == queuesPane {
				m.glimpses[p].take(page, cursor{}, len(page.rows))
			} else if m.lists[p].take(page, r.want.at, m.pageRows()) {
				m.again = true
			}
		}
	}
	return m.finish()
}

func (m *model) takeDetail(r reading) {
	if m.detail.err = r.jobErr; r.jobErr != nil {
		return
	}
	if r.run != nil {
		m.detail.showRun(r.run, r.at, m.opts.UTC)
	} else {
		m.detail.show(r.job, r.at, m.opts.UTC)
	}
}

// queueOrders are the orders of queues. The first is the order in which they got their first
// jobs.
var queueOrders = []struct {
	name string
	less func(a, b *pawl.QueueStats) int
}{
	{"first job", nil},
	{"ready", func(a, b *pawl.QueueStats) int { return b.Ready - a.Ready }},
	{"dead", func(a, b *pawl.QueueStats) int { return b.Dead - a.Dead }},
	{"oldest", func(a, b *pawl.QueueStats) int {
		switch {
		case a.Oldest.IsZero() == b.Oldest.IsZero():
			return a.Oldest.Compare(b.Oldest)
		case a.Oldest.IsZero():
			return 1
		}
		return -1
	}},
	{"name", func(a, b *pawl.QueueStats) int { return strings.Compare(a.Name, b.Name) }},
}

// queues returns the queues that match the filter, sorted.
func (m *model) queues() []pawl.QueueStats {
	all := m.filter.queues(m.stats.Queues)
	if less := queueOrders[m.sort].less; less != nil {
		slices.SortStableFunc(all, func(a, b pawl.QueueStats) int { return less(&a, &b) })
	}
	return all
}

// queueRowAt returns the row of the selected queue, or the first row if it is missing.
func (m *model) queueRowAt(queues []pawl.QueueStats) int {
	return max(slices.IndexFunc(queues, func(q pawl.QueueStats) bool { return q.Name == m.queue }), 0)
}
