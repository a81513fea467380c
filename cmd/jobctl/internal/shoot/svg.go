package main

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Sizes of the picture, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18
	fontSize   = 14
	baseline   = 13.5 // of a line, from its top
	margin     = 16
)

// picture draws a terminal's screen, including color sequences, as SVG. It is at least that many
// columns wide. Text is text, so that it is sharp, searchable and can be copied. Block
// characters of bars are drawn, because fonts differ in them.
func picture(title, screen string, columns int) []byte {
	lines := cells(screen)
	for _, line := range lines {
		columns = max(columns, len(line))
	}
	width, height := float64(columns)*cellWidth+2*margin, len(lines)*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %d" width="%.1f" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d" xml:space="preserve">`+"\n", fontSize)
	for y, line := range lines {
		for x := 0; x < len(line); {
			end := x + 1
			for end < len(line) && line[end].style == line[x].style && !isBlock(line[x].text) && !isBlock(line[end].text) {
				end++
			}
			drawRun(&b, line[x:end], x, y)
			x = end
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return []byte(b.String())
}

// drawRun draws cells of one style.
func drawRun(b *strings.Builder, run []cell, column, row int) {
	x, y := margin+float64(column)*cellWidth, margin+row*cellHeight
	width := float64(len(run)) * cellWidth
	s := run[0].style
	fore, back := s.colors()
	if back != background {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, width, cellHeight, back)
	}
	if isBlock(run[0].text) {
		drawBlock(b, []rune(run[0].text)[0], x, y, fore)
		return
	}
	weight := ""
	if s.bold {
		weight = ` font-weight="bold"`
	}
	for at := 0; at < len(run); {
		end := endOfWords(run, at)
		var text strings.Builder
		for _, c := range run[at:end] {
			text.WriteString(c.text)
		}
		if strings.TrimSpace(text.String()) != "" {
			// The length aligns the columns with any font.
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
				x+float64(at)*cellWidth, float64(y)+baseline, float64(end-at)*cellWidth, fore, weight, escaped(text.String()))
		}
		at = end
	}
}

// endOfWords returns where a text ends that begins at a cell, or at the space before one: two
// spaces separate columns, and each column must begin in its place.
func endOfWords(run []cell, at int) int {
	end := at + 1
	if run[at].text == " " {
		for end < len(run) && run[end].text == " " {
			end++
		}
		return end
	}
	for end < len(run) && (run[end].text != " " || end+1 < len(run) && run[end+1].text != " ") {
		end++
	}
	return end
}

const (
	lowerEighth, fullBlock, leftEighth, shade = '▁', '█', '▏', '░'
)

func isBlock(text string) bool {
	for _, r := range text {
		return r >= lowerEighth && r <= shade
	}
	return false
}

// drawBlock draws a character that fills a part of its cell.
func drawBlock(b *strings.Builder, r rune, x float64, y int, fill string) {
	width, height, opacity := cellWidth, float64(cellHeight), ""
	switch {
	case r <= fullBlock: // from below, in eighths
		height *= float64(r-lowerEighth+1) / 8
	case r <= leftEighth: // from the left, in eighths
		width *= float64(leftEighth-r+1) / 8
	case r == shade:
		opacity = ` opacity="0.35"`
	}
	fmt.Fprintf(b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"%s/>`+"\n",
		x, float64(y+cellHeight)-height, width, height, fill, opacity)
}

// cell is the content of one column. An empty cell follows a wide character.
type cell struct {
	text  string
	style style
}

// cells splits a screen into cells. The effect of a sequence lasts until the next one, across
// lines.
func cells(screen string) [][]cell {
	var lines [][]cell
	var now style
	for line := range strings.Lines(strings.TrimRight(screen, "\n")) {
		var row []cell
		for rest := strings.TrimRight(line, "\n"); rest != ""; {
			if sequence, found := strings.CutPrefix(rest, "\x1b["); found {
				parameters, after, found := strings.Cut(sequence, "m")
				if !found {
					break
				}
				now.set(parameters)
				rest = after
				continue
			}
			r := []rune(rest)[0]
			text := string(r)
			row = append(row, cell{text, now})
			for range ansi.StringWidth(text) - 1 {
				row = append(row, cell{"", now})
			}
			rest = rest[len(text):]
		}
		lines = append(lines, row)
	}
	return lines
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
