package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// polite are the limits of the queue. The key of a job is the host of its page.
var polite = pawl.Limits{
	Fair:          true,
	RunningPerKey: 1, // so a host that is busy is not asked by a job that was fetched before
	RatePerKey:    pawl.Rate{Starts: 25, Per: time.Second, Burst: 10},
}

// Page is the payload of a job.
type Page struct{ URL string }

var fetch = pawl.Define[Page]("fetch", pawl.Timeout(10*time.Second), pawl.Retain(time.Hour))

// crawler fetches pages.
type crawler struct {
	q      pawl.Queue
	client *http.Client
}

// crawl fetches pages and all that they lead to on their hosts, some at a time.
func (c crawler) crawl(ctx context.Context, slots int, roots ...string) error {
	if err := c.add(ctx, roots...); err != nil {
		return err
	}
	w := worker.New(c.q, &worker.Options{Concurrency: slots, Logger: hclog.NewNullLogger()})
	worker.Handle(w, fetch, c.fetch)
	return w.Drain(ctx, pawl.WaitFinished)
}

// add enqueues pages. Each page has one job, however many pages link to it.
func (c crawler) add(ctx context.Context, urls ...string) error {
	batch := make([]*pawl.Envelope, len(urls))
	for i, to := range urls {
		u, err := url.Parse(to)
		if err != nil {
			return pawl.Permanent(err)
		}
		job, err := fetch.Envelope(Page{to}, pawl.Key(u.Host),
			pawl.Unique(to, pawl.Ready, pawl.Delayed, pawl.Leased, pawl.Dead, pawl.Completed))
		if err != nil {
			return err
		}
		batch[i] = job
	}
	_, err := c.q.Enqueue(ctx, batch...)
	return err
}

// fetch is the handler. If the process crashes before the job is acked, the job runs again, and finds the
// jobs of its links.
func (c crawler) fetch(ctx context.Context, job *pawl.Job[Page]) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, job.Args.URL, nil)
	if err != nil {
		return pawl.Permanent(err)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusTooManyRequests:
		return pawl.Throttle(retryAfter(resp.Header), pawl.ThisKey)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s", job.Args.URL, resp.Status)
	}
	links := linksOf(req.URL, body)
	if len(links) == 0 {
		return nil
	}
	return c.add(ctx, links...)
}

// retryAfter returns how long a server wants to be left alone, and a minute if it does not say.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return time.Minute
	}
	return time.Duration(seconds) * time.Second
}

var href = regexp.MustCompile(`<a href="([^"]*)">`)

// linksOf returns the pages of the same host that a page links to.
func linksOf(page *url.URL, body []byte) (links []string) {
	for _, found := range href.FindAllSubmatch(body, -1) {
		if to, err := page.Parse(string(found[1])); err == nil && to.Host == page.Host {
			links = append(links, to.String())
		}
	}
	return links
}
