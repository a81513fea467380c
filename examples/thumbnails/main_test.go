package main

import (
	"bufio"
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/examples/internal/itself"
	"github.com/gopawl/pawl/internal/memdir"
)

func TestMain(m *testing.M) { itself.Main(main, m.Run) }

// start runs the program, and returns its URL.
func start(t *testing.T, folder, pause string) (child *exec.Cmd, url string) {
	t.Helper()
	child = itself.Command(t.Context(), "-addr", "127.0.0.1:0", "-folder", folder, "-pause", pause)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return child, strings.TrimSpace(line)
}

func upload(t *testing.T, url string, body []byte) (id string) {
	t.Helper()
	answer, err := http.Post(url+"pictures", "application/octet-stream", bytes.NewReader(body))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, answer.StatusCode, string(text))
	return strings.TrimSpace(string(text))
}

// follow reads the events of a picture until one has this beginning.
func follow(t *testing.T, url, id, until string) {
	t.Helper()
	answer, err := http.Get(url + "pictures/" + id + "/events")
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), until) {
			return
		}
	}
	t.Fatalf("the events ended without %q: %v", until, lines.Err())
}

func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, body
}

// Rule: a picture that was accepted gets its thumbnail, also if the program is killed while it makes it. What is no
// picture gets none. A signal ends the program cleanly.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	picture := image.NewRGBA(image.Rect(0, 0, 400, 100))
	for x := range 400 {
		for y := range 100 {
			picture.Set(x, y, color.RGBA{R: 200, A: 255})
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, picture))

	folder := memdir.New(t)
	child, url := start(t, folder, "10m") // after each row, so it cannot end before the kill
	id := upload(t, url, b.Bytes())
	require.Equal(t, id, upload(t, url, b.Bytes()), "the same picture")
	follow(t, url, id, "data: 1/50")
	status, _ := get(t, url+"pictures/"+id)
	require.Equal(t, http.StatusAccepted, status)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	child, url = start(t, folder, "0s")
	follow(t, url, id, "event: done")
	status, body := get(t, url+"pictures/"+id)
	require.Equal(t, http.StatusOK, status)
	small, err := png.Decode(bytes.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 200, 50), small.Bounds())
	require.Equal(t, color.RGBA{R: 200, A: 255}, color.RGBAModel.Convert(small.At(7, 7)))

	id = upload(t, url, []byte("no picture"))
	follow(t, url, id, "event: failed")
	status, _ = get(t, url+"pictures/"+id)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, _ = get(t, url+"pictures/nobody")
	require.Equal(t, http.StatusNotFound, status)
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	require.NoError(t, child.Wait())
}
