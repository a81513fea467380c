package handlers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// dialer connects only to addresses that it has checked.
type dialer struct {
	allowed []netip.Prefix
	trusted map[string]bool // hosts whose addresses are not checked
	only    map[string]bool // allowed hosts; nil means any
	ports   []int           // allowed ports; nil means any
	timeout time.Duration   // for one connection, including name resolution

	lookup func(ctx context.Context, host string) ([]netip.Addr, error) // lookupHost outside of tests
	own    func(netip.Addr) bool                                        // isOwn outside of tests
}

const (
	maxAddresses = 16              // tried per host
	minDial      = 2 * time.Second // per address, even if no time is left for the last ones
)

// dial is the DialContext of the transport. It resolves the name once, refuses the host if any
// of its addresses is forbidden, and connects to the addresses that it checked. A host that mixes
// forbidden and public addresses is probably an attack.
//
// It has its own deadline: the transport keeps dialing after the request is canceled, so that
// another request can use the connection, and a name server can return thousands of addresses.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, pawl.Permanent(err)
	}
	host = plainHost(host)
	if err := d.checkTarget(host, port); err != nil {
		return nil, pawl.Permanent(err)
	}
	deadline := time.Now().Add(d.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	addresses, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if err := d.check(host, a); err != nil {
			return nil, pawl.Permanent(err)
		}
	}
	addresses = addresses[:min(len(addresses), maxAddresses)]
	var failed error
	for i, a := range addresses {
		one := net.Dialer{Timeout: share(time.Until(deadline), len(addresses)-i)}
		conn, err := one.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// share returns the time limit for the next of n addresses, so that one address that does not
// answer leaves time for the others.
func share(left time.Duration, n int) time.Duration {
	return max(left/time.Duration(n), minDial)
}

func (d *dialer) check(host string, a netip.Addr) error {
	if d.trusted[host] {
		return nil
	}
	if err := checkAddress(a, d.allowed, d.own); err != nil {
		return fmt.Errorf("%s must not be reached: %w; allow its range or the host in the worker if jobs may reach it", host, err)
	}
	return nil
}

// checkTarget applies the operator's rules for hosts and ports.
func (d *dialer) checkTarget(host, port string) error {
	if d.only != nil && !d.only[host] {
		return fmt.Errorf("%s is not among the hosts that this worker may reach; add it there, then retry the job", host)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("%q is not a port number", port)
	}
	if d.ports != nil && !slices.Contains(d.ports, number) {
		return fmt.Errorf("port %d is not among the ports that this worker may reach; add it there, then retry the job", number)
	}
	return nil
}

func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addresses, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return addresses, nil
}

// plainHost returns the canonical form of a host name.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

func lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
