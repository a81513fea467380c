package main

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// endpoint is a server on a loopback port with the faults that webhooks meet. The last digit of an
// event's number decides:
//
//	3           never taken: 422
//	5           the first request stalls; later ones are taken
//	7           500 twice, then taken
//	8           429 with Retry-After: 1 at first, then taken
//	9           taken, but the first answer is lost
//	20, 40, …   always 500
//
// In addition the endpoint is down for a second after the first requests: 503 with Retry-After: 1.
// It takes an event once, by its idempotency key.
type endpoint struct {
	server   *http.Server
	listener net.Listener
	serving  sync.WaitGroup

	mu        sync.Mutex
	requests  int
	downUntil time.Time
	tries     map[string]int // by key: requests while it was up
	taken     map[string]int // by key: repeated requests for taken events
}

// startEndpoint listens on a free port.
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

// Close also ends stalled requests.
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
		<-r.Context().Done() // until the client gives up
		return
	}
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
}

// outage is the number of requests before the endpoint goes down.
const outage = 20

// take decides one request. answers is false if the client gets no answer.
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
		return http.StatusOK, true // without a second effect
	}
	e.taken[key] = 0
	return http.StatusOK, !(number%10 == 9 && first)
}

// seen returns the number of requests, of taken events, and of repeated requests for those.
func (e *endpoint) seen() (requests, taken, repeated int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := range maps.Values(e.taken) {
		repeated += n
	}
	return e.requests, len(e.taken), repeated
}
