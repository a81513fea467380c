package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// HeaderEdits is the header of a job whose payload an operator has replaced. It names the earlier
// payloads; see [EditsOf].
const HeaderEdits = "pawl-edits"

// maxEdits is how many earlier payloads a job names.
const maxEdits = 16

// PastPayload is a payload that a job had before somebody replaced it.
type PastPayload struct {
	Until   time.Time `json:"until"`
	Bytes   int       `json:"bytes"`
	SHA256  string    `json:"sha256"`            // in hex
	Payload []byte    `json:"payload,omitempty"` // nil if the headers of the job had no room for it
}

// EditsOf returns the earlier payloads of a job, oldest first. A job names the last 16, fewer
// if its headers have no room.
func EditsOf(e *pawl.Envelope) (all []PastPayload) {
	if json.Unmarshal([]byte(e.Headers[HeaderEdits]), &all) != nil {
		return nil
	}
	return all
}

// CheckEdit returns an error if the payload of a job cannot be replaced: [pawl.ErrNotEligible] for a job
// that is leased, completed, or signed, and the error of [CheckBatch] for a payload that is too large.
func CheckEdit(e *pawl.Envelope, payload []byte, maxPayload int) error {
	switch {
	case e.State != pawl.Ready && e.State != pawl.Delayed && e.State != pawl.Dead:
		return NotEligible(e.ID, "it is %s, not waiting or dead", e.State)
	case len(e.Signature) > 0:
		return NotEligible(e.ID, "key %q signs its payload; let the app enqueue another job", e.KeyID)
	case len(payload) == 0:
		return invalid("payload", "it is empty; a payload without a value is the MessagePack nil")
	}
	_, err := CheckBatch([]*pawl.Envelope{{Kind: e.Kind, Payload: payload}}, maxPayload)
	return err
}

// Edit replaces the payload of a job, and names the old one, which must be in e, in a header. It returns
// a [*pawl.InvalidError] if the other headers leave no room for the name.
func Edit(e *pawl.Envelope, payload []byte, now time.Time) error {
	all := append(EditsOf(e), PastPayload{now.UTC().Truncate(time.Second), len(e.Payload), SumOf(e.Payload), e.Payload})
	all = all[max(0, len(all)-maxEdits):]
	headers := maps.Clone(e.Headers)
	if headers == nil {
		headers = make(map[string]string)
	}
	delete(headers, HeaderEdits)
	room := pawl.MaxHeaderBytes - len(HeaderEdits)
	for key, value := range headers {
		room -= len(key) + len(value)
	}
	for dropped := 0; ; {
		var b strings.Builder
		if err := json.NewEncoder(&b).Encode(all); err != nil { // a year after 9999
			return invalid("time", "%v", err)
		}
		headers[HeaderEdits] = strings.TrimSuffix(b.String(), "\n")
		switch {
		case len(headers[HeaderEdits]) <= room && len(headers) <= pawl.MaxHeaders:
			e.Headers, e.Payload = headers, payload
			return nil
		case dropped < len(all): // the newest stay readable the longest
			all[dropped].Payload = nil
			dropped++
		case len(all) > 1 && len(headers) <= pawl.MaxHeaders:
			all, dropped = all[1:], dropped-1
		default:
			return invalid("headers", "the %d headers of the job leave no room to name its old payload", len(headers)-1)
		}
	}
}

// PayloadIs is the condition that a job has a payload whose SHA-256 in hex is Sum.
type PayloadIs struct{ Sum string }

// Matches implements [pawl.Condition].
func (c PayloadIs) Matches(e *pawl.Envelope) bool { return SumOf(e.Payload) == c.Sum }

// SumOf returns the SHA-256 of a payload in hex.
func SumOf(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}
