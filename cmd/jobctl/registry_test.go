package main

import (
	"regexp"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// registry holds the apps that scripts have started; scripts run in parallel.
type registry struct {
	mu  sync.Mutex
	all map[string]*running
}

func newRegistry() *registry { return &registry{all: make(map[string]*running)} }

func (r *registry) put(key string, app *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[key] = app
}

func (r *registry) get(key string) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[key]
}

// end ends an app by calling how, and waits for it.
func (r *registry) end(key string, how func(*running) error) error {
	r.mu.Lock()
	app := r.all[key]
	delete(r.all, key)
	r.mu.Unlock()
	if app == nil {
		return errNoApp
	}
	if err := how(app); err != nil {
		return err
	}
	_ = app.cmd.Wait() // the error of a killed app is expected
	return nil
}

func mustCompile(ts *testscript.TestScript, text string) *regexp.Regexp {
	pattern, err := regexp.Compile("(?m)" + text)
	ts.Check(err)
	return pattern
}
