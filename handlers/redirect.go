package handlers

import (
	"fmt"
	"net/http"
	"net/url"
)

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirected returns the message that a redirect asks for, or the reason why it is not sent. The
// job's headers and body go to no other host. A POST does not become a GET after 301 or 302, as
// in browsers: the success of that GET would end the job.
func (m *message) redirected(status int, location string) (*message, error) {
	to, err := m.to.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%s redirects to an invalid URL: %s", where(m.to), withoutURL(err))
	}
	if err := checkURL(to); err != nil {
		return nil, fmt.Errorf("%s redirects: %w", where(m.to), err)
	}
	if m.to.Scheme == "https" && to.Scheme == "http" {
		return nil, fmt.Errorf("%s redirects to %s, which is not encrypted", where(m.to), where(to))
	}
	next := &message{m.method, to, m.header.Clone(), m.body}
	safe := m.method == http.MethodGet || m.method == http.MethodHead
	switch status {
	case http.StatusSeeOther: // the request succeeded; the result is elsewhere
		if m.method != http.MethodHead {
			next.method = http.MethodGet
		}
		next.body = nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			next.header.Del(name)
		}
	case http.StatusMovedPermanently, http.StatusFound:
		if !safe {
			return nil, fmt.Errorf("%s redirects a %s to %s with status %d, which does not say whether to send it again; use that URL in the job",
				where(m.to), m.method, where(to), status)
		}
	}
	if sameHost(m.to, to) {
		return next, nil
	}
	if len(next.body) > 0 {
		return nil, fmt.Errorf("%s redirects to another host, %s, which may not receive the job's body; use that URL in the job", where(m.to), where(to))
	}
	next.header = make(http.Header)
	next.header.Set("User-Agent", m.header.Get("User-Agent"))
	return next, nil
}

// sameHost reports whether two URLs lead to one host and port. An upgrade from http to https on
// the default ports counts as the same host.
func sameHost(from, to *url.URL) bool {
	if plainHost(from.Hostname()) != plainHost(to.Hostname()) {
		return false
	}
	return portOf(from) == portOf(to) || from.Scheme == "http" && portOf(from) == "80" && to.Scheme == "https" && portOf(to) == "443"
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
