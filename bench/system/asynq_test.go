package system

import (
	"testing"
)

func TestAsynq(t *testing.T)         { testServer(t, Asynq()) }
func TestAsynqEverySec(t *testing.T) { testServer(t, AsynqEverySec()) }
func TestPawlRedis(t *testing.T)     { testServer(t, PawlRedis()) }

// TestRedisDurability has what the two systems of asynq claim.
func TestRedisDurability(t *testing.T) {
	for _, c := range []struct {
		system      System
		appendfsync string
	}{
		{Asynq(), "always"},
		{AsynqEverySec(), "everysec"},
	} {
		t.Run(c.system.Name, func(t *testing.T) {
			server := startServer(t, c.system)
			client := redisClient(server.Addr)
			defer client.Close()
			for name, want := range map[string]string{
				"appendonly":  "yes",
				"appendfsync": c.appendfsync,
				"save":        "",
			} {
				got, err := client.ConfigGet(t.Context(), name).Result()
				if err != nil {
					t.Fatal(err)
				}
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
		})
	}
}
