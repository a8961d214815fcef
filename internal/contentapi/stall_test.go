// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAClientThatStandsStillIsLeft has a client that takes no byte of an answer, and one that sends half of an upload.
func TestAClientThatStandsStillIsLeft(t *testing.T) {
	for name, request := range map[string]string{
		"Reads": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"Sends": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w, r = inMotion(w, r, 200*time.Millisecond)
				_, err := io.Copy(io.Discard, r.Body)
				for piece := make([]byte, 1<<20); err == nil; {
					_, err = w.Write(piece)
				}
				ended <- err
			}))
			t.Cleanup(server.Close)
			client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() }) // nothing was kept of it
			if _, err := io.WriteString(client, request); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil { // or the test never ends
				t.Error("a client that stands still is served without an error")
			}
		})
	}
}

// TestAClientThatMovesIsServed takes longer than the limit for the whole, and less for each piece.
func TestAClientThatMovesIsServed(t *testing.T) {
	const pieces, stall = 20, 2 * time.Second
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w, r = inMotion(w, r, stall)
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, len(body), err) // the client looks
	}))
	t.Cleanup(server.Close)
	reader, writer := io.Pipe()
	go func() {
		out := bufio.NewWriter(writer)
		for range pieces {
			_, _ = out.WriteString("x")
			_ = out.Flush()
			time.Sleep(stall / 10)
		}
		_ = writer.Close()
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // all that matters was read
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != fmt.Sprint(pieces, nil) {
		t.Errorf("%q, %v", text, err)
	}
}
