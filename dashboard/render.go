package dashboard

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

//go:embed assets
var assets embed.FS

// templates are the pages by name. Each has the layout. They are parsed for the first page, since a program that
// shows none, such as most calls of jobctl, should start fast.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	for _, name := range []string{
		"overview", "queues", "throughput", "jobs", "job", "found", "limits", "keys", "key", "groups", "group", "failures", "runs", "run", "verify", "schedules", "schedule",
		"workers", "file", "plan", "result", "problem",
	} {
		all[name] = template.Must(template.New(name).Funcs(functions).ParseFS(assets, "assets/layout.html", "assets/"+name+".html"))
	}
	return all
})

// functions are what templates call.
var functions = template.FuncMap{
	"link":   link,
	"num":    number,
	"bytes":  size,
	"limits": limitsText,
	"span":   span,
	"short":  func(id pawl.ID) string { s := id.String(); return s[len(s)-8:] },
	"cut":    func(n int, s string) string { return ellipsis.Truncate(s, n) },
	"stamp":  stamp,
	"exact":  func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"ago":    ago,
	"dict":   func(now time.Time, t time.Time) moment { return moment{now, t} },
	"rate":   func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) },
	"text":   func(v any) string { return fmt.Sprint(v) },
}

// moment is a time and the present.
type moment struct{ Now, At time.Time }

// link returns the address of a page with parameters: pairs of a name and a value. It omits pairs with an
// empty value.
func link(page string, pairs ...any) string {
	values := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			values.Add(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// number writes a number in groups of three digits, separated by thin spaces.
func number(v any) string {
	s := fmt.Sprint(v)
	digits := strings.TrimPrefix(s, "-")
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return s[:len(s)-len(strings.TrimPrefix(s, "-"))] + strings.Join(append([]string{digits}, parts...), "\u202f")
}

// size writes a number of bytes.
func size(v any) string {
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil || n < 0 {
		return "unknown"
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0") + " " + unit
		}
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TiB"
}

// span writes a duration in its two largest units.
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
	}
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// ago writes a time as seen from now.
func ago(m moment) string {
	switch d := m.Now.Sub(m.At); {
	case m.At.IsZero():
		return "never"
	case d >= 0 && d < time.Second, d < 0 && d > -time.Second:
		return "now"
	case d > 0:
		return span(d.Round(time.Second)) + " ago"
	default:
		return "in " + span((-d).Round(time.Second))
	}
}

// command returns a command line of jobctl. It quotes each word for a shell.
func (q *request) command(words ...string) string {
	target := q.d.opts.Target
	if target == "" {
		place := "QUEUE"
		if s, err := q.Stats(); err == nil {
			place = cmp.Or(s.Path, place)
		}
		target = "--db " + quoted(place)
	}
	line := "jobctl " + target
	for _, word := range words {
		line += " " + quoted(word)
	}
	return line
}

// quoted returns a word as a POSIX shell reads it. Control characters become a space, since a shell
// line must stay one line.
func quoted(word string) string {
	word = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, word)
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r))
	}) < 0
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func invalid(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
