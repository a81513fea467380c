package dlq

import (
	"strings"
	"unicode/utf8"
)

// maxFingerprint bounds a fingerprint in bytes.
const maxFingerprint = 256

// Fingerprint is what errors of one cause have in common: the first line of an error with its
// variable parts replaced, cut at 256 bytes. A number becomes <n>, a UUID, a hexadecimal number or a
// mix of letters and digits such as ord_8fK2x9 <id>, an IPv4 address with or without a port
// <addr>, a time <time>, a duration <duration>, and a quoted text "…".
func Fingerprint(text string) string {
	text = strings.TrimSpace(text)
	text, _, _ = strings.Cut(text, "\n")
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < maxFingerprint; {
		inWord := i > 0 && isWord(text[i-1])
		c := text[i]
		if end := quoteEnd(text, i); !inWord && end > 0 {
			b.WriteString(`"…"`)
			i = end
			continue
		}
		if !isWord(c) || inWord {
			b.WriteByte(c)
			i++
			continue
		}
		end, mark := variable(text[i:])
		if mark == "" {
			end, mark = word(text[i:])
		}
		b.WriteString(mark)
		i += end
	}
	return strings.ToValidUTF8(cutText(b.String()), "")
}

func cutText(text string) string {
	if len(text) <= maxFingerprint {
		return text
	}
	end := maxFingerprint - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isWord reports whether c is part of a word. Bytes of characters beyond ASCII are letters.
func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' || c >= utf8.RuneSelf }

// quoteEnd is behind the quoted text that begins at i, 0 if none does. An apostrophe ends a
// quote only if no letter follows.
func quoteEnd(text string, i int) int {
	quote := text[i]
	if quote != '"' && quote != '\'' && quote != '`' {
		return 0
	}
	for end := i + 1; end < len(text); end++ {
		switch {
		case text[end] == '\\' && quote == '"':
			end++
		case text[end] == quote && (end+1 == len(text) || !isWord(text[end+1])):
			return end + 1
		}
	}
	return 0
}

// variable finds a time, an address, a duration or a UUID at the beginning of text.
func variable(text string) (end int, mark string) {
	if end := uuidEnd(text); end > 0 {
		return end, "<id>"
	}
	if !isDigit(text[0]) {
		return 0, ""
	}
	if end := timeEnd(text); end > 0 {
		return end, "<time>"
	}
	if end := addressEnd(text); end > 0 {
		return end, "<addr>"
	}
	if end := durationEnd(text); end > 0 {
		return end, "<duration>"
	}
	return 0, ""
}

// match is how many bytes of text fit a pattern, in which 0 is a digit, x a hexadecimal digit,
// and every other byte itself; 0 if it does not fit.
func match(text, pattern string) int {
	if len(text) < len(pattern) {
		return 0
	}
	for i := range len(pattern) {
		c := text[i]
		switch pattern[i] {
		case '0':
			if !isDigit(c) {
				return 0
			}
		case 'x':
			if !isHex(c) {
				return 0
			}
		default:
			if c != pattern[i] {
				return 0
			}
		}
	}
	return len(pattern)
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// ends reports whether no word goes on at i.
func ends(text string, i int) bool { return i >= len(text) || !isWord(text[i]) }

func uuidEnd(text string) int {
	if end := match(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"); end > 0 && ends(text, end) {
		return end
	}
	return 0
}

// timeEnd is behind a date or a time of day, with the fraction and the zone that follow, as RFC
// 3339, package time and package log write them.
func timeEnd(text string) int {
	end := max(match(text, "0000-00-00"), match(text, "0000/00/00"))
	clock := end
	if end > 0 && clock < len(text) && (text[clock] == 'T' || text[clock] == ' ') {
		clock++
	}
	n := match(text[clock:], "00:00:00")
	if n == 0 {
		if end > 0 && ends(text, end) {
			return end
		}
		return 0
	}
	end = clock + n
	if end < len(text) && (text[end] == '.' || text[end] == ',') {
		if n := digits(text[end+1:]); n > 0 {
			end += 1 + n
		}
	}
	for _, zone := range []string{"Z", " +0000 UTC", " -0000 UTC", "+00:00", "-00:00", " +0000", " -0000", " UTC"} {
		if n := match(text[end:], zone); n > 0 && ends(text, end+n) {
			end += n
			break
		}
	}
	for _, monotonic := range []string{" m=+0", " m=-0"} {
		if n := match(text[end:], monotonic); n > 0 {
			end += n
			for end < len(text) && (isDigit(text[end]) || text[end] == '.') {
				end++
			}
		}
	}
	return end
}

// digits is how many digits text begins with.
func digits(text string) (n int) {
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// addressEnd is behind an IPv4 address and its port.
func addressEnd(text string) (end int) {
	for part := range 4 {
		n := digits(text[end:])
		if n == 0 || n > 3 {
			return 0
		}
		if end += n; part == 3 {
			break
		}
		if end == len(text) || text[end] != '.' {
			return 0
		}
		end++
	}
	if end < len(text) && text[end] == ':' {
		if n := digits(text[end+1:]); n > 0 {
			end += 1 + n
		}
	}
	if !ends(text, end) {
		return 0
	}
	return end
}

// durationEnd is behind a duration as package time writes it.
func durationEnd(text string) (end int) {
	for {
		n := digits(text[end:])
		if n == 0 {
			break
		}
		at := end + n
		if at < len(text) && text[at] == '.' {
			at += 1 + digits(text[at+1:])
		}
		unit := 0
		for _, u := range []string{"ns", "us", "µs", "μs", "ms", "s", "m", "h"} {
			if strings.HasPrefix(text[at:], u) {
				unit = len(u)
				break
			}
		}
		if unit == 0 {
			return 0
		}
		end = at + unit
	}
	if end == 0 || !ends(text, end) {
		return 0
	}
	return end
}

// word reads a word, and returns what it is in a fingerprint.
func word(text string) (end int, mark string) {
	letters, numbers, hex := 0, 0, true
	for end < len(text) && isWord(text[end]) {
		switch c := text[end]; {
		case isDigit(c):
			numbers++
		default:
			letters++
			hex = hex && isHex(c)
		}
		end++
	}
	switch {
	case numbers == 0:
		return end, text[:end]
	case letters == 0:
		for end+1 < len(text) && (text[end] == '.' || text[end] == ',') && isDigit(text[end+1]) { // 1.5 and 1,000
			end += 1 + digits(text[end+1:])
		}
		return end, "<n>"
	case strings.HasPrefix(text, "0x"), hex && end >= 6, numbers > 1 && end >= 8:
		return end, "<id>"
	}
	var b strings.Builder
	for i := 0; i < end; {
		if n := digits(text[i:end]); n > 0 {
			b.WriteString("<n>")
			i += n
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return end, b.String()
}
