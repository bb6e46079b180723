package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// listenAt listens at an address. Only with public, other machines can reach it.
func listenAt(ctx context.Context, addr string, public bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--addr %q is not HOST:PORT, such as 127.0.0.1:8080", addr)
	}
	if host == "" && !public {
		return nil, notLoopback(addr)
	}
	if host != "" {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, usagef("--addr %q: the host is unknown", addr)
		}
		ip := ips[0].Unmap()
		if i := slices.IndexFunc(ips, netip.Addr.Is4); host == "localhost" && i >= 0 {
			ip = ips[i]
		}
		if !ip.IsLoopback() && !public {
			return nil, notLoopback(addr)
		}
		addr = net.JoinHostPort(ip.String(), port) // the address that was checked, and not a later result
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usagef("another program uses the port of %s: choose one with --addr, such as --addr %s for a free port", addr, net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("--addr %s: %w", addr, err)
	}
	return listener, nil
}

func notLoopback(addr string) error {
	return usagef("--addr %s can be reached by other machines: use 127.0.0.1, localhost or [::1], or add --public", addr)
}

// baseURL returns the address for programs of this machine.
func baseURL(addr net.Addr) string {
	a, err := netip.ParseAddrPort(addr.String())
	if err == nil && a.Addr().IsUnspecified() {
		return "http://127.0.0.1:" + strconv.Itoa(int(a.Port()))
	}
	return "http://" + addr.String()
}

// hosts returns the values of the Host header that mean the console: the names of this machine, for
// an address that only this machine can reach, and with public also its addresses in the network.
func hosts(addr net.Addr, public bool) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil
	}
	names = append(names, host)
	if public {
		if name, err := os.Hostname(); err == nil {
			names = append(names, name)
		}
		addrs, _ := net.InterfaceAddrs()
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				names = append(names, prefix.Addr().String())
			}
		}
	}
	var all []string
	for _, name := range names {
		all = append(all, net.JoinHostPort(name, port))
		if port == "80" {
			all = append(all, strings.TrimSuffix(net.JoinHostPort(name, port), ":80"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// admits returns a function that returns why a delivery is not accepted: websites send none. If the
// secret is public, they may sign one, and send it by a name of theirs that leads to this machine.
func admits(addr net.Addr, public, publicSecret bool) func(*http.Request) error {
	own := hosts(addr, public)
	return func(r *http.Request) error {
		isForeign := func(origin string) bool {
			return !slices.Contains(own, strings.TrimPrefix(strings.ToLower(origin), "http://"))
		}
		if slices.ContainsFunc(r.Header.Values("Origin"), isForeign) {
			return errors.New("a website sent one: the header Origin is not that of this receiver")
		}
		if name := hostName(r.Host); publicSecret && !isLocalName(name) &&
			!slices.ContainsFunc(own, func(host string) bool { return hostName(host) == name }) {
			return errors.New("one was sent to another host: with the secret of a sandbox, use localhost or 127.0.0.1")
		}
		return nil
	}
}

// hostName returns the name or the address of a Host header.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isLocalName reports whether a name always leads to this machine.
func isLocalName(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback() || name == "localhost" || strings.HasSuffix(name, ".localhost")
}
