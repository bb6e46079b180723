package main

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

// publicAddress returns an address of this machine that others can reach, without a port.
func publicAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("skipped: this machine has no address but those of the loopback interface")
	return ""
}

// With --public, the sandbox serves at an address that others reach, and the commands of this
// machine use it too.
func TestSandboxPublicAddress(t *testing.T) {
	for _, host := range []string{publicAddress(t), "0.0.0.0", "::"} {
		t.Run(host, func(t *testing.T) {
			setEnvironment(t, nil)
			b := startBox(t, "--users", "2", "--orders", "3", "--public", "--addr", net.JoinHostPort(host, "0"))
			if b.Users != 2 || b.Orders < 3 {
				t.Errorf("%d users, %d orders", b.Users, b.Orders)
			}
			_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.URL, "http://"))
			own := *b
			own.URL = "http://" + net.JoinHostPort(publicAddress(t), port)
			if host == "0.0.0.0" || host == "::" || b.URL == own.URL {
				var users struct{ Total int }
				own.call(http.MethodGet, "/v2/user/", "", &users)
				if users.Total != 2 {
					t.Errorf("%d users at %s", users.Total, own.URL)
				}
			} else {
				t.Errorf("the printed URL is %s", b.URL)
			}
			if got := command(t, "--sandbox", "users", "list", "--json"); got.code != 0 || strings.Count(got.stdout, "\n") != 2 {
				t.Errorf("users list: %+v", got)
			}
			if got := command(t, "--sandbox", "webhooks", "list"); got.code != 0 {
				t.Errorf("webhooks list: %+v", got)
			}
			if got := command(t, "--sandbox", "doctor"); strings.Contains(got.stdout, "failed") {
				t.Errorf("doctor: %+v", got)
			}
			got := command(t, "sandbox", "env")
			if got.code != 0 || !strings.HasPrefix(got.stdout, "export LABHEALTH_URL='http://127.0.0.1:"+port+"' ") {
				t.Errorf("env: %+v", got)
			}
			l := startListen(t, "--sandbox", "--file", t.TempDir()+"/d.db")
			if code := l.stop(); code != 0 {
				t.Errorf("listen: %d, %s", code, l.errors)
			}
		})
	}
}
