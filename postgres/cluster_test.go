package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// server is the PostgreSQL cluster of this test binary.
var server struct {
	url     string // "" when there is none
	missing string // what is missing then
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
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

// startServer starts a cluster of its own in a folder, which it reaches by a socket there.
func startServer(folder string) (stop func(), err error) {
	programs, err := programsFolder()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(folder)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	run := func(program string, args ...string) error {
		cmd := exec.Command(filepath.Join(programs, program), args...)
		cmd.Dir, cmd.SysProcAttr = folder, as
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", program, err, text)
		}
		return nil
	}
	if err := run("initdb", "-D", data, "-A", "trust", "-U", "pawl", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	settings := "-k " + folder + " -c listen_addresses= -c fsync=off -c full_page_writes=off -c autovacuum=off -c max_connections=200"
	if err := run("pg_ctl", "start", "-w", "-s", "-D", data, "-l", filepath.Join(folder, "log"), "-o", settings); err != nil {
		return nil, err
	}
	return func() { // by the process ID in the folder
		if err := run("pg_ctl", "stop", "-w", "-s", "-m", "immediate", "-D", data); err != nil {
			panic(err)
		}
	}, nil
}

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
	if server.url == "" {
		t.Skip(server.missing)
	}
	name := fmt.Sprintf("test_%d", server.names.Add(1))
	t.Cleanup(func() { execute(t, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return name
}

// execute runs statements on the server.
func execute(t testing.TB, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(context.Background(), sql)
	require.NoError(t, err)
}
