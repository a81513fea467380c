package bolt

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// Each leaf page of each bucket is lost once: the jobs without bytes on that page are
// unchanged, and all others are not.
func TestSalvageWithoutALeaf(t *testing.T) {
	t.Parallel()
	race.SkipLone(t)
	k := newDamagedKit(t, true)
	for _, name := range slices.Sorted(maps.Keys(k.leaves)) {
		lost := slices.Sorted(maps.Keys(k.leaves[name]))
		if len(lost) > 3 { // the middle one, the first, and the last
			lost = []uint64{lost[len(lost)/2], lost[0], lost[len(lost)-1]}
		}
		for _, page := range lost {
			if page == k.roots["pawl"] {
				continue // it is more than a leaf
			}
			found, result := k.salvage(t, func(b []byte) []byte {
				clear(k.run(b, page)[16:])
				b[page*uint64(k.meta.PageSize)] ^= 0xff
				return b
			})
			require.False(t, result.Sound())
			for id, want := range k.jobs {
				if k.records[id] == page || k.states[id] == page || k.payloads[id] == page || want.State == pawl.Leased || want.IdempotencyKey != "" {
					continue
				}
				require.Equal(t, want.State, found[id].State, "%s, page %d lost", name, page)
				if name != "history" {
					require.Equal(t, want.History, found[id].History, "%s, page %d lost", name, page)
				}
			}
		}
	}
}

// The effect of losing one page of each kind on the jobs of the file.
func TestSalvageWithoutAPage(t *testing.T) {
	race.SkipLone(t)
	all := func(r Salvaged) int { return r.Kept + r.Reattached }
	kits := map[bool]*damagedKit{true: newDamagedKit(t, true), false: newDamagedKit(t, false)}
	for _, test := range []struct {
		rule    string
		cleanly bool
		lost    func(k *damagedKit) []uint64
		check   func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged)
	}{
		{"a lost branch of the records loses nothing: rows in the tree vouch for them", false,
			func(k *damagedKit) []uint64 { return []uint64{k.roots["jobs"]} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, len(k.jobs), r.Reattached)
				for id, want := range k.jobs {
					require.Equal(t, want.State, found[id].State)
				}
			}},
		{"a lost branch of the payloads makes dead jobs, which have their payloads", true,
			func(k *damagedKit) []uint64 { return []uint64{k.roots["payloads"]} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, len(k.payloads), r.NoPayload)
				for id := range k.payloads {
					require.Equal(t, pawl.Dead, found[id].State)
					require.Equal(t, pawl.ReasonCorrupt, found[id].Death.Reason)
					require.Contains(t, found[id].LastError(), "its payload was found outside the tree")
				}
			}},
		{"a lost branch of the ready rows: the records tell", true,
			func(k *damagedKit) []uint64 { return []uint64{k.roots["ready"]} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, len(k.jobs), r.Kept+r.Placed)
				require.Positive(t, r.Placed)
			}},
		{"the list of free pages is no loss", true,
			func(k *damagedKit) []uint64 { return []uint64{k.meta.Freelist} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, len(k.jobs), r.Kept)
				require.True(t, r.Sound())
			}},
		{"without the newest meta page the file is read by the other", true,
			func(k *damagedKit) []uint64 { return []uint64{k.meta.Page} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, int(1-k.meta.Page), r.Meta)
				require.Equal(t, len(k.jobs), all(r), "the last transaction wrote the list of free pages alone")
			}},
		{"without the page that leads to the queue the file is read by the other meta page", true,
			func(k *damagedKit) []uint64 { return []uint64{k.meta.Root} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.True(t, r.Older || r.Meta >= 0)
			}},
		{"without both meta pages every job is a dead job that says so", true,
			func(k *damagedKit) []uint64 { return []uint64{0, 1} },
			func(t *testing.T, k *damagedKit, found map[pawl.ID]*pawl.Envelope, r Salvaged) {
				require.Equal(t, -1, r.Meta)
				require.GreaterOrEqual(t, r.Unreached, len(k.jobs), "%+v", r)
				for id := range k.jobs {
					require.Equal(t, pawl.Dead, found[id].State)
					require.Contains(t, found[id].LastError(), "may have been done already")
				}
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			k := kits[test.cleanly]
			found, result := k.salvage(t, func(b []byte) []byte {
				for _, page := range test.lost(k) {
					require.NotZero(t, page+k.roots["jobs"])
					clear(k.page(b, page))
				}
				return b
			})
			test.check(t, k, found, result)
		})
	}
}

// A page of records to which only the branch of another bucket refers loses nothing.
func TestSalvageOfAPageInAnotherBucket(t *testing.T) {
	k := newDamagedKit(t, true)
	for _, bucket := range []string{"payloads", "app"} {
		t.Run(bucket, func(t *testing.T) {
			_, result := k.salvage(t, func(b []byte) []byte {
				page := slices.Sorted(maps.Keys(k.leaves["jobs"]))[0]
				clear(k.page(b, k.roots["jobs"]))
				binary.NativeEndian.PutUint64(k.page(b, k.roots[bucket])[16+8:], page) // the first child
				return b
			})
			require.Zero(t, result.NoRecord)
		})
	}
}

// The file is truncated at any length that leaves a queue in it.
func TestSalvageOfACutFile(t *testing.T) {
	k := newDamagedKit(t, true)
	step := 28 / race.Fewer(4) // in pages
	for cut := int(k.meta.Pages) - 1; cut > 8; cut -= step {
		n := cut*int(k.meta.PageSize) + cut*37%int(k.meta.PageSize)
		k.trySalvage(t, func(b []byte) []byte { return b[:n] })
	}
}

// trySalvage is salvage for damage that may leave nothing of the queue.
func (k *damagedKit) trySalvage(t *testing.T, damage func([]byte) []byte) {
	t.Helper()
	b := damage(slices.Clone(k.sound))
	for _, page := range k.records {
		if k.intact(b, page) {
			k.salvage(t, damage)
			return
		}
	}
}

// Random pages are overwritten in the ways in which disks and programs do that: every untouched
// record is in the new file.
func TestSalvageOfRandomDamage(t *testing.T) {
	t.Parallel()
	race.SkipLone(t)
	for _, cleanly := range []bool{true, false} {
		k := newDamagedKit(t, cleanly)
		for seed := range uint64(4 * len(damages)) {
			random := rand.New(rand.NewPCG(seed, 7))
			way := damages[int(seed)%len(damages)]
			t.Logf("seed %d: %s", seed, way.name)
			k.trySalvage(t, func(b []byte) []byte {
				random = rand.New(rand.NewPCG(seed, 7))
				for range 1 + random.IntN(6) {
					way.do(random, b, k.page(b, random.Uint64N(k.meta.Pages)))
				}
				return b
			})
		}
	}
}

// damages are ways to damage a page of a file.
var damages = []struct {
	name string
	do   func(r *rand.Rand, file, page []byte)
}{
	{"random bytes", func(r *rand.Rand, _, page []byte) {
		for i := range page {
			page[i] = byte(r.Uint32())
		}
	}},
	{"zeros", func(_ *rand.Rand, _, page []byte) { clear(page) }},
	{"flipped bits", func(r *rand.Rand, _, page []byte) {
		for range 1 + r.IntN(20) {
			page[r.IntN(len(page))] ^= 1 << r.IntN(8)
		}
	}},
	{"flipped bits of the header and the elements", func(r *rand.Rand, _, page []byte) {
		for range 1 + r.IntN(4) {
			page[r.IntN(200)] ^= 1 << r.IntN(8)
		}
	}},
	{"a number that is set", func(r *rand.Rand, _, page []byte) {
		at := r.IntN(50) * 4
		binary.NativeEndian.PutUint32(page[at:], []uint32{0, 1, 2, 0xffff, 1 << 31, 1<<32 - 1, r.Uint32N(200)}[r.IntN(7)])
	}},
	{"a page in the place of another", func(r *rand.Rand, file, page []byte) {
		other := r.IntN(len(file)/len(page)) * len(page)
		copy(page, file[other:])
	}},
	{"half a page", func(_ *rand.Rand, _, page []byte) { clear(page[len(page)/2:]) }},
}
