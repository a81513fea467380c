package workflow

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"

	"github.com/gopawl/pawl"
)

// CipherKeyBytes is the length of the keys of a [Cipher].
const CipherKeyBytes = 32

// Cipher is a [Codec] that encrypts and authenticates values by AES-256-GCM. A stored value has the ID of its key, so
// keys can rotate. It does not name the run that it belongs to, so anybody who can write to the store can exchange
// values.
type Cipher struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewCipher returns a cipher that encrypts with the key named current and decrypts with all of keys, which maps
// IDs to random keys of [CipherKeyBytes]. To rotate, add the new key everywhere, then make it current, and drop
// the old one when no run that began before is kept. One key must not encrypt more than 2^32 values.
// It returns a [pawl.InvalidError] for a bad ID or key.
func NewCipher(current string, keys map[string][]byte) (*Cipher, error) {
	c := &Cipher{current: current, keys: make(map[string]cipher.AEAD, len(keys))}
	for id, key := range keys {
		if id == "" || len(id) > pawl.MaxKeyBytes {
			return nil, &pawl.InvalidError{Field: "key ID", Reason: fmt.Sprintf("one of %d bytes, 1 to %d are allowed", len(id), pawl.MaxKeyBytes)}
		}
		if len(key) != CipherKeyBytes {
			return nil, &pawl.InvalidError{Field: "key", Reason: fmt.Sprintf("that of ID %q has %d bytes, %d are needed", id, len(key), CipherKeyBytes)}
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if c.keys[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	if c.keys[current] == nil {
		return nil, &pawl.InvalidError{Field: "key ID", Reason: fmt.Sprintf("%q is to encrypt and is not among the keys", current)}
	}
	return c, nil
}

// Encode implements [Codec].
func (c *Cipher) Encode(value []byte) ([]byte, error) {
	header := append([]byte{byte(len(c.current))}, c.current...)
	return c.keys[c.current].Seal(header, nil, value, header), nil
}

// Decode implements [Codec].
func (c *Cipher) Decode(stored []byte) ([]byte, error) {
	if len(stored) == 0 || len(stored) <= int(stored[0]) {
		return nil, fmt.Errorf("%d bytes are too few; another codec wrote them", len(stored))
	}
	header, rest := stored[:1+stored[0]], stored[1+stored[0]:]
	key := c.keys[string(header[1:])]
	if key == nil {
		return nil, fmt.Errorf("no key has the ID %q; give the cipher that key", header[1:])
	}
	value, err := key.Open(nil, nil, rest, header)
	if err != nil {
		return nil, fmt.Errorf("key %q does not fit, or the value is damaged: %w", header[1:], err)
	}
	return value, nil
}
