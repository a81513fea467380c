package beanstalkd

import (
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/transport"
)

const maxTube = 200 // bytes of the name of a tube

// tube returns the name of the tube of a queue and a kind.
func (q *Queue) tube(queue, kind string) string {
	return q.opts.Prefix + "/" + names.Escape(queue) + "/" + names.Escape(kind)
}

// parseTube returns the queue and the kind of a tube; ok is false for one of somebody else.
func (q *Queue) parseTube(tube string) (queue, kind string, ok bool) {
	parts := strings.Split(tube, "/")
	if len(parts) != 3 || parts[0] != q.opts.Prefix {
		return "", "", false
	}
	return names.Unescape(parts[1]), names.Unescape(parts[2]), true
}

// names makes the names of tubes. The server also takes / and $, which are in use, and -, which must not come
// first.
var names = transport.Escaping{Mark: '$', Plain: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+;()"}

// serverPriority is what the server orders by: the smallest comes first.
func serverPriority(p int8) uint32 { return uint32(1<<31 - int64(p)) }

// maxSeconds is the longest delay of the server.
const maxSeconds = math.MaxUint32

// seconds rounds a delay up to what the server takes.
func seconds(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	return uint32(min((d-1)/time.Second+1, maxSeconds))
}
