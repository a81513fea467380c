package admin

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Names of the query parameters of a list.
const (
	paramState   = "state"
	paramQueue   = "queue"
	paramKind    = "kind"
	paramReason  = "reason"
	paramDied    = "died_since"
	paramDiedBy  = "died_before"
	paramOrder   = "order"  // created or died
	paramNewest  = "newest" // true
	paramQueues  = "queues" // this and the next ones may be there several times
	paramKinds   = "kinds"
	paramStates  = "states"
	paramReasons = "reasons"
	paramError   = "error"
	paramPayload = "payload"
	paramSince   = "since"
	paramUntil   = "until"
	paramBefore  = "before"
	paramPart    = "part"   // of an ID
	paramDetail  = "detail" // summary, ids, whole or payloads
	paramAfter   = "after"
	paramLimit   = "limit"
	paramForm    = "form" // of payloads: none, size, auto, json, hex or base64
)

var (
	detailNames = []string{Summary: "summary", IDs: "ids", Whole: "whole", Payloads: "payloads"}
	formNames   = []string{PayloadNone: "none", PayloadSize: "size", PayloadAuto: "auto", PayloadJSON: "json", PayloadHex: "hex", PayloadBase64: "base64"}
)

// valuesOf writes a query as parameters.
func valuesOf(q Query) url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		paramState: string(q.State), paramQueue: q.Queue, paramKind: q.Kind, paramReason: string(q.Reason),
		paramError: q.Error, paramAfter: q.After, paramOrder: string(q.Order),
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, t := range map[string]time.Time{
		paramDied: q.DiedSince, paramDiedBy: q.DiedBefore, paramSince: q.Since, paramUntil: q.Until, paramBefore: q.Before,
	} {
		if !t.IsZero() {
			v.Set(name, Stamp{t}.String())
		}
	}
	if q.Newest {
		v.Set(paramNewest, "true")
	}
	for name, values := range map[string][]string{
		paramPayload: q.Payload, paramQueues: q.Queues, paramKinds: q.Kinds, paramStates: textsOf(q.States), paramReasons: textsOf(q.Reasons),
	} {
		if len(values) > 0 {
			v[name] = values
		}
	}
	if q.Detail != Summary {
		v.Set(paramDetail, nameOf(detailNames, int(q.Detail)))
	}
	if q.Limit != 0 {
		v.Set(paramLimit, strconv.Itoa(q.Limit))
	}
	return v
}

// queryOf reads what valuesOf writes. An unknown parameter is refused, since leaving out a
// condition chooses more jobs than were meant.
func queryOf(v url.Values) (q Query, form PayloadForm, err error) {
	p := params{values: v}
	q = Query{
		Filter: Filter{
			Filter: pawl.Filter{
				State: pawl.State(p.text(paramState)), Queue: p.text(paramQueue), Kind: p.text(paramKind),
				Reason: pawl.Reason(p.text(paramReason)), DiedSince: p.time(paramDied), DiedBefore: p.time(paramDiedBy),
				Order: pawl.Order(p.text(paramOrder)), Newest: p.oneOf(paramNewest, []string{"", "true"}, 0) == 1,
			},
			Queues: p.texts(paramQueues), Kinds: p.texts(paramKinds),
			States: named[pawl.State](p.texts(paramStates)), Reasons: named[pawl.Reason](p.texts(paramReasons)),
			Error: p.text(paramError), Payload: p.texts(paramPayload),
			Since: p.time(paramSince), Until: p.time(paramUntil), Before: p.time(paramBefore),
		},
		Detail: Detail(p.oneOf(paramDetail, detailNames, int(Summary))),
		After:  p.text(paramAfter),
		Limit:  p.number(paramLimit),
	}
	form = PayloadForm(p.oneOf(paramForm, formNames, int(PayloadAuto)))
	if q.Detail != Whole && q.Detail != Payloads {
		form = PayloadNone
	}
	return q, form, p.end()
}

func textsOf[T ~string](values []T) []string { return named[string](values) }

// named are texts as values of another type of texts.
func named[To, From ~string](values []From) (all []To) {
	for _, value := range values {
		all = append(all, To(value))
	}
	return all
}

// checkParams refuses a query where there is none, and one that cannot be read, of which
// net/http would silently drop a part: without a condition more jobs would be chosen than were
// meant.
func checkParams(raw string, may bool) error {
	if raw != "" && !may {
		return invalid("parameter", "%q: this path has none", clip(raw))
	}
	if _, err := url.ParseQuery(raw); err != nil {
		return invalid("parameter", "%q: %v", clip(raw), err)
	}
	return nil
}

// params reads parameters, each once, and keeps the first error.
type params struct {
	values url.Values
	known  []string
	err    error
}

func (p *params) texts(name string) []string {
	p.known = append(p.known, name)
	return p.values[name]
}

func (p *params) text(name string) string {
	all := p.texts(name)
	if len(all) > 1 {
		p.fail(invalid(name, "it is given %d times", len(all)))
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func (p *params) time(name string) time.Time {
	text := p.text(name)
	if text == "" {
		return time.Time{}
	}
	var stamp Stamp
	quoted, err := json.Marshal(text)
	if err == nil {
		err = stamp.UnmarshalJSON(quoted)
	}
	if err != nil {
		p.fail(invalid(name, "%q is no time such as 2006-01-02T15:04:05Z", clip(text)))
	}
	return stamp.Time
}

func (p *params) number(name string) int {
	text := p.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p.fail(invalid(name, "%q is no number of 0 or more", clip(text)))
	}
	return n
}

func (p *params) oneOf(name string, names []string, standard int) int {
	text := p.text(name)
	if text == "" {
		return standard
	}
	at := slices.Index(names, text)
	if at < 0 {
		p.fail(invalid(name, "%q is none of %s", clip(text), strings.Join(names, ", ")))
	}
	return max(at, 0)
}

func (p *params) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// end is the first error, also that there is a parameter which nobody read.
func (p *params) end() error {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(p.known, name) {
			slices.Sort(p.known)
			p.fail(invalid("parameter", "%q is unknown; there are %s", clip(name), strings.Join(p.known, ", ")))
		}
	}
	return p.err
}

// nameOf is names[i], or a number that the app refuses.
func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}
