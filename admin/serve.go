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
)

// Options configures a [Server]. A nil *Options and every zero field mean the default.
type Options struct {
	// Name is the name of the app that operators see. The default is the name of the program.
	Name string

	// Logger receives a line for each unauthorized client, and what the handler logs. The
	// default is hclog.Default().
	Logger pawl.Logger

	// Candidate is called for each process that waits until this one gives the file up; see
	// [AwaitEnd]. The context ends when that process stops waiting, and when the server closes.
	// Candidate must return at once, and must not close the server itself. Nil ignores these
	// processes.
	Candidate func(context.Context)
}

// Limits of a [Server]. Once every connection is in use, a client that connects and asks nothing
// loses its connection to the next client. A process that may open only a few files allows fewer
// connections.
const (
	maxConns      = 256
	minConns      = 8
	connGrace     = 100 * time.Millisecond
	headerTimeout = 5 * time.Second
	idleTimeout   = 30 * time.Second
	maxHeader     = 64 << 10
	closeGrace    = 2 * time.Second // how long requests may finish when the server closes
)

// largestRest is the most bytes that a job has besides its payload: a result or a cursor in base64,
// a full history of the longest errors, in which JSON may write each byte as six, and some fields.
const largestRest = 2*pawl.MaxResult + 2*6*(pawl.HistoryKeepHead+pawl.HistoryKeepTail)*pawl.MaxErrorText + 1<<20

// Server serves a queue to operators of this machine; see [Serve].
type Server struct {
	place   place
	socket  os.FileInfo // as created, so that Close removes no other socket
	note    os.FileInfo
	http    *http.Server
	limiter *limiter
	tally   *tally
	end     context.CancelFunc // of streams
	hurry   context.CancelFunc // of all requests
	served  chan struct{}      // closed when the server accepts no more connections
	close   sync.Once
	closeAs error

	unauthorized sync.Once // an unauthorized client was logged
}

// served contains the folders of the queues that this process serves.
var served sync.Map

// Serve lets operators of this machine reach q while the app runs, through a socket in the
// folder <file>.admin beside the file. Serve creates the folder; only the user of this process
// and the superuser can enter it. [Open], and therefore jobctl, finds the socket by a note in
// the folder.
//
// If the path of the socket is longer than the system permits, the socket is in
// $XDG_RUNTIME_DIR/pawl, or else in pawl-<uid> below the folder for temporary files, and the
// note names it. Serve replaces what a killed app left behind.
//
// Call it right after bolt.Open, before the working directory changes, and call Close before
// closing the queue. If the queue is closed first, nothing hangs, but closing waits for a backup
// in progress until the backup is complete or its client is dropped.
//
// Serve does not listen on TCP: mount a [Handler] behind the app's own authentication for that.
// On Windows, Serve returns errors.ErrUnsupported.
func Serve(q FileStore, opts *Options) (*Server, error) {
	s, err := serve(q, opts)
	if err != nil {
		return nil, fmt.Errorf("serve %s to operators: %w", q.Path(), err)
	}
	return s, nil
}

func serve(q FileStore, opts *Options) (_ *Server, err error) {
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
		_ = os.Remove(at.folder) // unless someone has put something in it
		return nil, err
	}
	s := &Server{place: at, socket: socket, note: note, served: make(chan struct{})}
	s.start(q, process, listener, &o)
	return s, nil
}

// start serves requests on the listener.
func (s *Server) start(q FileStore, process Process, listener net.Listener, o *Options) {
	log := o.Logger
	all, hurry := context.WithCancel(context.Background())
	streams, end := context.WithCancel(context.Background())
	s.end, s.hurry = end, hurry
	s.tally = newTally(q)
	s.limiter = newLimiter(listener, connsOf(openable()), connGrace, func(conn net.Conn) bool { return s.welcome(conn, log) })
	handler := newHandler(&serving{Of(q), process, s.tally}, &HandlerOptions{
		NoAuth:  true,                                  // the folder, the socket and welcome keep everyone else out
		MaxBody: largestRest + 2*int64(q.MaxPayload()), // a payload of that size in base64, and the rest of its job
		Logger:  log,
	}, streams)
	handler.candidate = o.Candidate
	s.http = newServer(handler, s.limiter, all, log)
	go func() {
		defer close(s.served)
		if err := s.http.Serve(s.limiter); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("operators can no longer be served", "error", err)
		}
	}()
}

// newServer returns an HTTP server with the limits of this package. All its requests end with
// ctx.
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

// welcome admits the user of this process and the superuser. The modes of the folder and the
// socket already keep others out; welcome protects file systems without modes.
func (s *Server) welcome(conn net.Conn, log pawl.Logger) bool {
	uid, known := peerUser(conn)
	if !known || uid == 0 || uid == os.Geteuid() {
		return true
	}
	s.unauthorized.Do(func() {
		log.Warn("another user tried to reach the queue; the folder of its socket should be closed to others", "uid", uid, "folder", s.place.folder)
	})
	return false
}

// Addr returns the address of the server, for [Dial].
func (s *Server) Addr() string { return "unix://" + s.place.socket }

// Close stops serving. Streams end at once; requests have two seconds to finish. When Close
// returns, the note, the socket and the folder are gone, and no goroutine of the server runs.
// The queue stays open.
func (s *Server) Close() error {
	s.close.Do(func() { s.closeAs = s.shut() })
	return s.closeAs
}

// shut undoes what Serve did, from the outside in: it removes the note and the socket, stops
// listening, then ends the connections.
func (s *Server) shut() error {
	err := errors.Join(
		removeSame(s.place.note, s.note),
		removeSame(s.place.socket, s.socket),
	)
	s.end()
	if closed := s.limiter.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	<-s.served
	timely, cancel := context.WithTimeout(context.Background(), closeGrace)
	_ = s.http.Shutdown(timely)
	cancel()
	s.hurry()
	_ = s.http.Close()
	if !s.limiter.empty(closeGrace) {
		err = errors.Join(err, errors.New("requests of operators do not come to their end; the queue may be stuck"))
	}
	if s.tally != nil {
		s.tally.stop()
	}
	_ = os.Remove(s.place.folder) // unless someone has put something in it
	served.Delete(s.place.folder)
	return err
}

// connsOf returns how many connections a server allows in a process that may open that many
// files. It leaves three quarters to the app.
func connsOf(files uint64) int {
	return int(max(minConns, min(maxConns, files/4)))
}

// removeSame removes a file if this server created it: an app that opened another file with the
// same name may already serve that file. A system may reuse the inode number of a removed file,
// but then the new file is younger.
func removeSame(path string, made os.FileInfo) error {
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(now, made) || !now.ModTime().Equal(made.ModTime()) {
		return nil
	}
	return os.Remove(path)
}

// serving is the Admin of a server: that of its queue, with the process that serves it.
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
