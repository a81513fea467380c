package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
)

// role is what a user may do.
type role int

const (
	nobody role = iota
	viewer
	operator
)

// users are the users of the app. An app of yours has a session here.
type users struct {
	names     []string
	roles     map[string]role
	passwords map[string]string
}

func newUsers() *users {
	return &users{
		names:     []string{"ada", "bob"},
		roles:     map[string]role{"ada": operator, "bob": viewer},
		passwords: map[string]string{"ada": rand.Text(), "bob": rand.Text()},
	}
}

// print writes the URL of each user.
func (u *users) print(out io.Writer, addr net.Addr) {
	for _, name := range u.names {
		fmt.Fprintf(out, "%s: http://%s:%s@%s/ops/\n", name, name, u.passwords[name], addr)
	}
}

type userKey struct{}

type user struct {
	name string
	role role
}

// login asks for a name and a password, and puts the user into the context.
func (u *users) login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		want, known := u.passwords[name]
		if !known || subtle.ConstantTimeCompare([]byte(password), []byte(want)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="ops"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		ctx := context.WithValue(r.Context(), userKey{}, user{name, u.roles[name]})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func userOf(r *http.Request) user {
	u, _ := r.Context().Value(userKey{}).(user)
	return u
}

func roleOf(r *http.Request) role   { return userOf(r).role }
func nameOf(r *http.Request) string { return userOf(r).name }
