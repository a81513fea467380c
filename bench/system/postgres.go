package system

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// PostgreSQL's manual has a quarter of the memory for a machine that serves nothing
	// else; this is room for every job of a measurement. The default is 128MB.
	postgresBuffers = "512MB"

	// The manual has a larger log for many writes, so that checkpoints are rare. Open
	// does one before each measurement.
	postgresWAL        = "4GB"
	postgresCheckpoint = "30min"

	// Everybody who can get at the socket is this user.
	postgresUser = "bench"
)

// postgresSettings are those of the server, for the report.
const postgresSettings = "PostgreSQL on a Unix socket, fsync and synchronous_commit on, shared_buffers " + postgresBuffers +
	", max_wal_size " + postgresWAL

// postgresService is the one server that the systems on PostgreSQL share.
const postgresService = "postgres"

func startPostgres(ctx context.Context, dir string) (*Server, error) {
	const hint = "postgresql"
	program, err := lookup("postgres", hint)
	if err != nil {
		return nil, err
	}
	// initdb must be of the same release, and lies beside what PATH has a link to.
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	initdb := filepath.Join(filepath.Dir(program), "initdb")
	if _, err := os.Stat(initdb); err != nil {
		return nil, absent("initdb", "apt-get install "+hint)
	}
	version, err := output(ctx, program, "--version")
	if err != nil {
		return nil, err
	}

	home, err := filepath.Abs(filepath.Join(dir, "postgres"))
	if err != nil {
		return nil, err
	}
	socket, err := socketPath(home, ".s.PGSQL.5432")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(home, "data")
	initialize := exec.CommandContext(ctx, initdb, "-D", data, "-U", postgresUser, "-A", "trust", "-E", "UTF8", "--locale=C")
	serve := exec.Command(program, "-D", data,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+home,
		"-c", "fsync=on", "-c", "synchronous_commit=on",
		"-c", "shared_buffers="+postgresBuffers,
		"-c", "max_wal_size="+postgresWAL, "-c", "checkpoint_timeout="+postgresCheckpoint,
	)
	if err := unprivileged(home, initialize, serve); err != nil {
		return nil, err
	}
	if out, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// The immediate end: its data is thrown away.
	p, err := launch(serve, syscall.SIGQUIT, filepath.Join(dir, "postgres.log"))
	if err != nil {
		return nil, err
	}

	server := &Server{Addr: socket, Version: version, Stop: p.stop}
	server.Usage = func(ctx context.Context) (Usage, error) { return postgresUsage(ctx, server, serve.Process.Pid) }
	err = p.await(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, postgresConfig(server))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return nil, err
	}
	return server, nil
}

// StartPostgres starts a server with its data in a folder, and returns how to connect to it.
func StartPostgres(ctx context.Context, dir string) (*Server, string, error) {
	server, err := startPostgres(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	return server, fmt.Sprintf("postgres://%s@/postgres?host=%s", postgresUser, url.QueryEscape(filepath.Dir(server.Addr))), nil
}

// ConnectPostgres connects to a server.
func ConnectPostgres(ctx context.Context, server *Server) (*pgx.Conn, error) {
	return pgx.Connect(ctx, postgresConfig(server))
}

// postgresConfig is how to connect: pgx wants the folder of the socket.
func postgresConfig(server *Server) string {
	return fmt.Sprintf("host='%s' user=%s dbname=postgres", filepath.Dir(server.Addr), postgresUser)
}

// startOver carries out a command that empties a queue. The checkpoint keeps the writes of the
// measurement before out of the next one.
func startOver(ctx context.Context, pool *pgxpool.Pool, command string) error {
	for _, command := range []string{command, "VACUUM", "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// postgresUsage is what the server and all its processes have used so far.
func postgresUsage(ctx context.Context, server *Server, pid int) (u Usage, err error) {
	conn, err := pgx.Connect(ctx, postgresConfig(server))
	if err != nil {
		return u, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err = conn.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8").Scan(&u.Log); err == nil {
		u.CPU, err = processorTime(pid)
	}
	return u, err
}
