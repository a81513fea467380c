// Package redis is a job queue on a Redis or Valkey server, for several processes and machines. It needs
// Redis 7.0 or later.
//
//	q, err := redis.Open(ctx, "redis://localhost:6379/0", nil)
//
// The queue keeps the whole contract, except that it has no transactions of the app and does not support package
// workflow. Each call runs a script on the server. Concurrent calls of a process share one run of the script.
//
// Whether a change is on stable storage when its call returns depends on the server. With "appendonly yes"
// and "appendfsync always" it is, and the queue has the ability [pawl.Synced]. With "appendfsync
// everysec", which is the default of Redis with appendonly, a crash of the machine loses one or two seconds
// of acknowledged changes. Without appendonly, a crash loses everything since the last snapshot. Use
// [pawl.Require] to insist on an ability. A failover to a replica can lose acknowledged changes in any
// case, because replication is asynchronous.
//
// All jobs are in the memory of the server. Open refuses a server that evicts keys when its memory is full.
package redis
