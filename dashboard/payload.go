package dashboard

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// maxValue limits the text of one value on a page in bytes.
const maxValue = 64 << 10

// hiddenText is written in place of a text that the user may not see, and hidden in place of a value.
const (
	hiddenText = "(hidden)"
	hidden     = `"` + hiddenText + `"`
)

// secretWords are parts of the names of fields that usually have secrets.
var secretWords = []string{"passw", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "authorization", "cookie", "credential", "private_key", "privatekey", "private-key"}

// SecretField reports whether a field with a name usually has a secret. The name, in lower case, is or contains one of
// these: password, secret, token, api_key, authorization, cookie, credential, private_key.
func SecretField(name string) bool {
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// value is an encoded value as a page shows it.
type value struct {
	Text  string
	Note  string // "" if the text is the whole value
	Bytes int
}

// runValueOf is valueOf for a value of a run, which a codec of the app may have encoded.
func (q *request) runValueOf(b []byte) *value {
	if v := q.valueOf(b); v == nil || !workflow.Encoded(b) {
		return v
	}
	return &value{Bytes: len(b), Text: fmt.Sprintf("encoded, %d bytes", len(b)), Note: "the codec of the app has encoded it"}
}

// namedValueOf is runValueOf for a value with a name, which may be that of a hidden field.
func (q *request) namedValueOf(name string, b []byte) *value {
	v := q.runValueOf(b)
	if v != nil && q.d.hides(name) {
		return &value{Text: hidden}
	}
	return v
}

// hides reports whether the values of a field are hidden.
func (d *Dashboard) hides(name string) bool { return d.opts.Hide(strings.ToLower(name)) }

// valueOf writes a value as JSON without the hidden fields; nil if the user may not see it or there is none.
func (q *request) valueOf(b []byte) *value {
	if len(b) == 0 || !q.Can(ViewPayload) {
		return nil
	}
	v := &value{Bytes: len(b)}
	text, whole, err := admin.DecodeJSON(b, maxValue)
	if err != nil {
		v.Text, v.Note = hex.EncodeToString(b[:min(len(b), 256)]), "not MessagePack; in hex"
		return v
	}
	v.Text = q.d.redacted(text)
	if !whole {
		v.Note = "only the beginning is shown"
	}
	return v
}

// redacted writes JSON with indentation and without the values of hidden fields. Numbers stay unchanged. It ends where
// the JSON ends or is truncated.
func (d *Dashboard) redacted(text []byte) string {
	r := &redactor{hide: d.opts.Hide, in: json.NewDecoder(strings.NewReader(string(text)))}
	r.in.UseNumber()
	if err := r.value(0, true); err != nil {
		r.out.WriteString(" …")
	}
	return r.out.String()
}

// redactor copies JSON.
type redactor struct {
	hide func(name string) bool
	in   *json.Decoder
	out  strings.Builder
}

func (r *redactor) line(depth int, show bool) {
	if show {
		r.out.WriteString("\n" + strings.Repeat("  ", depth))
	}
}

func (r *redactor) write(s string, show bool) {
	if show {
		r.out.WriteString(s)
	}
}

// value copies one value, or reads past it.
func (r *redactor) value(depth int, show bool) error {
	t, err := r.in.Token()
	if err != nil {
		return err
	}
	open, nested := t.(json.Delim)
	if !nested {
		r.write(literal(t), show)
		return nil
	}
	object := open == '{'
	r.write(open.String(), show)
	n := 0
	for ; r.in.More(); n++ {
		if n > 0 {
			r.write(",", show)
		}
		r.line(depth+1, show)
		visible := show
		if object {
			name, err := r.in.Token()
			if err != nil {
				return err
			}
			r.write(literal(name)+": ", show)
			if key, _ := name.(string); r.hide(strings.ToLower(key)) {
				r.write(hidden, show)
				visible = false
			}
		}
		if err := r.value(depth+1, visible); err != nil {
			return err
		}
	}
	end, err := r.in.Token()
	if err != nil {
		return err
	}
	if n > 0 {
		r.line(depth, show)
	}
	r.write(fmt.Sprint(end), show)
	return nil
}

// literal writes a token that is not a bracket.
func literal(t json.Token) string {
	if n, ok := t.(json.Number); ok {
		return n.String()
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(t) // a string, a bool, or nil
	return strings.TrimSuffix(b.String(), "\n")
}

// checkTerms rejects terms on the payload from users who may not see it. It also rejects terms on hidden fields, since
// matches would reveal their values.
func (q *request) checkTerms(terms []string) error {
	if len(terms) == 0 {
		return nil
	}
	if err := q.authorize(ViewPayload); err != nil {
		return err
	}
	for _, term := range terms {
		if strings.Contains(term, `\`) {
			return invalid("payload", "%q has a backslash, which this page does not take; use jobctl", clipped(term))
		}
		for _, part := range strings.FieldsFunc(strings.ToLower(term), func(r rune) bool { return strings.ContainsRune(`."=~!`, r) }) {
			if q.d.opts.Hide(part) {
				return invalid("payload", "%q names a hidden field", clipped(term))
			}
		}
	}
	return admin.ParsePayload(terms)
}
