// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
	"rukpak.io/rukpak/internal/testenv/webserver"
)

func TestTransportsAreKeptAndBounded(t *testing.T) {
	var transports Transports
	first, err := transports.Get(TLS{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := transports.Get(TLS{}, false); again != first {
		t.Error("connections are not used again")
	}
	if other, _ := transports.Get(TLS{}, true); other == first {
		t.Error("one transport serves two policies")
	}
	for i := range maxTransports {
		authority, err := pki.New(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transports.Get(TLS{CA: authority.PEM}, false); err != nil {
			t.Fatal(err)
		}
	}
	if len(transports.kept) > maxTransports {
		t.Errorf("%d are kept", len(transports.kept))
	}
}

func TestBadCertificatesAreSaidAndNotShown(t *testing.T) {
	for name, with := range map[string]TLS{"CA": {CA: []byte("hunter2")}, "Pair": {Certificate: []byte("hunter2"), Key: []byte("hunter2")}, "Half": {Key: []byte("hunter2")}} {
		if _, err := (&Transports{}).Get(with, false); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTransportsRefuseAddresses(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	var transports Transports
	public, err := transports.Get(TLS{}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://169.254.169.254/", "http://[fd00:ec2::254]/", server.URL("/"), strings.Replace(server.URL("/"), "127.0.0.1", "localhost", 1)} {
		_, err := (&http.Client{Transport: public}).Get(url)
		if _, ok := errors.AsType[*AddressError](err); !ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	if len(server.Requests()) != 0 {
		t.Error("the server was asked")
	}
}

func TestTheTimeOfAReaderIsNotThatOfTheServer(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	url := server.Put("/a", make([]byte, 1<<20))
	client := &http.Client{Transport: Watched(http.DefaultTransport, 2*time.Second)}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // all that matters was read
	for range 2 {
		if _, err := io.CopyN(io.Discard, response.Body, 1000); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	server.Faults.Add(fault.Rule{Action: server.Faults.Stall(0)})
	_, err = client.Get(url)
	if _, ok := errors.AsType[*StallError](err); !ok {
		t.Errorf("got %v", err)
	}
}
