// Package postgres will be the queue of package pawl in a PostgreSQL database. So far it has only
// what its tests need: a cluster of their own.
package postgres
