package admin

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Options are the settings of a [Server]. A nil *Options, and every zero field, means the
// default.
type Options struct {
	// Name is what operators see as the name of the app. The default is that of the program.
	Name string

	// Logger gets a line for each stranger who was turned away, and what the handler logs.
	// The default is hclog.Default().
	Logger pawl.Logger
}

// Limits of a [Server]. A client that connects and asks nothing gives its seat to the next
// one, as soon as there are none left. A process that may have few files open has fewer seats.
const (
	maxConns      = 256
	minConns      = 8
	connGrace     = 100 * time.Millisecond
	headerTimeout = 5 * time.Second
	idleTimeout   = 30 * time.Second
	maxHeader     = 64 << 10
	closeGrace    = 2 * time.Second // in which requests come to their end when the server closes
)

// largestRest is how much a job has besides its payload, at most: a whole history of the longest
// errors, each byte of which JSON may write as six, and some fields.
const largestRest = 2*6*(pawl.HistoryKeepHead+pawl.HistoryKeepTail)*pawl.MaxErrorText + 1<<20

// Server serves a queue to operators of this machine; see [Serve].
type Server struct {
	place   place
	socket  os.FileInfo // as it was made, to remove no other
	note    os.FileInfo
	http    *http.Server
	limiter *limiter
	tally   *tally
	end     context.CancelFunc // of streams
	hurry   context.CancelFunc // of all requests
	served  chan struct{}      // closed when nobody is accepted any more
	close   sync.Once
	closeAs error

	stranger sync.Once // was logged
}

// served has the folders of the queues that this process serves.
var served sync.Map

// Serve has operators of this machine reach q while the app runs, by a socket in the folder
// <file>.admin beside the file, which is made and which nobody can enter but the user of
// this process and the superuser. [Open], and with it jobctl, finds it by a note there.
//
// Where the path of the socket would be longer than a system takes, the socket is in
// $XDG_RUNTIME_DIR/pawl, or else in pawl-<uid> below the folder for temporary files, and the
// note says so. What an app left that was killed is replaced.
//
// Call it right after bolt.Open, before the working directory changes, and Close it before
// the queue. If the queue is closed first nothing hangs, but a backup that is under way keeps
// the queue waiting until it is through, or its client is dropped.
//
// There is nothing on TCP: mount a [Handler] where an authentication of the app's stands in
// front. On Windows Serve returns errors.ErrUnsupported.
func Serve(q *bolt.Queue, opts *Options) (*Server, error) {
	s, err := serve(q, opts)
	if err != nil {
		return nil, fmt.Errorf("serve %s to operators: %w", q.Path(), err)
	}
	return s, nil
}

func serve(q *bolt.Queue, opts *Options) (_ *Server, err error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Name == "" {
		o.Name = programName()
	}
	if o.Logger == nil {
		o.Logger = hclog.Default()
	}
	at, err := placeOf(q.Path())
	if err != nil {
		return nil, err
	}
	if _, twice := served.LoadOrStore(at.folder, true); twice {
		return nil, errors.New("this process serves it already; keep that Server")
	}
	defer func() {
		if err != nil {
			served.Delete(at.folder)
		}
	}()
	listener, socket, err := at.listen()
	if err != nil {
		return nil, err
	}
	process := thisProcess(o.Name, time.Now())
	note, err := at.writeNote(process)
	if err != nil {
		err = errors.Join(err, listener.Close(), os.Remove(at.socket))
		_ = os.Remove(at.folder) // unless somebody has put something there
		return nil, err
	}
	s := &Server{place: at, socket: socket, note: note, served: make(chan struct{})}
	s.start(q, process, listener, o.Logger)
	return s, nil
}

// start answers on the listener.
func (s *Server) start(q *bolt.Queue, process Process, listener net.Listener, log pawl.Logger) {
	all, hurry := context.WithCancel(context.Background())
	streams, end := context.WithCancel(context.Background())
	s.end, s.hurry = end, hurry
	s.tally = newTally(q)
	s.limiter = newLimiter(listener, connsOf(openable()), connGrace, func(conn net.Conn) bool { return s.welcome(conn, log) })
	handler := newHandler(&serving{Of(q), process, s.tally}, &HandlerOptions{
		NoAuth:  true,                                  // the folder, the socket and welcome let nobody else in
		MaxBody: largestRest + 2*int64(q.MaxPayload()), // a payload of that size in base64, and the rest of its job
		Logger:  log,
	}, streams)
	s.http = newServer(handler, s.limiter, all, log)
	go func() {
		defer close(s.served)
		if err := s.http.Serve(s.limiter); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("operators are not served any more", "error", err)
		}
	}()
}

// newServer is an HTTP server with the limits of this package. All its requests end with ctx.
func newServer(h http.Handler, c *limiter, ctx context.Context, log pawl.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       c.ofConn,
		ConnState:         c.changed,
		ErrorLog:          stdlog.New(debugWriter{log}, "", 0),
	}
}

// debugWriter logs what net/http reports about connections.
type debugWriter struct{ log pawl.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.Debug(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// welcome lets in whoever runs as the user of this process, or as the superuser. The modes of
// folder and socket keep others out already; this holds where a file system knows no modes.
func (s *Server) welcome(conn net.Conn, log pawl.Logger) bool {
	uid, known := peerUser(conn)
	if !known || uid == 0 || uid == os.Geteuid() {
		return true
	}
	s.stranger.Do(func() {
		log.Warn("another user tried to reach the queue; the folder of its socket should be closed to others", "uid", uid, "folder", s.place.folder)
	})
	return false
}

// Addr is where the server answers, for [Dial].
func (s *Server) Addr() string { return "unix://" + s.place.socket }

// Close stops serving. Streams end at once; requests have two seconds to come to their end.
// When it returns, note, socket and folder are gone and no goroutine of the server runs. The
// queue stays open.
func (s *Server) Close() error {
	s.close.Do(func() { s.closeAs = s.shut() })
	return s.closeAs
}

// shut takes back what serve did, from the outside to the inside: first nobody is told of the
// server any more, then nobody reaches it, then nobody is left.
func (s *Server) shut() error {
	err := errors.Join(
		removeSame(s.place.note, s.note),
		removeSame(s.place.socket, s.socket),
	)
	s.end()
	err = errors.Join(err, ignoreClosed(s.limiter.Close()))
	<-s.served
	timely, cancel := context.WithTimeout(context.Background(), closeGrace)
	_ = s.http.Shutdown(timely)
	cancel()
	s.hurry()
	_ = s.http.Close()
	if !s.limiter.empty(closeGrace) {
		err = errors.Join(err, errors.New("requests of operators do not come to their end; the queue may be stuck"))
	}
	s.tally.stop()
	_ = os.Remove(s.place.folder) // unless somebody has put something there
	served.Delete(s.place.folder)
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// connsOf is how many connections a server has in a process that may have so many files open:
// three quarters of them are the app's.
func connsOf(files uint64) int {
	return int(max(minConns, min(maxConns, files/4)))
}

// removeSame removes a file if it is the one that this server made: an app that opened
// another file of the same name may serve that by now. A system may give the number of a file
// that is gone to the next one, which then is younger.
func removeSame(path string, made os.FileInfo) error {
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(now, made) || !now.ModTime().Equal(made.ModTime()) {
		return nil
	}
	return os.Remove(path)
}

// serving is the Admin of a server: that of its queue, and who serves it.
type serving struct {
	Admin
	process Process
	tally   *tally
}

// Stats implements Admin.
func (s *serving) Stats(ctx context.Context) (Stats, error) {
	stats, err := s.Admin.Stats(ctx)
	if err == nil {
		process := s.process
		stats.Process, stats.Done = &process, s.tally.done()
	}
	return stats, err
}
