package workflow

import (
	"encoding/binary"

	"github.com/gopawl/pawl"
)

// carriedStreams are the streams of a run whose parts are checked.
type carriedStreams struct {
	heads map[string]streamRow
	items map[string]streamRow // what the items say
}

// head checks the row of a stream.
func (c *carriedStreams) head(row Row) error {
	name := string(row.Key)
	if err := validName("stream", name); err != nil {
		return err
	}
	head, err := parseStream(row.Key, row.Value)
	if err != nil {
		return noRows("value", "the row of stream %q: %v", name, err)
	}
	if c.heads == nil {
		c.heads = make(map[string]streamRow)
	}
	if c.heads[name] = head; len(c.heads) > MaxStreams {
		return noRows("rows", "a run has more than %d streams", MaxStreams)
	}
	return nil
}

// item checks an item, and that it follows the one before it.
func (c *carriedStreams) item(row Row) error {
	name, number, ok := cutItemKey(row.Key)
	if !ok {
		return noRows("key", "one of %s is no name and number", row.In)
	}
	if err := validName("stream", name); err != nil {
		return err
	}
	item, err := parseItem(number, row.Value)
	switch {
	case err != nil:
		return noRows("value", "an item of stream %q: %v", name, err)
	case len(item.Step) > maxLong || item.Attempt > item.N || (item.Step == "") != (item.Attempt == 0):
		return noRows("value", "item %d of stream %q is of a step that is none", item.N, name)
	}
	if c.items == nil {
		c.items = make(map[string]streamRow)
	}
	got, known := c.items[name]
	switch {
	case !known:
		got.First = item.N
	case item.N != got.Last+1:
		return noRows("rows", "stream %q has item %d behind item %d", name, item.N, got.Last)
	}
	got.Last = item.N
	got.Bytes += int64(len(pawl.ID{}) + rowBytes(row.Key, row.Value))
	c.items[name] = got
	return nil
}

// whole reports whether each stream has exactly the items that its row
// describes.
func (c *carriedStreams) whole() bool {
	for name, head := range c.heads {
		if c.items[name] != head {
			return false
		}
	}
	return len(c.items) == len(c.heads)
}

// cutItemKey cuts the key of an item without its run.
func cutItemKey(key []byte) (name string, number []byte, ok bool) {
	const behind = 1 + 8
	at := len(key) - behind
	if at < 1 || key[at] != 0 {
		return "", nil, false
	}
	return string(key[:at]), key[at+1:], true
}

// streams requires that each stream has exactly the items that its row
// describes.
func (c *check) streams(id pawl.ID) {
	heads, items := make(map[string]streamRow), make(map[string]streamRow)
	c.look(tableStreams, id[:], func(key, content []byte, damage error) {
		if damage != nil {
			return // reported by belong
		}
		head, err := parseStream(key[len(id):], content)
		if err != nil {
			c.wrong("run %s: %v", id, err)
			return
		}
		heads[string(key[len(id):])] = head
	})
	c.look(tableItems, id[:], func(key, content []byte, damage error) {
		name, number, ok := cutItemKey(key[len(id):])
		if !ok {
			c.wrong("run %s: key %x of table %s", id, key, tableItems)
			return
		}
		got, known := items[name]
		n := binary.BigEndian.Uint64(number)
		if !known {
			got.First = n
		}
		got.Last = n
		got.Bytes += int64(rowBytes(key, content))
		if items[name] = got; damage != nil {
			return
		}
		if _, err := parseItem(number, content); err != nil {
			c.wrong("run %s: stream %q: %v", id, name, err)
		}
	})
	for name, head := range heads {
		if items[name] != head {
			c.wrong("run %s: stream %q has items %d to %d of %d bytes, and its row says %d to %d of %d bytes", id, name,
				items[name].First, items[name].Last, items[name].Bytes, head.First, head.Last, head.Bytes)
		}
	}
	for name := range items {
		if _, known := heads[name]; !known {
			c.wrong("run %s: stream %q has items and no row", id, name)
		}
	}
}
