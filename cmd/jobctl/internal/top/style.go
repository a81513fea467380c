package top

import "charm.land/lipgloss/v2"

// The colours are those sixteen that the user's own theme gives a meaning to. Nothing is
// told by colour alone.
var (
	plain   = lipgloss.NewStyle()
	bold    = plain.Bold(true)
	faint   = plain.Faint(true)
	red     = plain.Foreground(lipgloss.Red)
	green   = plain.Foreground(lipgloss.Green)
	yellow  = plain.Foreground(lipgloss.Yellow)
	cyan    = plain.Foreground(lipgloss.Cyan)
	reverse = plain.Reverse(true)
)
