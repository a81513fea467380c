package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

const (
	shownPayload = 4 << 10 // bytes of a payload's text that job show prints
	oneLine      = 76      // JSON up to here stays on one line
)

// viewOfPayload is a payload for programs: whole, in the form asked for.
func viewOfPayload(payload []byte, form string) payloadView {
	v := payloadView{SizeBytes: len(payload), Encoding: "unknown"}
	value, _, err := messagePackJSON(payload, math.MaxInt)
	if err == nil {
		v.Encoding = "messagepack"
	}
	if err == nil && (form == "auto" || form == "json") {
		v.Value = value
	}
	if form == "hex" || form == "auto" && err != nil {
		text := hex.EncodeToString(payload)
		v.Hex = &text
	}
	return v
}

// showPayload prints a payload for people: cut, below a line with its size.
func (a *app) showPayload(payload []byte, form string) {
	size := plural(len(payload), "byte")
	if form == "none" || len(payload) == 0 {
		a.fact("payload", "%s", size)
		return
	}
	value, whole, err := messagePackJSON(payload, 4*shownPayload)
	switch {
	case form == "hex" || form == "auto" && err != nil:
		a.fact("payload", "%s", size)
		a.showHex(payload)
	case err != nil:
		a.fact("payload", "%s, not MessagePack: %s", size, escape(err.Error()))
	default:
		a.fact("payload", "%s of MessagePack", size)
		a.showJSON(value, whole)
	}
}

// showJSON prints compact JSON, which is not whole when its end is missing.
func (a *app) showJSON(value []byte, whole bool) {
	if whole && len(value) > oneLine {
		var indented bytes.Buffer
		if json.Indent(&indented, value, "", "  ") == nil {
			value = indented.Bytes()
		}
	}
	text, fits := clip(string(value), shownPayload)
	fmt.Fprintf(a.stdout, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
	if !whole || !fits {
		a.cutNote("at " + byteSize(shownPayload))
	}
}

// showHex prints whole lines of a dump.
func (a *app) showHex(payload []byte) {
	const perLine, lineLength = 16, 79
	shown := payload[:min(len(payload), shownPayload/lineLength*perLine)]
	for line := range strings.Lines(hex.Dump(shown)) {
		fmt.Fprint(a.stdout, "  ", line)
	}
	if len(shown) < len(payload) {
		a.cutNote(fmt.Sprintf("behind the first %d bytes", len(shown)))
	}
}

func (a *app) cutNote(where string) {
	fmt.Fprintf(a.stdout, "  … cut %s; -o json prints all of it\n", where)
}
