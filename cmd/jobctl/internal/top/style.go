package top

import "charm.land/lipgloss/v2"

// The colors are the sixteen that the user's theme defines. Color never carries information
// alone.
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
