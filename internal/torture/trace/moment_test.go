package trace

import "fmt"

func (m moment) String() string {
	c := m.call
	if m.begin {
		return fmt.Sprintf("begin %s %s", c.Name, c.Args)
	}
	text := fmt.Sprintf("end %s %s", c.Name, c.Args)
	if c.Known {
		text += fmt.Sprintf(" %d", c.Result)
	} else {
		text += " unknown"
	}
	if c.Injected {
		text += " injected"
	}
	if c.clipped {
		text += " clipped"
	}
	return text
}
