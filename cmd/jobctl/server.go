package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/redis"
)

// serverKind is a kind of server that jobctl can open.
type serverKind struct {
	url    *regexp.Regexp // matches the beginning of its URLs
	anyURL string         // replaces a URL that must not be shown
	backup string         // what to do instead of 'jobctl db backup'
	secret string         // where a password is safe
	open   func(ctx context.Context, place string, create bool, a *app) (server, error)
}

// server is the queue on a server. Its apps are elsewhere.
type server interface {
	admin.OfflineStore

	// Clients returns how many processes have the queue open.
	Clients(ctx context.Context) (int, error)
}

// servers are all kinds of servers. Only the apps know how many crashes make a job poison, so jobctl makes no job
// dead when it takes back leases.
var servers = []serverKind{
	{regexp.MustCompile(`^(?i:postgres(ql)?)://`), "postgres://...", "use pg_dump, or 'jobctl export'",
		"PGPASSWORD, a passfile such as ~/.pgpass, or JOBCTL_DB",
		func(ctx context.Context, place string, create bool, a *app) (server, error) {
			return opened(postgres.Open(ctx, place, &postgres.Options{Existing: !create, MaxCrashes: postgres.NoMaxCrashes, Timeout: a.flags.timeout, Logger: a.logger()}))
		}},
	{regexp.MustCompile(`^(?i:rediss?)://`), "redis://...", "copy the server's files, or use 'jobctl export'", "JOBCTL_DB",
		func(ctx context.Context, place string, create bool, a *app) (server, error) {
			return opened(redis.Open(ctx, place, &redis.Options{Existing: !create, MaxCrashes: redis.NoMaxCrashes, Timeout: a.flags.timeout, Logger: a.logger(), NoListen: true}))
		}},
}

// opened returns a nil interface with an error, and not an interface with a nil pointer.
func opened[Q server](q Q, err error) (server, error) {
	if err != nil {
		return nil, err
	}
	return q, nil
}

// serverWords matches a connection string of PostgreSQL such as "host=db user=app".
var serverWords = regexp.MustCompile(`(^|\s)(host|user|password|dbname|service)\s*=`)

// kindOf returns the kind of server that --db names, or nil for a file.
func kindOf(db string) *serverKind {
	for i := range servers {
		if servers[i].url.MatchString(db) {
			return &servers[i]
		}
	}
	if serverWords.MatchString(db) {
		return &servers[0]
	}
	return nil
}

// otherPlace is a place of an engine that jobctl does not open.
var otherPlace = regexp.MustCompile(`^(?i:(sqlite|inline):|([a-z][a-z0-9+.-]+)://)`)

// otherScheme returns the scheme of such a place, and "" for a file and a server. Messages show only the scheme,
// since the rest may contain a password.
func otherScheme(db string) string {
	m := otherPlace.FindStringSubmatch(db)
	if m == nil || kindOf(db) != nil {
		return ""
	}
	if scheme := strings.ToLower(m[1] + m[2]); scheme != "file" { // this is still a path
		return scheme
	}
	return ""
}

// shownServer returns the URL of a server without its password and its parameters, for messages, and
// whether it has a password.
func shownServer(db string) (shown string, secret bool) {
	kind := kindOf(db)
	if kind == nil {
		return db, false
	}
	u, err := url.Parse(db)
	if err != nil || !kind.url.MatchString(db) || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") { // a slash, a question mark, or a # in the password
		return kind.anyURL, true
	}
	_, secret = u.User.Password()
	secret = secret || u.Query().Has("password")
	if shown = u.Scheme + "://"; u.User.Username() != "" {
		shown += url.User(u.User.Username()).String() + "@"
	}
	return shown + u.Host + u.EscapedPath(), secret
}

// aim decides where the queue is, from a flag or else from JOBCTL_DB. It returns false if neither
// names it. It moves the URL of a server to a field that no message prints, and leaves the text
// that messages show.
func (a *app) aim() bool {
	f := &a.flags
	explicit := f.db != ""
	if !explicit && f.addr == "" {
		f.db = a.env("JOBCTL_DB")
	}
	kind := kindOf(f.db)
	if f.server != "" || kind == nil {
		return f.db != "" || f.addr != ""
	}
	f.server = kind.url.ReplaceAllStringFunc(f.db, strings.ToLower)
	shown, secret := shownServer(f.db)
	if f.db = shown; secret && explicit {
		a.note("other users of this machine may see the password in the list of processes; put it into " + kind.secret)
	}
	return true
}

// aimed returns the same program for another queue.
func (a *app) aimed(db string) *app {
	other := *a
	other.flags.db, other.flags.addr, other.flags.server = db, "", ""
	other.aim()
	return &other
}

// fileOnly rejects a server for a command about the file.
func (a *app) fileOnly(words, instead string) error {
	if a.flags.server == "" {
		return nil
	}
	return usage(words, "it is for files, and --db names a server; %s", instead)
}

// openServer opens the queue on the server, which its apps may also have open.
func (a *app) openServer(ctx context.Context, create bool) (admin.Admin, error) {
	within, cancel := context.WithTimeout(ctx, a.flags.timeout)
	defer cancel()
	q, err := kindOf(a.flags.server).open(within, a.flags.server, create, a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.flags.db, err)
	}
	return serverQueue{admin.Shared(q), q, a.flags.db}, nil
}

// createServer creates the queue on the server, which must not have one.
func (a *app) createServer(ctx context.Context) error {
	if err := a.absentServer(ctx); err != nil {
		return err
	}
	queue, err := a.openServer(ctx, true)
	if err != nil {
		return err
	}
	return queue.Close()
}

// absentServer rejects a server that already has the queue.
func (a *app) absentServer(ctx context.Context) error {
	queue, err := a.openServer(ctx, false)
	switch {
	case errors.Is(err, postgres.ErrNotQueue), errors.Is(err, redis.ErrNotQueue):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(&failure{exitError, a.flags.db + " has a queue already",
		"Name another database, or another queue in it with the parameter schema (postgres://) or name (redis://).\nWithout --create its jobs are kept and others are added."}, queue.Close())
}

// serverQueue is the admin of a server.
type serverQueue struct {
	admin.Admin
	q     server
	place string
}

// Stats describes the apps, by their number, in the place of the process that has the queue open.
func (s serverQueue) Stats(ctx context.Context) (admin.Stats, error) {
	stats, err := s.Admin.Stats(ctx)
	if err != nil {
		return stats, err
	}
	clients, err := s.q.Clients(ctx)
	stats.Path, stats.Free = s.place, -1
	if clients > 0 {
		stats.Process = &admin.Process{Name: plural(clients, "client")}
	}
	for i := range stats.Queues {
		stats.Queues[i].Served = clients > 0
	}
	return stats, err
}
