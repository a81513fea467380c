package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

const (
	shownPayload = 4 << 10 // bytes of a payload's text that job show prints
	oneLine      = 76      // JSON up to this length stays on one line
)

// showPayload prints a payload for people: truncated, after a line with its size.
func (a *app) showPayload(name string, payload []byte, form string) {
	size := plural(len(payload), "byte")
	if form == "none" || len(payload) == 0 {
		a.fact(name, "%s", size)
		return
	}
	if form == "base64" {
		a.fact(name, "%s", size)
		text, fits := truncate(base64.StdEncoding.EncodeToString(payload[:min(len(payload), shownPayload)]), shownPayload)
		fmt.Fprintf(a.stdout, "  %s\n", text)
		if !fits {
			a.cutNote("at " + plain.Size(shownPayload))
		}
		return
	}
	value, whole, err := admin.DecodeJSON(payload, 4*shownPayload)
	switch {
	case form == "hex" || form == "auto" && err != nil:
		a.fact(name, "%s", size)
		a.showHex(payload)
	case err != nil:
		a.fact(name, "%s, not MessagePack: %s", size, plain.Text(err.Error()))
	default:
		a.fact(name, "%s of MessagePack", size)
		a.showJSON(value, whole)
	}
}

// showJSON prints compact JSON, which is incomplete if whole is false. It contains no character
// that a terminal obeys: admin.DecodeJSON escapes them.
func (a *app) showJSON(value []byte, whole bool) {
	if whole && len(value) > oneLine {
		var indented bytes.Buffer
		if json.Indent(&indented, value, "", "  ") == nil {
			value = indented.Bytes()
		}
	}
	text, fits := truncate(string(value), shownPayload)
	fmt.Fprintf(a.stdout, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
	if !whole || !fits {
		a.cutNote("at " + plain.Size(shownPayload))
	}
}

// showHex prints complete lines of a dump.
func (a *app) showHex(payload []byte) {
	const perLine, lineLength = 16, 79
	shown := payload[:min(len(payload), shownPayload/lineLength*perLine)]
	for line := range strings.Lines(hex.Dump(shown)) {
		fmt.Fprint(a.stdout, "  ", line)
	}
	if len(shown) < len(payload) {
		a.cutNote(fmt.Sprintf("after the first %d bytes", len(shown)))
	}
}

func (a *app) cutNote(where string) {
	fmt.Fprintf(a.stdout, "  … cut %s; -o json prints all of it\n", where)
}
