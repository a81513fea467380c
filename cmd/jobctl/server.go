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
)

// serverURL and serverWords are the two forms of a connection string of PostgreSQL.
var (
	serverURL   = regexp.MustCompile(`^(?i:postgres(ql)?)://`)
	serverWords = regexp.MustCompile(`(^|\s)(host|user|password|dbname|service)\s*=`)
)

// isServer reports whether --db names a database on a server, and not a file.
func isServer(db string) bool { return serverURL.MatchString(db) || serverWords.MatchString(db) }

// otherPlace is a place of an engine that jobctl does not open.
var otherPlace = regexp.MustCompile(`^(?i:(sqlite|inline):|([a-z][a-z0-9+.-]+)://)`)

// otherScheme returns the scheme of such a place, and "" for a file and a server. Messages have the
// scheme alone, since the rest may contain a password.
func otherScheme(db string) string {
	m := otherPlace.FindStringSubmatch(db)
	if m == nil || isServer(db) {
		return ""
	}
	if scheme := strings.ToLower(m[1] + m[2]); scheme != "file" { // a path all the same
		return scheme
	}
	return ""
}

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

// aim decides where the queue is: where a flag names it, or else where JOBCTL_DB does. It reports
// false if nothing names it. It moves the URL of a server to where no message finds it, and leaves
// what messages show.
func (a *app) aim() bool {
	f := &a.flags
	explicit := f.db != ""
	if !explicit && f.addr == "" {
		f.db = a.env("JOBCTL_DB")
	}
	if f.server != "" || !isServer(f.db) {
		return f.db != "" || f.addr != ""
	}
	f.server = serverURL.ReplaceAllStringFunc(f.db, strings.ToLower)
	shown, secret := shownServer(f.db)
	if f.db = shown; secret && explicit {
		a.note("other users of this machine may see the password in the list of processes; put it into PGPASSWORD, " +
			"a passfile such as ~/.pgpass, or JOBCTL_DB")
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

// absentServer rejects a server that has the queue.
func (a *app) absentServer(ctx context.Context) error {
	queue, err := a.openServer(ctx, false)
	switch {
	case errors.Is(err, postgres.ErrNotQueue):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(&failure{exitError, a.flags.db + " has a queue already",
		"Name another database, or another schema with the parameter schema; without --create its jobs are kept\nand others are added."}, queue.Close())
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
	stats.Path, stats.Free = s.place, -1
	if clients > 0 {
		stats.Process = &admin.Process{Name: plural(clients, "client")}
	}
	for i := range stats.Queues {
		stats.Queues[i].Served = clients > 0
	}
	return stats, err
}
