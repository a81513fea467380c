package system

import (
	"bytes"
	"testing"
	"time"
)

func TestBeanstalkd(t *testing.T) { testServer(t, Beanstalkd()) }

// TestBeanstalkdLongest has the longest payload of the benchmark, which is longer than
// the default lets through.
func TestBeanstalkdLongest(t *testing.T) {
	s := Beanstalkd()
	q := openServer(t, s, startServer(t, s))
	defer q.Close()
	payload := bytes.Repeat([]byte("\r\n\x00x"), 16<<10)
	if err := q.Enqueue(t.Context(), payload); err != nil {
		t.Fatal(err)
	}
	came := make(chan []byte, 1)
	end := workServer(t, q, func(payload []byte) { came <- payload })
	select {
	case got := <-came:
		if !bytes.Equal(got, payload) {
			t.Errorf("%d bytes came, not the %d that were sent", len(got), len(payload))
		}
	case <-time.After(limit):
		t.Error("the job did not come")
	}
	end()
}
