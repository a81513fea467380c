package system

import (
	"sync"
	"testing"
)

func TestRiverPostgres(t *testing.T) { testServer(t, RiverPostgres()) }

func TestPawlPostgres(t *testing.T) { testServer(t, PawlPostgres()) }

// TestPostgresDurability asks each connection of a pool that is in full use.
func TestPostgresDurability(t *testing.T) {
	s := RiverPostgres()
	q := openServer(t, s, startServer(t, s)).(*riverPostgres)
	defer q.Close()

	var held, group sync.WaitGroup
	held.Add(riverPool)
	for range riverPool {
		group.Go(func() {
			conn, err := q.pool.Acquire(t.Context())
			held.Done()
			if err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			defer conn.Release()
			held.Wait()
			for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
				var value string
				if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if value != "on" {
					t.Errorf("%s is %s", name, value)
				}
			}
		})
	}
	group.Wait()
}
