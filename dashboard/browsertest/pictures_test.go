package browsertest

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("pictures", "", "`folder` for the pictures of the dashboard in the documents")

// TestPictures makes the pictures of the dashboard from a run of examples/dashboard. It takes more than a minute, since
// the overview counts by minute.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("it makes pictures; run make pictures")
	}
	program := filepath.Join(t.TempDir(), "app")
	out, err := exec.Command("go", "build", "-o", program, "github.com/gopawl/pawl/examples/dashboard").CombinedOutput()
	require.NoError(t, err, "%s", out)
	app := exec.Command(program, "-addr", "127.0.0.1:0", "-n", "3000")
	lines, err := app.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, app.Start())
	defer func() {
		require.NoError(t, app.Process.Signal(syscall.SIGTERM))
		require.NoError(t, app.Wait())
	}()
	address := bufio.NewScanner(lines)
	require.True(t, address.Scan())
	_, origin, _ := strings.Cut(address.Text(), ": ") // of ada, who may do everything
	b := open(t, launch(t), strings.TrimSuffix(origin, "/"))
	shoot := func(page, theme, name string) {
		b.look(1100, theme)
		_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1100, Height: 760, DeviceScaleFactor: 1})
		require.NoError(t, err)
		b.visit(page)
		image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(*pictures, name), image, 0o644))
	}
	b.visit("")
	time.Sleep(70 * time.Second) // the overview has a row for each minute
	shoot("", "light", "dashboard.png")
	b.visit("runs")
	run := eval[string](b, `document.querySelector("tbody a.mono").getAttribute("href")`)
	shoot(run, "dark", "dashboard-run.png")
}
