package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"regexp"
	"strings"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/postgres"
)

// serverURL and serverWords are the two forms of a connection string of PostgreSQL.
var (
	serverURL   = regexp.MustCompile(`^(?i:postgres(ql)?)://`)
	serverWords = regexp.MustCompile(`(^|\s)(host|user|password|dbname|service)\s*=`)
)

// isServer reports whether --db names a database on a server, and not a file.
func isServer(db string) bool { return serverURL.MatchString(db) || serverWords.MatchString(db) }

// shownServer returns the URL of a server without its password and its parameters, for messages, and
// whether it has a password.
func shownServer(db string) (shown string, secret bool) {
	if !isServer(db) {
		return db, false
	}
	u, err := url.Parse(db)
	if err != nil || !serverURL.MatchString(db) || strings.Contains(u.Path, "@") { // a slash in the password
		return "postgres://...", true
	}
	_, secret = u.User.Password()
	secret = secret || u.Query().Has("password")
	if shown = u.Scheme + "://"; u.User.Username() != "" {
		shown += url.User(u.User.Username()).String() + "@"
	}
	return shown + u.Host + u.EscapedPath(), secret
}

// takeServer moves the URL of a server to where no message finds it, and leaves what messages show.
func (a *app) takeServer() {
	if !isServer(a.flags.db) || a.flags.server != "" {
		return
	}
	a.flags.server = serverURL.ReplaceAllStringFunc(a.flags.db, strings.ToLower)
	shown, secret := shownServer(a.flags.db)
	given := a.flags.db
	if a.flags.db = shown; secret && a.env("JOBCTL_DB") != given {
		a.note("other users of this machine may see the password in the list of processes; put it into PGPASSWORD, " +
			"a passfile such as ~/.pgpass, or JOBCTL_DB")
	}
}

// fileOnly rejects a server for a command about the file.
func (a *app) fileOnly(words, instead string) error {
	if a.takeServer(); a.flags.server == "" {
		return nil
	}
	return usage(words, "it is for files, and --db names a server; %s", instead)
}

// openServer opens the queue on the server, beside its apps.
func (a *app) openServer(ctx context.Context, create bool) (admin.Admin, error) {
	within, cancel := context.WithTimeout(ctx, a.flags.timeout)
	defer cancel()
	q, err := postgres.Open(within, a.flags.server, &postgres.Options{
		Existing: !create, Timeout: a.flags.timeout, Logger: a.logger(),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.flags.db, err)
	}
	return serverQueue{admin.Of(q), q, a.flags.db}, nil
}

// serverQueue is the queue on a server. Its apps are elsewhere.
type serverQueue struct {
	admin.Admin
	q     *postgres.Queue
	place string
}

// Stats describes the apps by their number, as the process that has the queue open.
func (s serverQueue) Stats(ctx context.Context) (admin.Stats, error) {
	stats, err := s.Admin.Stats(ctx)
	if err != nil {
		return stats, err
	}
	clients, err := s.q.Clients(ctx)
	stats.Path, stats.Free, stats.Process = s.place, -1, nil
	if clients > 0 {
		stats.Process = &admin.Process{Name: plural(clients, "client")}
	}
	for i := range stats.Queues {
		stats.Queues[i].Served = clients > 0
	}
	return stats, err
}

// Events returns an error: the events of the apps happen in their processes.
func (s serverQueue) Events(context.Context) iter.Seq2[admin.Event, error] {
	return func(yield func(admin.Event, error) bool) {
		yield(admin.Event{}, &admin.UnsupportedError{Operation: "events"})
	}
}

func (s serverQueue) Close() error { return s.q.Close() }

// serverFailure explains an error of a server.
func (a *app) serverFailure(f *failure, err error) bool {
	var missing *admin.UnsupportedError
	switch {
	case errors.Is(err, postgres.ErrUnavailable):
		f.code = exitLocked
		f.next = "Check the host and the port in --db, and the server; --timeout waits longer."
	case errors.Is(err, postgres.ErrPermission):
		f.next = "Check the user in --db and the password: PGPASSWORD, or a passfile such as ~/.pgpass."
	case errors.Is(err, postgres.ErrNotQueue):
		f.next = "Check the database in --db; its parameter schema names another schema than pawl. jobctl creates no\nqueue, except for 'jobctl import --create'."
	case errors.Is(err, postgres.ErrReadOnly):
		f.next = "Name the primary in --db."
	case errors.Is(err, postgres.ErrOlderFormat):
		f.code = exitFormat
		f.next = "Start an app of this release, which upgrades the schema."
	case a.flags.server != "" && errors.As(err, &missing):
		f.text = fmt.Sprintf("a queue on a server has no %s", missing.Operation)
	default:
		return false
	}
	return true
}
