package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// web is some hosts.
type web struct {
	sites []*site

	mu       sync.Mutex // also for the fields of the sites
	requests int        // that any host got
}

// site is a host. Its root links to all other pages, and each of these to the root and to the next one. It counts
// what reaches it.
type site struct {
	*web
	name   string
	pages  int
	busyAt int // the request that it answers with 429 and Retry-After: 1; 0 for none

	arrived   []time.Time    // each request
	got       map[string]int // by path: how often it was served
	running   int            // requests under way
	most      int            // under way at once
	refused   int            // requests answered with 429
	busyUntil time.Time
	whileBusy int // requests that came before busyUntil
	done      int // the requests of all hosts until it had served its last page
}

// takes is how long a page takes.
const takes = 20 * time.Millisecond

func newWeb() *web {
	w := new(web)
	add := func(name string, pages, busyAt int) {
		w.sites = append(w.sites, &site{web: w, name: name, pages: pages, busyAt: busyAt, got: make(map[string]int)})
	}
	add("large.test", 50, 20)
	for _, name := range []string{"a.test", "b.test", "c.test", "d.test"} {
		add(name, 5, 0)
	}
	add("e.test", 5, 3)
	return w
}

// roots returns the first page of each host.
func (w *web) roots() (urls []string) {
	for _, s := range w.sites {
		urls = append(urls, "http://"+s.name+"/0")
	}
	return urls
}

func (s *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	page, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || page < 0 || page >= s.pages {
		http.NotFound(rw, r)
		return
	}
	if !s.begin(time.Now()) {
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, "too many requests", http.StatusTooManyRequests)
		return
	}
	time.Sleep(takes)
	s.end(r.URL.Path)
	if page > 0 {
		fmt.Fprintf(rw, `<a href="/0">start</a> <a href="/%d">next</a>`, (page+1)%s.pages)
		return
	}
	for n := 1; n < s.pages; n++ {
		fmt.Fprintf(rw, `<a href="/%d">page</a> `, n)
	}
}

// begin counts a request, and reports whether the host serves it.
func (s *site) begin(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.arrived = append(s.arrived, now)
	if now.Before(s.busyUntil) {
		s.whileBusy++
	}
	if len(s.arrived) == s.busyAt {
		s.refused++
		s.busyUntil = now.Add(time.Second)
		return false
	}
	s.running++
	s.most = max(s.most, s.running)
	return true
}

// end counts a page that the host served.
func (s *site) end(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.got[path]++; s.got[path] == 1 && len(s.got) == s.pages {
		s.done = s.requests
	}
}

// served returns how many pages the host served. It is for a web that nobody asks any more.
func (s *site) served() (n int) {
	for _, times := range s.got {
		n += times
	}
	return n
}

// mostIn returns the highest number of requests in any period.
func (s *site) mostIn(per time.Duration) (most int) {
	from := 0
	for i, at := range s.arrived {
		for at.Sub(s.arrived[from]) >= per {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// hosts are the servers of a web, on loopback ports.
type hosts struct {
	addresses map[string]string // by the name of the host and its port
	servers   []*http.Server
	serving   sync.WaitGroup
}

// serve starts a server for each host.
func (w *web) serve() (*hosts, error) {
	h := &hosts{addresses: make(map[string]string)}
	for _, s := range w.sites {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			h.Close()
			return nil, err
		}
		server := &http.Server{Handler: s}
		h.addresses[s.name+":80"], h.servers = l.Addr().String(), append(h.servers, server)
		h.serving.Go(func() { _ = server.Serve(l) }) // until Close
	}
	return h, nil
}

// transport finds the hosts by their names.
func (h *hosts) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
		address, ok := h.addresses[host]
		if !ok {
			return nil, errors.New("there is no host " + host)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// Close ends the servers.
func (h *hosts) Close() {
	for _, server := range h.servers {
		_ = server.Close()
	}
	h.serving.Wait()
}
