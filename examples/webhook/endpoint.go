package main

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// endpoint is the other side: a server on the loopback that has every fault which a
// webhook meets. What it does with an event goes by its number:
//
//	ends in 3   never taken: 422
//	ends in 5   the first request stalls; later ones are taken
//	ends in 7   an error, 500, twice, then taken
//	ends in 8   busy at first, 429 with Retry-After: 1, then taken
//	ends in 9   taken, but the first answer does not come
//	20, 40, …   an error each time: 500
//
// Besides, all of it is down for a second after the first requests: 503 with
// Retry-After: 1. An event is taken once, by its idempotency key.
type endpoint struct {
	server   *http.Server
	listener net.Listener
	serving  sync.WaitGroup

	mu        sync.Mutex
	requests  int
	downUntil time.Time
	tries     map[string]int // requests while it was up, by key
	taken     map[string]int // events that were taken, and how often they came again, by key
}

// startEndpoint lets it listen on a free port.
func startEndpoint() (*endpoint, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{listener: l, tries: make(map[string]int), taken: make(map[string]int)}
	e.server = &http.Server{Handler: e}
	e.serving.Go(func() { _ = e.server.Serve(l) }) // until Close
	return e, nil
}

func (e *endpoint) URL() string { return "http://" + e.listener.Addr().String() + "/hook" }

// Close ends what stalls too.
func (e *endpoint) Close() error {
	err := e.server.Close()
	e.serving.Wait()
	return err
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event Event
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil || key == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code, answers := e.take(key, event.Number, time.Now())
	if !answers {
		<-r.Context().Done() // the other side has given up
		return
	}
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
}

// outage is how many requests it takes for the endpoint to be down for a while.
const outage = 20

// take decides about one request. The second result is false when no answer comes.
func (e *endpoint) take(key string, number int, now time.Time) (code int, answers bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.requests++; e.requests == outage {
		e.downUntil = now.Add(time.Second)
	}
	if now.Before(e.downUntil) {
		return http.StatusServiceUnavailable, true
	}
	e.tries[key]++
	first := e.tries[key] == 1
	switch {
	case number%10 == 3:
		return http.StatusUnprocessableEntity, true
	case number%10 == 5 && first:
		return 0, false
	case number%10 == 7 && e.tries[key] <= 2, number%20 == 0:
		return http.StatusInternalServerError, true
	case number%10 == 8 && first:
		return http.StatusTooManyRequests, true
	}
	if _, again := e.taken[key]; again {
		e.taken[key]++
		return http.StatusOK, true // and nothing is done twice
	}
	e.taken[key] = 0
	return http.StatusOK, !(number%10 == 9 && first)
}

// seen is how many requests there were, how many events were taken, and how many
// requests came for one that was.
func (e *endpoint) seen() (requests, taken, repeated int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := range maps.Values(e.taken) {
		repeated += n
	}
	return e.requests, len(e.taken), repeated
}
