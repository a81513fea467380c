package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/dashboard"
)

// uiFlags holds the flags of `ui`.
type uiFlags struct {
	port      string
	noBrowser bool
	readOnly  bool
}

func (a *app) uiCommand() *cobra.Command {
	var f uiFlags
	c := a.command(&spec{
		use: "ui [--port PORT] [--no-browser] [--read-only]", short: "the dashboard in a browser",
		long: `Shows queues, jobs, failures, workflow runs, and schedules in a browser, of a running
app and of the file of a stopped one. It listens only on 127.0.0.1, opens the browser,
and runs until it is interrupted.

The address has a token that works once: the browser exchanges it for a cookie. Other
users of this machine can see the address among the arguments of the browser while it
starts; --no-browser prints the address and starts no browser. If the app starts or
stops while the command runs, start the command again.`,
		example: "  jobctl --db jobs.db ui\n  jobctl --db jobs.db ui --read-only --no-browser --port 8080",
		run:     func(ctx context.Context, _ []string) error { return a.ui(ctx, &f) },
	})
	flags := c.Flags()
	flags.Var(textFlag(&f.port), "port", "listen on this `PORT` (default any free one)")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "print the address, and open no browser")
	flags.BoolVar(&f.readOnly, "read-only", false, "refuse every change")
	return c
}

// ui serves the dashboard until ctx ends.
func (a *app) ui(ctx context.Context, f *uiFlags) error {
	port := uint64(0)
	if f.port != "" {
		var err error
		if port, err = strconv.ParseUint(f.port, 10, 16); err != nil {
			return misused("ui", "--port %q is not a number from 0 to 65535", f.port)
		}
	}
	return a.with(ctx, func(queue admin.Admin) error {
		if _, err := queue.Stats(ctx); err != nil { // show an error on the terminal
			return err
		}
		d, err := dashboard.New(queue, &dashboard.Options{
			Authorize: func(*http.Request, dashboard.Action) bool { return true }, // everyone with the cookie
			User:      func(*http.Request) string { return "jobctl ui" },
			ReadOnly:  f.readOnly,
			Target:    a.target(),
			Logger:    a.logger(),
			Now:       a.now,
		})
		if err != nil {
			return err
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10)))
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		door := newDoor(d, listener.Addr())
		if _, err := fmt.Fprintln(a.stdout, door.url); err != nil {
			return err
		}
		if err := a.stdout.Flush(); err != nil {
			return err
		}
		if !f.noBrowser {
			if err := openBrowser(door.url); err != nil {
				a.say("note: no browser could be opened (%v); open the address yourself", err)
			}
		}
		return serveUI(ctx, listener, door, d)
	})
}

// target returns how a user reaches the queue with jobctl, for the dashboard. It omits a URL,
// which may contain a password.
func (a *app) target() string {
	if a.flags.addr != "" {
		return "--addr ADDRESS"
	}
	if kind := kindOf(a.flags.db); kind != nil {
		return "--db '" + kind.anyURL + "'"
	}
	return "" // the path of the file
}

// serveUI serves until ctx ends, and then ends the streams of open pages.
func serveUI(ctx context.Context, listener net.Listener, h http.Handler, d *dashboard.Dashboard) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	server.RegisterOnShutdown(func() { _ = d.Close() })
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		closed <- server.Shutdown(limit)
	})
	err := server.Serve(listener)
	if stop() { // the server ended by itself
		return err
	}
	if err = <-closed; errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return err
}

// door lets in the browser that has the token, once, and then the requests that have the cookie.
type door struct {
	next    http.Handler
	url     string
	token   string
	used    atomic.Bool
	name    string // name of the cookie, with the port: all ports of a host share its cookies
	session string
}

func newDoor(next http.Handler, addr net.Addr) *door {
	d := &door{next: next, token: rand.Text(), session: rand.Text()}
	_, port, _ := net.SplitHostPort(addr.String())
	d.name, d.url = "jobctl_ui_"+port, "http://"+addr.String()+"/?token="+d.token
	return d
}

// same compares secrets in a time that does not depend on them.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie(d.name)
	inside := err == nil && same(cookie.Value, d.session)
	token := r.URL.Query().Get("token")
	if inside && token == "" {
		d.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if !inside && (token == "" || !same(token, d.token) || !d.used.CompareAndSwap(false, true)) {
		http.Error(w, "This address does not let you in: its token is missing, wrong, or was used already. Start jobctl ui again.", http.StatusForbidden)
		return
	}
	// The redirect removes the token from the address, and so from the history.
	http.SetCookie(w, &http.Cookie{Name: d.name, Value: d.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// openBrowser opens an address with the program of the system, and does not wait for it.
func openBrowser(url string) error {
	program, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // its end does not matter
	return nil
}
