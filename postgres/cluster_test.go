package postgres_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/need"
)

// server is the PostgreSQL cluster of this test binary.
var server struct {
	url     string // "" when there is none
	missing string // what is missing then
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	kills.Main(killed.Roles(nil))
	if err := flag.Set("test.parallel", "8"); err != nil { // tests wait for the server, so there may be more than processors
		panic(err)
	}
	os.Exit(runTests(m))
}

// serverOfParent is the environment variable by which a test gives its server to a child process.
const serverOfParent = "PAWL_TEST_SERVER"

func runTests(m *testing.M) int {
	if url := os.Getenv(serverOfParent); url != "" {
		server.url = url
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "pawl-postgres-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	stop, err := startServer(folder)
	if err != nil {
		server.missing = err.Error()
	} else {
		defer stop()
		server.url = "host=" + folder + " user=pawl dbname=postgres"
	}
	return m.Run()
}

// startServer starts a new cluster in a folder, where its socket is.
func startServer(folder string) (stop func(), err error) {
	programs, err := programsFolder()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(folder)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", serverScript)
	cmd.Env = append(os.Environ(), "FOLDER="+folder, "PATH="+programs+":"+os.Getenv("PATH"))
	cmd.Dir, cmd.SysProcAttr = folder, as
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = input.Close()
		_ = cmd.Wait() // it fails where the server did not start
	}
	text, _ := bufio.NewReader(output).ReadString('\n')
	if text != "ready\n" {
		log, _ := io.ReadAll(output)
		stop()
		return nil, fmt.Errorf("PostgreSQL did not start: %s%s", text, log)
	}
	return stop, nil
}

// serverScript runs the server until its input ends, so that the server ends with the test binary
// even when that panics or is killed. It stops the server by the process ID in its folder.
const serverScript = `
set -e
exec 2>&1
initdb -D "$FOLDER/data" -A trust -U pawl -E UTF8 --locale=C --no-sync >"$FOLDER/init" || { cat "$FOLDER/init"; exit 1; }
pg_ctl start -w -s -D "$FOLDER/data" -l "$FOLDER/log" -o "-k $FOLDER -c listen_addresses= -c fsync=off -c full_page_writes=off -c autovacuum=off -c max_connections=200"
echo ready
cat >/dev/null
pg_ctl stop -w -s -m immediate -D "$FOLDER/data"
rm -rf "$FOLDER/data"
`

// programsFolder returns the folder of the server's programs, those of Debian's newest version first.
func programsFolder() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(folders)
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", fmt.Errorf("PostgreSQL is missing: there is no initdb; on Debian, install the package postgresql")
}

// newSchema returns the name of a schema that goes with the test.
func newSchema(t testing.TB) string {
	t.Helper()
	need.Server(t, server.missing)
	name := fmt.Sprintf("test_%04d", server.names.Add(1)) // none is the beginning of another
	t.Cleanup(func() { execute(t, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return name
}

// execute runs statements on the server.
func execute(t testing.TB, sql string) {
	t.Helper()
	executeAt(t, server.url, sql)
}

func executeAt(t testing.TB, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(context.Background(), sql)
	require.NoError(t, err)
}

// hostOf returns the host of the server, for another connection string.
func hostOf() string {
	config, err := pgx.ParseConfig(server.url)
	if err != nil {
		panic(err)
	}
	return config.Host
}
