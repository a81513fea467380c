package bolt

import (
	"sync"

	"github.com/gopawl/pawl"
)

// maxSeen limits how many damaged rows are logged, and remembered as logged.
const maxSeen = 1000

// damageLog logs each damaged row that a durable transaction skipped, and logs it only once. Transactions of the
// scheduler and of the app use it, on different goroutines.
type damageLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

// report logs the damage that is not logged yet.
func (d *damageLog) report(log pawl.Logger, damage []error) {
	for _, err := range damage {
		if d.isNew(err.Error()) {
			log.Error("a damaged row is passed over", "error", err)
		}
	}
}

func (d *damageLog) isNew(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[text] || len(d.seen) >= maxSeen {
		return false
	}
	if d.seen == nil {
		d.seen = make(map[string]bool)
	}
	d.seen[text] = true
	return true
}
