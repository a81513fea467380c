package admin

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// answerOf reads the answer on a connection.
func answerOf(t *testing.T, conn net.Conn) (status int, body string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(b)
}

// Clients that connect and stall lose their connections to clients with requests, and learn that
// nothing was done; no request waits for them.
func TestSlowClientsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var together sync.WaitGroup
		together.Add(3)
		p := newPiped(t, &scripted{stats: func(context.Context) (Stats, error) {
			together.Done()
			together.Wait()
			return Stats{}, nil
		}}, 3)
		var slow []net.Conn
		for i := range 3 {
			conn := p.connect()
			defer conn.Close()
			if i > 0 { // a header that never ends
				_, err := io.WriteString(conn, "GET /v1/stats HTTP/1.1\r\nHost: loc")
				require.NoError(t, err)
			}
			slow = append(slow, conn)
		}
		bodies := make(chan string, 3)
		for _, conn := range slow {
			go func() {
				_, body := answerOf(t, conn)
				bodies <- body
			}()
		}
		began := time.Now()
		results := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := p.client().Stats(context.Background())
				results <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-results)
			require.Contains(t, <-bodies, `"busy"`)
		}
		require.LessOrEqual(t, time.Since(began), connGrace)
	})
}

// A working request keeps its connection; new clients wait until it is done.
func TestRequestsAtWorkKeepTheirConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPiped(t, &scripted{stats: func(ctx context.Context) (Stats, error) {
			<-time.After(20 * time.Second)
			return Stats{}, ctx.Err()
		}}, 2)
		results := make(chan error)
		for range 4 {
			go func() {
				c := p.client()
				c.timeout = time.Hour
				_, err := c.Stats(context.Background())
				results <- err
			}()
		}
		began := time.Now()
		for range 4 {
			require.NoError(t, <-results)
		}
		require.Equal(t, 40*time.Second, time.Since(began)) // two at a time
	})
}

// A request whose connection was evicted just before does nothing, as its client was informed.
func TestRequestOfOneSentAwayDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLimiter(nil, 1, 0, nil)
		ours, theirs := net.Pipe()
		defer ours.Close()
		first, _ := c.tryAdd(theirs)
		require.NotNil(t, first)
		ctx := c.ofConn(t.Context(), first)
		_, theirs = net.Pipe()
		second, _ := c.tryAdd(theirs)
		require.NotNil(t, second)
		require.True(t, begins(c.ofConn(t.Context(), second)))

		h := newHandler(&scripted{stats: func(context.Context) (Stats, error) { panic("it was asked") }}, &HandlerOptions{NoAuth: true}, t.Context())
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", opStats.path, nil).WithContext(ctx)
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "this may be all that its client hears")
		require.Contains(t, w.Body.String(), `"busy"`)
	})
}

// A client that sends a header or a body very slowly, or nothing at all, is dropped after some
// time.
func TestClientsThatDripAreDropped(t *testing.T) {
	post := "POST /v1/reap HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
	for _, test := range []struct {
		rule, first string
		within      time.Duration
	}{
		{"nothing", "", headerTimeout},
		{"a header by drops", "GET /v1/stats HTTP/1.1\r\nX: ", headerTimeout},
		{"a small body by drops", post + "1000\r\n\r\n", timeFor(defaultMaxBody)},
		{"a large body by drops", post + "1000000\r\n\r\n", timeFor(defaultMaxBody)},
		{"a body where none is due", "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", timeFor(defaultMaxBody)},
		{"a chunked body by drops", strings.Replace(post, "Content-Length: ", "Transfer-Encoding: chunked\r\nX: ", 1) + "\r\n\r\nffff\r\n", timeFor(defaultMaxBody)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newPiped(t, &scripted{}, 4).connect()
				var drops sync.WaitGroup
				defer drops.Wait()
				defer conn.Close()
				began := time.Now()
				_, err := io.WriteString(conn, test.first)
				require.NoError(t, err)
				if test.first != "" {
					drops.Go(func() {
						for {
							if _, err := io.WriteString(conn, " "); err != nil {
								return
							}
							<-time.After(time.Second)
						}
					})
				}
				_, _ = io.Copy(io.Discard, conn)
				// net/http waits half a second before it closes a connection after an error.
				require.LessOrEqual(t, time.Since(began), test.within+time.Second)
			})
		})
	}
}

// A gate admits as many requests as configured, in their order, lets the others wait no longer
// than its timeout, and refuses those for whom there is no room to wait.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("tests", 1).withQueue(2, time.Minute)
		leave, err := g.enter(t.Context())
		require.NoError(t, err)

		got := make(chan error)
		for range 2 {
			go func() {
				leave, err := g.enter(t.Context())
				if err == nil {
					defer leave()
				}
				got <- err
			}()
		}
		synctest.Wait()
		_, err = g.enter(t.Context())
		require.ErrorIs(t, err, ErrBusy, "a third one may not wait")

		began := time.Now()
		require.ErrorIs(t, <-got, ErrBusy)
		require.ErrorIs(t, <-got, ErrBusy)
		require.Equal(t, time.Minute, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = g.enter(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		leave()
		leave, err = g.enter(t.Context())
		require.NoError(t, err)
		leave()
	})
}

// While others wait, work at a gate takes only its share of the time: with rest 3 a quarter of
// it.
func TestGateRestsWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("tests", 1).withQueue(100, time.Hour)
		g.rest = 3
		began := time.Now()
		done := make(chan struct{})
		for range 11 {
			go func() {
				leave, err := g.enter(context.Background())
				require.NoError(t, err)
				<-time.After(10 * time.Millisecond)
				leave()
				done <- struct{}{}
			}()
		}
		for range 11 {
			<-done
		}
		require.Equal(t, 410*time.Millisecond, time.Since(began)) // ten times 40 ms, and the last one

		leave, err := g.enter(context.Background())
		require.NoError(t, err, "nobody waits, so nobody rests")
		leave()
	})
}
