package top

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// press is one key.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch name {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	m.note, m.failed = "", nil
	switch {
	case m.asked != nil:
		return m.answer(name)
	case m.typing != nil:
		return m.typed(key)
	}
	switch name {
	case "q":
		return tea.Quit
	case "r":
		m.lists[m.pane].restart()
		return m.refresh()
	case "esc", "backspace":
		return m.back()
	case "?":
		if m.help == nil {
			m.help = &pager{title: "help", lines: helpLines}
		} else {
			m.help = nil
		}
		return nil
	}
	switch {
	case m.help != nil:
		m.scroll(m.help, name)
		return nil
	case m.detail != nil:
		m.scroll(&m.detail.pager, name)
		switch one := m.detail.row(); {
		case one == nil || m.detail.err != nil:
		case m.detail.isRun:
			m.askRuns(name, []row{*one}, nil)
		default:
			m.askJobs(name, []row{*one}, nil)
		}
		return nil
	}
	return m.browse(name)
}

// answer handles the key after a question. Only y confirms.
func (m *model) answer(key string) tea.Cmd {
	q := m.asked
	m.asked = nil
	if key != "y" && key != "Y" {
		m.note = "nothing was changed"
		return nil
	}
	return m.act(q)
}

// back closes the help, the detail or the filter.
func (m *model) back() tea.Cmd {
	switch {
	case m.help != nil:
		m.help = nil
		return nil
	case m.detail != nil:
		m.detail = nil
		return m.refresh()
	case len(m.lists[m.pane].marked) > 0:
		m.lists[m.pane].marked = nil
		return nil
	case !m.filter.empty():
		return m.setFilter(filter{})
	}
	return nil
}

// browse handles a key in one of the panes.
func (m *model) browse(key string) tea.Cmd {
	switch key {
	case "tab", "right", "l":
		return m.goTo(m.beside(1))
	case "shift+tab", "left", "h":
		return m.goTo(m.beside(len(panes) - 1))
	case "1", "2", "3", "4", "5":
		return m.goTo(pane(key[0] - '1'))
	case "/":
		text := m.filter.String()
		m.typing = &text
		return nil
	case "enter":
		return m.enter()
	case "P":
		if queues := m.queues(); m.pane == queuesPane && len(queues) > 0 {
			m.askPause(queues[m.queueRowAt(queues)])
		} else {
			m.say(errors.New("queues are paused in the first pane"))
		}
		return nil
	}
	l := &m.lists[m.pane]
	switch key {
	case "s":
		return m.sortAgain()
	case "m":
		l.mark()
		return nil
	case "M":
		l.markAll()
		return nil
	}
	if current, ok := l.current(); ok && m.pane != queuesPane {
		ask := m.askJobs
		if m.pane == runsPane {
			ask = m.askRuns
		}
		if ask(key, l.chosen(current), l.unseen()) {
			return nil
		}
	}
	return m.move(key)
}

// sortAgain switches to the next order of the pane.
func (m *model) sortAgain() tea.Cmd {
	if m.pane != queuesPane {
		m.say(errors.New("this pane has one order; queues are sorted in the first pane"))
		return nil
	}
	m.sort = (m.sort + 1) % len(queueOrders)
	return nil
}

// beside returns the pane that is the given number of steps to the right. It skips
// workflow runs if there are none.
func (m *model) beside(steps int) pane {
	next := pane((int(m.pane) + steps) % len(panes))
	if next == runsPane && m.runs == (workflow.Counts{}) {
		next = pane((int(next) + steps) % len(panes))
	}
	return next
}

// goTo shows another pane, from its beginning if it was not shown before.
func (m *model) goTo(p pane) tea.Cmd {
	m.pane = p
	return m.refresh()
}

// enter opens the jobs of a queue, or the detail of one job.
func (m *model) enter() tea.Cmd {
	if m.pane == queuesPane {
		queues := m.queues()
		if len(queues) == 0 {
			return nil
		}
		m.pane = runningPane
		return m.setFilter(filter{queue: queues[m.queueRowAt(queues)].Name})
	}
	job, ok := m.lists[m.pane].current()
	if !ok {
		return nil
	}
	m.detail = &detail{id: job.Job.ID, isRun: job.run != nil, pager: pager{title: "job " + job.Job.ID.String()}}
	if job.run != nil {
		m.detail.title = "run " + job.Job.ID.String()
	}
	return m.refresh()
}

// setFilter applies a filter to all panes.
func (m *model) setFilter(f filter) tea.Cmd {
	m.filter = f
	m.lists, m.glimpses = [len(panes)]list{}, [len(panes)]list{}
	return m.refresh()
}

// step returns how far a key goes: in rows, or pages of them.
func (m *model) step(key string, page int) (rows int, ok bool) {
	page = max(page-1, 1) // one row of the previous page stays visible
	switch key {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup", "b", "ctrl+b":
		return -page, true
	case "pgdown", "space", "ctrl+f":
		return page, true
	case "home", "g":
		return -endOfPage, true
	case "end", "G":
		return endOfPage, true
	}
	return 0, false
}

func (m *model) scroll(p *pager, key string) {
	if by, ok := m.step(key, m.bodyHeight()); ok {
		p.scroll(by, m.width, m.bodyHeight())
	}
}

// move goes up and down in a pane.
func (m *model) move(key string) tea.Cmd {
	by, ok := m.step(key, m.rows())
	if !ok {
		return nil
	}
	if m.pane == queuesPane {
		if queues := m.queues(); len(queues) > 0 {
			m.queue = queues[max(min(m.queueRowAt(queues)+by, len(queues)-1), 0)].Name
		}
		return nil
	}
	l := &m.lists[m.pane]
	switch {
	case by == -endOfPage && l.first(), by != -endOfPage && l.move(by):
		return m.refresh()
	}
	return nil
}

// typed handles a key while the filter is typed.
func (m *model) typed(key tea.KeyPressMsg) tea.Cmd {
	text := *m.typing
	switch key.String() {
	case "esc":
		m.typing = nil
	case "enter":
		f, err := parseFilter(text)
		if err != nil {
			m.say(err)
			return nil
		}
		m.typing = nil
		return m.setFilter(f)
	case "backspace":
		if runes := []rune(text); len(runes) > 0 {
			text = string(runes[:len(runes)-1])
		}
		*m.typing = text
	case "ctrl+u":
		*m.typing = ""
	case "ctrl+w":
		text = strings.TrimRight(text, " ")
		*m.typing = text[:strings.LastIndexByte(text, ' ')+1]
	default:
		if len(text) < 4*pawl.MaxNameBytes {
			*m.typing += key.Text
		}
	}
	return nil
}
