package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

const maxUpload = 20 << 20

// app answers requests.
type app struct {
	queue    *bolt.Queue
	folder   string
	stopping context.Context // ends when the app stops
	log      hclog.Logger
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, page) })
	mux.HandleFunc("POST /pictures", a.upload)
	mux.HandleFunc("GET /pictures/{id}", a.thumbnail)
	mux.HandleFunc("GET /pictures/{id}/events", a.events)
	return mux
}

// upload answers with the ID of a job, once the picture and the job are on the disk. If a job for the same picture
// waits or runs, or its thumbnail is still kept, upload answers with the ID of that job.
func (a *app) upload(rw http.ResponseWriter, r *http.Request) {
	name, err := a.store(http.MaxBytesReader(rw, r.Body, maxUpload))
	if errors.As(err, new(*http.MaxBytesError)) {
		http.Error(rw, "the picture is too large", http.StatusRequestEntityTooLarge)
		return
	}
	var job pawl.Enqueued
	if err == nil {
		job, err = MakeThumbnail.Enqueue(r.Context(), a.queue, Picture{name},
			pawl.Unique(name, pawl.Ready, pawl.Delayed, pawl.Leased, pawl.Completed))
	}
	if err != nil {
		a.log.Error("cannot accept a picture", "error", err)
		http.Error(rw, "try again later", http.StatusServiceUnavailable)
		return
	}
	rw.WriteHeader(http.StatusAccepted)
	fmt.Fprintln(rw, job.ID)
}

// store writes a picture to a file that has its checksum as the name. The app never removes it.
func (a *app) store(from io.Reader) (name string, err error) {
	f, err := os.CreateTemp(a.folder, "upload-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) // after a rename it is not there
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), from)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	name = hex.EncodeToString(sum.Sum(nil))
	if err := os.Rename(f.Name(), filepath.Join(a.folder, name)); err != nil || runtime.GOOS == "windows" {
		return name, err
	}
	names, err := os.Open(a.folder)
	if err != nil {
		return "", err
	}
	return name, errors.Join(names.Sync(), names.Close()) // the name outlives a power failure, too
}

// thumbnail answers with the result of a job.
func (a *app) thumbnail(rw http.ResponseWriter, r *http.Request) {
	id, err := pawl.ParseID(r.PathValue("id"))
	var job *pawl.Envelope
	if err == nil {
		job, err = a.queue.Job(r.Context(), id)
	}
	var result Thumbnail
	if err == nil {
		result, err = MakeThumbnail.ResultOf(job)
	}
	switch {
	case err == nil:
		rw.Header().Set("Content-Type", "image/png")
		_, _ = rw.Write(result.PNG)
	case errors.Is(err, pawl.ErrConflict):
		http.Error(rw, "not yet", http.StatusAccepted)
	case errors.As(err, new(*pawl.DeadError)):
		http.Error(rw, "no thumbnail could be made", http.StatusUnprocessableEntity)
	default:
		http.Error(rw, "no such picture", http.StatusNotFound)
	}
}

// events streams the progress of a job, and then its end. A client that was cut off connects again.
func (a *app) events(rw http.ResponseWriter, r *http.Request) {
	id, err := pawl.ParseID(r.PathValue("id"))
	if err != nil {
		http.Error(rw, "no such picture", http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	ended := make(chan error, 1)
	go func() {
		_, err := MakeThumbnail.Wait(ctx, a.queue, id) // without polling
		ended <- err
	}()
	rw.Header().Set("Content-Type", "text/event-stream")
	send := func(event, data string) {
		fmt.Fprintf(rw, "event: %s\ndata: %s\n\n", event, data)
		_ = http.NewResponseController(rw).Flush()
	}
	send("progress", "waiting")
	last := ""
	for {
		select {
		case err := <-ended:
			switch {
			case ctx.Err() != nil:
			case errors.As(err, new(*pawl.DeadError)):
				send("failed", "no thumbnail could be made")
			case err != nil:
				send("failed", "no such picture")
			default:
				send("done", "/pictures/"+id.String())
			}
			return
		case <-time.After(200 * time.Millisecond): // progress is stored once a second
		}
		jobs, err := admin.Of(a.queue).Progress(ctx, id)
		if err == nil && len(jobs) == 1 && jobs[0].String() != last {
			last = jobs[0].String()
			send("progress", last)
		}
	}
}

const page = `<!doctype html><title>Thumbnails</title>
<input type=file accept="image/*"> <output></output><p><img>
<script>
const [input, output, img] = ["input", "output", "img"].map(name => document.querySelector(name))
input.onchange = async () => {
	const answer = await fetch("/pictures", {method: "POST", body: input.files[0]}), text = (await answer.text()).trim()
	if (!answer.ok) return output.value = text
	const events = new EventSource("/pictures/" + text + "/events")
	events.addEventListener("progress", e => output.value = e.data)
	for (const end of ["done", "failed"]) events.addEventListener(end, e => {
		events.close()
		if (end == "done") img.src = e.data
		output.value = end
	})
}
</script>
`
