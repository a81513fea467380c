package pawl

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"github.com/gopawl/pawl/internal/ellipsis"
)

// MinSecretBytes is the least length of a secret: the length of the hash, as RFC 2104 recommends.
const MinSecretBytes = sha256.Size

const maxSignature = 64

// Keyring signs jobs and verifies their signatures. A signature is an HMAC-SHA256 of what
// never changes in a job: ID, origin queue, kind, payload, idempotency key, time of creation,
// and key ID. Attempts, schedule, history, headers, and the present queue are not signed, so
// a requeued job still verifies. For dead jobs that were forwarded see [Keyring.Forwarded].
//
// A signature proves who made a job, but a copy of a signed job verifies too. Within
// one file, IDs are unique. To stop copies from elsewhere, give the job an
// idempotency key, which is signed.
type Keyring struct {
	current   string
	keys      map[string][]byte
	forwarded bool // the idempotency key may be in a header
}

// NewKeyring makes a keyring that signs with the key named current and verifies with
// all of keys, which maps key IDs to secrets of [MinSecretBytes] or more. To rotate,
// add the new key everywhere, then make it current, and drop the old one when no job
// that it signed is left.
func NewKeyring(current string, keys map[string][]byte) (*Keyring, error) {
	k := &Keyring{current: current, keys: make(map[string][]byte, len(keys))}
	for id, secret := range maps.All(keys) {
		switch {
		case id == "" || len(id) > MaxKeyBytes:
			return nil, invalid("key ID", "%q does not have 1 to %d bytes", ellipsis.Abbreviate(id, 32), MaxKeyBytes)
		case len(secret) < MinSecretBytes:
			return nil, invalid("secret", "that of key %q has %d bytes, %d or more are needed", id, len(secret), MinSecretBytes)
		}
		k.keys[id] = append([]byte(nil), secret...)
	}
	if k.keys[current] == nil {
		return nil, invalid("key ID", "%q is to sign and is not among the keys", ellipsis.Abbreviate(current, 32))
	}
	return k, nil
}

// Sign signs a job that is about to be enqueued. It completes what it signs: ID,
// Queue, Origin and Created. It refuses a job with [Replace], which may take over
// the ID of another job.
func (k *Keyring) Sign(e *Envelope) error {
	if err := e.validate(); err != nil {
		return err
	}
	if len(k.keys[k.current]) == 0 {
		return invalid("keyring", "it has no key to sign with; make it with NewKeyring")
	}
	if e.OnConflict == Replace {
		return invalid("conflict", "a signed job cannot replace another: its ID is signed")
	}
	now := time.Now()
	if e.ID.IsZero() {
		e.ID = NewID(now)
	}
	if e.Queue == "" {
		e.Queue = DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	if e.Created.IsZero() {
		e.Created = now.Round(0)
	}
	e.KeyID = k.current
	e.Signature = signature(k.keys[k.current], e, e.IdempotencyKey)
	return nil
}

// Verify returns [ErrSignature] unless e has a valid signature by one of the keys.
func (k *Keyring) Verify(e *Envelope) error {
	secret, known := k.keys[e.KeyID]
	switch {
	case len(e.Signature) == 0:
		return fmt.Errorf("%w: the job is not signed", ErrSignature)
	case !known:
		return fmt.Errorf("%w: no key has the ID %q", ErrSignature, e.KeyID)
	}
	key := e.IdempotencyKey
	if had := e.Headers[HeaderIdempotencyKey]; k.forwarded && key == "" {
		key = had
	} else if key == "" && had != "" && hmac.Equal(e.Signature, signature(secret, e, had)) {
		return fmt.Errorf("%w: the job has lost its idempotency key, because it was forwarded after its death; use Keyring.Forwarded for the worker of this queue", ErrSignature)
	}
	if !hmac.Equal(e.Signature, signature(secret, e, key)) {
		return fmt.Errorf("%w: it does not match the job", ErrSignature)
	}
	return nil
}

// HeaderIdempotencyKey is the header that keeps the former idempotency key of a forwarded dead job. In
// its new queue, the job has no idempotency key: otherwise the success of one forwarded job would remove
// the others with that key without an attempt.
const HeaderIdempotencyKey = "pawl-dead-idempotency-key"

// Forwarded returns a keyring for the worker of a queue that dead jobs are forwarded to. If
// a job has no idempotency key, the keyring takes it from the header [HeaderIdempotencyKey].
// Do not use it for other workers: anybody who can enqueue could set that header on a copy
// of a signed job, and idempotency would not stop the copy.
func (k *Keyring) Forwarded() *Keyring {
	other := *k
	other.forwarded = true
	return &other
}

// signature hashes each field after its length, so that no two jobs have the same bytes.
func signature(secret []byte, e *Envelope, idempotencyKey string) []byte {
	h := hmac.New(sha256.New, secret)
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field([]byte("pawl job 1"))
	field(e.ID[:])
	field([]byte(e.Origin))
	field([]byte(e.Kind))
	field(e.Payload)
	field([]byte(idempotencyKey))
	created := binary.BigEndian.AppendUint64(nil, uint64(e.Created.Unix()))
	field(binary.BigEndian.AppendUint32(created, uint32(e.Created.Nanosecond())))
	field([]byte(e.KeyID))
	return h.Sum(nil)
}

// Signing returns an [Enqueuer] that signs a copy of every job and enqueues it in q.
func (k *Keyring) Signing(q Enqueuer) Enqueuer { return signer{k, q} }

type signer struct {
	keys *Keyring
	to   Enqueuer
}

// Enqueue implements [Enqueuer].
func (s signer) Enqueue(ctx context.Context, jobs ...*Envelope) ([]Enqueued, error) {
	signed, copies := make([]*Envelope, len(jobs)), make(map[*Envelope]*Envelope, len(jobs))
	for i, e := range jobs {
		if err := e.validate(); err != nil {
			return nil, err
		}
		own, twice := copies[e]
		if !twice { // the queue refuses an envelope that is in the batch twice
			c := *e
			own = &c
			if err := s.keys.Sign(own); err != nil {
				return nil, err
			}
			copies[e] = own
		}
		signed[i] = own
	}
	return s.to.Enqueue(ctx, signed...)
}
