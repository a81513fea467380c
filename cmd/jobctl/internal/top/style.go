package top

import "charm.land/lipgloss/v2"

// The colours are those sixteen that the user's own theme gives a meaning to. Nothing is
// told by colour alone.
var (
	unstyled = lipgloss.NewStyle()
	bold     = unstyled.Bold(true)
	faint    = unstyled.Faint(true)
	red      = unstyled.Foreground(lipgloss.Red)
	green    = unstyled.Foreground(lipgloss.Green)
	yellow   = unstyled.Foreground(lipgloss.Yellow)
	cyan     = unstyled.Foreground(lipgloss.Cyan)
	reverse  = unstyled.Reverse(true)
)
