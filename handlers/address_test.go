package handlers

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: only public addresses may be reached, however they are written; allowed ranges are
// exceptions.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		address string
		ok      bool
	}{
		{"1.1.1.1", true},
		{"93.184.216.34", true},
		{"100.63.255.255", true}, {"100.128.0.0", true},
		{"172.15.255.255", true}, {"172.32.0.0", true},
		{"223.255.255.255", true},
		{"2606:4700:4700::1111", true},
		{"2a00:1450:4001:82a::200e", true},
		{"::ffff:1.1.1.1", true},
		{"64:ff9b::1.1.1.1", true},

		{"0.0.0.0", false}, {"0.1.2.3", false},
		{"10.0.0.0", false}, {"10.255.255.255", false},
		{"100.64.0.1", false}, {"100.127.255.255", false},
		{"127.0.0.1", false}, {"127.255.255.254", false},
		{"168.63.129.16", false}, {"::ffff:168.63.129.16", false},
		{"169.254.169.254", false},
		{"172.16.0.1", false}, {"172.31.255.255", false},
		{"192.0.0.8", false}, {"192.0.2.1", false}, {"192.88.99.1", false},
		{"192.168.0.1", false}, {"198.18.0.1", false}, {"198.19.255.255", false},
		{"198.51.100.1", false}, {"203.0.113.1", false},
		{"224.0.0.1", false}, {"239.255.255.255", false}, {"240.0.0.1", false}, {"255.255.255.255", false},
		{"::", false}, {"::1", false}, {"::7f00:1", false},
		{"::ffff:127.0.0.1", false}, {"::ffff:10.0.0.1", false}, {"::ffff:169.254.169.254", false},
		{"::ffff:0:127.0.0.1", false},
		{"64:ff9b::127.0.0.1", false}, {"64:ff9b::169.254.169.254", false}, {"64:ff9b:1::1.1.1.1", false},
		{"100::1", false},
		{"2001::1", false}, {"2001:0:1::1", false}, {"2001:2::1", false}, {"2001:20::1", false}, {"2001:db8::1", false},
		{"2002:7f00:1::", false}, {"2002:101:101::", false},
		{"3fff::1", false}, {"5f00::1", false},
		{"fc00::1", false}, {"fd12:3456::1", false},
		{"fe80::1", false}, {"fe80::1%eth0", false}, {"2606:4700::1%eth0", false}, {"fec0::1", false},
		{"ff02::1", false},
	} {
		err := checkAddress(netip.MustParseAddr(c.address), nil, nobody)
		require.Equal(t, c.ok, err == nil, "%s: %v", c.address, err)
	}

	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}
	for address, ok := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::10.1.2.3": true, "::1": true,
		"10.2.0.1": false, "::2": false, "127.0.0.1": false} {
		require.Equal(t, ok, checkAddress(netip.MustParseAddr(address), allowed, nobody) == nil, address)
	}
}

func nobody(netip.Addr) bool { return false }

// Rule: a public address of this machine is forbidden like 127.0.0.1 unless it is allowed.
func TestOwnPublicAddress(t *testing.T) {
	mine := netip.MustParseAddr("93.184.216.34")
	own := func(a netip.Addr) bool { return a == mine }
	for _, address := range []string{"93.184.216.34", "::ffff:93.184.216.34", "64:ff9b::93.184.216.34"} {
		err := checkAddress(netip.MustParseAddr(address), nil, own)
		require.ErrorContains(t, err, "93.184.216.34 is this machine", address)
	}
	require.NoError(t, checkAddress(netip.MustParseAddr("93.184.216.35"), nil, own))
	require.NoError(t, checkAddress(mine, []netip.Prefix{netip.PrefixFrom(mine, 32)}, own))
}

// Rule: isOwn reports exactly the addresses of the machine's interfaces.
func TestIsOwn(t *testing.T) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Skipf("this machine does not tell its addresses: %v", err)
	}
	for _, i := range interfaces {
		prefix, err := netip.ParsePrefix(i.String())
		require.NoError(t, err)
		if a := prefix.Addr(); !a.IsLinkLocalUnicast() { // those need a zone, and are refused anyway
			require.True(t, isOwn(a), a)
		}
	}
	require.False(t, isOwn(netip.MustParseAddr("1.1.1.1")))
	require.False(t, isOwn(netip.MustParseAddr("2606:4700:4700::1111")))
}
