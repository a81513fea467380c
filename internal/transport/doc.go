// Package transport has what the engines over message brokers do alike: the form of a job in a message, what a
// settlement makes of a job, the leases of a process, and the order of fetches.
package transport
