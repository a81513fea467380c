package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// panels are the cases in the chart, in its order.
var panels = []struct{ name, title string }{
	{"producer", "One producer"},
	{"producers", "64 producers"},
	{"bulk", "Bulk of 1 000 a call"},
	{"drain", "Drained by 16 workers"},
	{"steady", "64 producers and 16 workers"},
	{"latency/p50", "From enqueue to start, median"},
}

// Sizes in the chart. Letters are as wide as those of the widest usual font.
const (
	chartMargin  = 24
	chartHead    = 92
	panelWidth   = 486
	panelGap     = 28
	panelTitle   = 30
	rowHeight    = 20
	barHeight    = 13
	labelWidth   = 152 // of the names, on the left
	numberWidth  = 76  // of the figures, on the right
	charWidth    = 6.9
	panelColumns = 2
)

// The chart has a background of its own, since it is shown on light and dark pages.
const chartStyle = `text { font-family: sans-serif; font-size: 12px; fill: #3d4450 }
.heading { font-size: 19px; font-weight: bold; fill: #1b1f27 }
.title { font-size: 14px; font-weight: bold; fill: #1b1f27 }
.small, .number { fill: #5b6472 }
.pawl-text { font-weight: bold; fill: #1b1f27 }
.pawl { fill: #d9622b }
.ceiling { fill: #f3d9cb; stroke: #d9622b }
.peer { fill: #4a7ba6 }
.weaker { fill: url(#weaker); stroke: #4a7ba6 }
.bounds { stroke: #1b1f27; stroke-opacity: 0.55 }
.base { stroke: #c9ced6 }`

// chart draws the cases that every system runs as an SVG: a panel for each case, a bar for
// each system.
func chart(w io.Writer, r comparison) {
	names, weaker := r.barNames()
	all := groups(r.results)
	panelHeight := panelTitle + rowHeight*len(names) + panelGap
	lines := (len(panels) + panelColumns - 1) / panelColumns
	width := 2*chartMargin + panelColumns*panelWidth + (panelColumns-1)*panelGap
	height := chartHead + lines*panelHeight - panelGap + chartMargin

	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="name">
<title id="name">Pawl beside other queues and the ceiling: jobs a second, and latency</title>
<style>
%s
</style>
<defs>
<pattern id="weaker" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="5" height="5" fill="#eef3f8"/><rect width="1.6" height="5" fill="#4a7ba6"/>
</pattern>
</defs>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#fcfcfd" stroke="#d5d9e0"/>
`, width, height, width, height, chartStyle, width-1, height-1)

	rounds := fmt.Sprintf("median of %d rounds, the line spans all of them", r.rounds)
	if r.rounds == 1 {
		rounds = "one round"
	}
	chartText(w, "heading", chartMargin, 36, "One run, jobs of 100 B: "+rounds)
	x := chartMargin
	for _, key := range []struct{ class, text string }{
		{"pawl", "pawl"},
		{"ceiling", "what bare bbolt can do"},
		{"peer", "peer that syncs each commit too"},
		{"weaker", "peer that promises less"},
	} {
		fmt.Fprintf(w, `<rect class="%s" x="%d.5" y="55.5" width="22" height="%d"/>`+"\n", key.class, x, barHeight)
		chartText(w, "small", float64(x+30), 66, key.text)
		x += 30 + int(charWidth*float64(len(key.text))) + 24
	}

	for i, panel := range panels {
		left := chartMargin + i%panelColumns*(panelWidth+panelGap)
		top := chartHead + i/panelColumns*panelHeight
		at := slices.IndexFunc(all, func(g group) bool { return g.name == panel.name })
		if at < 0 {
			chartText(w, "title", float64(left), float64(top+14), panel.title)
			chartText(w, "small", float64(left), float64(top+panelTitle+14), "not measured")
			continue
		}
		drawPanel(w, left, top, panel.title, all[at], names, weaker)
	}
	fmt.Fprintln(w, "</svg>")
}

// barNames are the systems that have a bar in each panel, and which of them promise less.
func (r comparison) barNames() (names []string, weaker map[string]bool) {
	weaker = make(map[string]bool)
	for _, s := range r.systems {
		if r.absent[s.Name] == nil {
			names = append(names, s.Name)
			weaker[s.Name] = s.Durability != system.Synced
		}
	}
	return names, weaker
}

func drawPanel(w io.Writer, left, top int, title string, g group, names []string, weaker map[string]bool) {
	chartText(w, "title", float64(left), float64(top+14), title)
	fmt.Fprintf(w, `<text class="small" x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
		left+panelWidth, top+14, escape(g.unit()+", "+better(g.unit())))

	zero := float64(left + labelWidth)
	scale := float64(panelWidth-labelWidth-numberWidth) / g.most()
	fmt.Fprintf(w, `<path class="base" d="M%.1f %dV%d"/>`+"\n",
		zero-0.5, top+panelTitle-4, top+panelTitle+rowHeight*len(names))
	for i, name := range names {
		class, emphasis := "peer", ""
		switch {
		case name == pawlName:
			class, emphasis = "pawl", " pawl-text"
		case name == ceilingName:
			class = "ceiling"
		case weaker[name]:
			class = "weaker"
		}
		y := float64(top + panelTitle + rowHeight*i)
		base := y + barHeight - 2.5 // of the letters, to stand in the middle of the bar
		fmt.Fprintf(w, `<text class="name%s" x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			emphasis, zero-8, base, escape(name))
		at := slices.IndexFunc(g.results, func(r *report.Result) bool { return r.System == name })
		if at < 0 {
			chartText(w, "small", zero+7, base, "no figure")
			continue
		}
		r := g.results[at]
		fmt.Fprintf(w, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%d"><title>%s: %s %s</title></rect>`+"\n",
			class, zero, y, max(r.Value*scale, 1.5), barHeight, escape(name), report.Number(r.Value), escape(g.unit()))
		if r.Max > r.Min {
			fmt.Fprintf(w, `<path class="bounds" d="M%.1f %.1fH%.1f"/>`+"\n", zero+r.Min*scale, y+barHeight/2.0, zero+r.Max*scale)
		}
		chartText(w, "number"+emphasis, zero+r.Max*scale+7, base, report.Number(r.Value))
	}
}

func chartText(w io.Writer, class string, x, y float64, text string) {
	fmt.Fprintf(w, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, escape(text))
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}
