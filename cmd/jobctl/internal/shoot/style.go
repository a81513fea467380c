package main

import (
	"fmt"
	"strconv"
	"strings"
)

// style is how a cell looks: colors are numbers of the palette from 1; 0 is the terminal's own
// color.
type style struct {
	fore, back           int
	bold, faint, reverse bool
}

// The colors of a dark terminal.
const (
	background = "#1b1f27"
	foreground = "#d7dce5"
)

var palette = [16]string{
	"#1b1f27", "#ef6b73", "#8fce72", "#e5c07b", "#61afef", "#c678dd", "#56c2d0", "#d7dce5",
	"#6b7280", "#ff8f96", "#a9e18c", "#f2d395", "#85c5ff", "#dc9bf0", "#7fdbe6", "#ffffff",
}

// set applies the parameters of one sequence.
func (s *style) set(parameters string) {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		code, _ := strconv.Atoi(codes[i]) // an empty parameter is 0
		switch {
		case code == 0:
			*s = style{}
		case code == 1:
			s.bold = true
		case code == 2:
			s.faint = true
		case code == 7:
			s.reverse = true
		case code == 22:
			s.bold, s.faint = false, false
		case code == 27:
			s.reverse = false
		case code >= 30 && code <= 37:
			s.fore = code - 30 + 1
		case code == 39:
			s.fore = 0
		case code >= 40 && code <= 47:
			s.back = code - 40 + 1
		case code == 49:
			s.back = 0
		case code >= 90 && code <= 97:
			s.fore = code - 90 + 9
		case code >= 100 && code <= 107:
			s.back = code - 100 + 9
		case (code == 38 || code == 48) && i+2 < len(codes) && codes[i+1] == "5":
			n, _ := strconv.Atoi(codes[i+2])
			if i += 2; code == 38 {
				s.fore = n + 1
			} else {
				s.back = n + 1
			}
		}
	}
}

// colors returns the text and background colors.
func (s style) colors() (fore, back string) {
	fore, back = foreground, background
	if s.fore > 0 {
		fore = colorOf(s.fore - 1)
	}
	if s.back > 0 {
		back = colorOf(s.back - 1)
	}
	if s.reverse {
		fore, back = back, fore
	}
	if s.faint {
		fore = between(fore, back)
	}
	return fore, back
}

// colorOf returns one of the 256 colors of a terminal: sixteen of the palette, a cube of 6 x 6 x
// 6, and grays.
func colorOf(n int) string {
	switch {
	case n < 16:
		return palette[max(n, 0)]
	case n < 232:
		level := func(n int) int { return []int{0, 95, 135, 175, 215, 255}[n%6] }
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6), level(n))
	}
	grey := min(8+10*(n-232), 255)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}

// between returns a color between a and b, a little closer to a.
func between(a, b string) string {
	var mixed strings.Builder
	mixed.WriteByte('#')
	for i := 1; i < 7; i += 2 {
		from, _ := strconv.ParseInt(a[i:i+2], 16, 32)
		to, _ := strconv.ParseInt(b[i:i+2], 16, 32)
		fmt.Fprintf(&mixed, "%02x", (3*from+2*to)/5)
	}
	return mixed.String()
}
