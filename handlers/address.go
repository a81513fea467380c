package handlers

import (
	"fmt"
	"net"
	"net/netip"
)

// special holds the IANA special-purpose address ranges that are not ordinary Internet hosts,
// and the ranges that clouds reserve. Only 2000::/3 of IPv6 is assigned to hosts so far, so
// everything outside it is refused without being listed: link-local, unique local, multicast,
// IPv4-compatible and local NAT64 addresses.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a provider's shared network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's metadata address, which gives out credentials"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep credentials"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved, or broadcast"},

	{netip.MustParsePrefix("2001::/23"), "for protocols, Teredo among them"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4, which leads to an IPv4 address"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
}

var (
	unicast = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // ends in the target's IPv4 address (RFC 6052)
)

// checkAddress returns nil if a connection to a is allowed, and otherwise the reason why it is
// not. Addresses in the allowed ranges always may be. own reports whether an address belongs
// to this machine.
func checkAddress(a netip.Addr, allowed []netip.Prefix, own func(netip.Addr) bool) error {
	if a.Zone() != "" {
		return fmt.Errorf("%s has a zone, so it is on a network of this machine", a)
	}
	a = a.Unmap()
	for _, prefix := range allowed {
		if prefix.Contains(a) {
			return nil
		}
	}
	if nat64.Contains(a) {
		b := a.As16()
		if err := checkAddress(netip.AddrFrom4([4]byte(b[12:])), allowed, own); err != nil {
			return fmt.Errorf("%s leads to an IPv4 address: %w", a, err)
		}
		return nil
	}
	for _, range_ := range special {
		if range_.prefix.Contains(a) {
			return fmt.Errorf("%s is %s (%s)", a, range_.what, range_.prefix)
		}
	}
	if a.Is6() && !unicast.Contains(a) {
		return fmt.Errorf("%s is not an address of a host on the Internet (%s)", a, unicast)
	}
	if own(a) {
		return fmt.Errorf("%s is this machine", a)
	}
	return nil
}

// isOwn reports whether a, public or not, belongs to this machine. Services often trust
// connections from the same machine. Connecting a UDP socket sends nothing, and needs no
// permission to list the interfaces.
func isOwn(a netip.Addr) bool {
	const discard = 9 // any port works
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, discard)))
	if err != nil {
		return false // unreachable
	}
	defer conn.Close()
	from, ok := conn.LocalAddr().(*net.UDPAddr)
	return ok && from.AddrPort().Addr().Unmap() == a
}
