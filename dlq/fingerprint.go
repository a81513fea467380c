package dlq

import (
	"regexp"
	"strings"

	"github.com/gopawl/pawl/internal/ellipsis"
)

// maxFingerprint is the maximum length of a fingerprint in bytes.
const maxFingerprint = 256

// Fingerprint returns what errors with one cause have in common: the first line of an error with
// its variable parts replaced, at most 256 bytes. A number becomes <n>; a UUID, a hexadecimal number
// or a mix of letters and digits such as ord_8fK2x9 <id>; an IPv4 address with or without a port
// <addr>; a time <time>; a duration <duration>; and a quoted text "…".
func Fingerprint(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < maxFingerprint; {
		inWord := i > 0 && isWord(text[i-1])
		if end := quoteEnd(text, i); !inWord && end > 0 {
			b.WriteString(`"…"`)
			i = end
			continue
		}
		if !isWord(text[i]) || inWord {
			b.WriteByte(text[i])
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
	return strings.ToValidUTF8(ellipsis.Truncate(b.String(), maxFingerprint), "")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isWord reports whether c is part of a word. Bytes beyond ASCII count as letters.
func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

// quoteEnd returns the end of the quoted text that begins at i, or 0. An apostrophe before a letter
// does not end a quotation.
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

// variables are the variable parts that consist of several words, in order of precedence. Times are
// those of RFC 3339, package time and package log.
var variables = []struct {
	mark    string
	pattern *regexp.Regexp
}{
	{"<id>", regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`)},
	{"<time>", regexp.MustCompile(`^(?:(?:\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d)[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?` +
		`(?:(?:Z| ?[+-]\d{4}(?: UTC)?|[+-]\d\d:\d\d| UTC)\b)?(?: m=[+-]\d[\d.]*)?`)},
	{"<time>", regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d)\b`)},
	{"<addr>", regexp.MustCompile(`^\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`)},
	{"<duration>", regexp.MustCompile(`^(?:\d+(?:\.\d*)?(?:ns|us|µs|μs|ms|s|m|h))+\b`)},
}

// variable finds one of the variables at the beginning of a word.
func variable(text string) (end int, mark string) {
	candidates := variables
	switch {
	case isDigit(text[0]):
	case len(text) > 8 && text[8] == '-':
		candidates = variables[:1] // a UUID may begin with a letter
	default:
		return 0, ""
	}
	for _, v := range candidates {
		if at := v.pattern.FindStringIndex(text); at != nil && (at[1] == len(text) || text[at[1]] < 0x80) {
			return at[1], v.mark
		}
	}
	return 0, ""
}

var (
	number     = regexp.MustCompile(`^\d+(?:[.,]\d+)*`) // such as 1.5 and 1,000
	digitGroup = regexp.MustCompile(`\d+`)
)

// word reads a word and returns its replacement.
func word(text string) (end int, mark string) {
	numbers, hex := 0, true
	for end < len(text) && isWord(text[end]) {
		if isDigit(text[end]) {
			numbers++
		}
		hex = hex && isHex(text[end])
		end++
	}
	switch {
	case numbers == 0:
		return end, text[:end]
	case numbers == end:
		return len(number.FindString(text)), "<n>"
	case strings.HasPrefix(text, "0x"), hex && end >= 6, numbers > 1 && end >= 8:
		return end, "<id>"
	}
	return end, digitGroup.ReplaceAllString(text[:end], "<n>")
}
