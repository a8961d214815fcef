// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentVariable makes this test binary the parent in TestChildDiesWithItsParent.
const parentVariable = "TEST_PROCESS_PARENT_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		beParent(dir)
	}
	os.Exit(m.Run())
}

// beParent starts a child, tells its id, and waits to be killed.
func beParent(dir string) {
	child, err := Start(Spec{Name: "child", Path: "/bin/sleep", Args: []string{"300"}, Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.PID())
	time.Sleep(5 * time.Minute)
	os.Exit(0)
}

func TestChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the Linux kernel ties a child to its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("parent said %q", line)
	}
	if !alive(pid) {
		t.Fatalf("child %d does not run", pid)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for range 100 {
		if !alive(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("child %d outlives its killed parent", pid)
}

// alive tells whether a process runs. One that ended and was not yet waited for does not.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}

func TestErrTellsStatusAndLastWords(t *testing.T) {
	child := start(t, "echo first; echo last words >&2; exit 3")
	<-child.Done()
	want := "child ended (exit status 3); it said last:\nfirst\nlast words"
	if got := child.Err().Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	child := start(t, "trap '' TERM; echo ready; while true; do sleep 0.05; done")
	for child.Tail(1) != "ready" {
		time.Sleep(5 * time.Millisecond)
	}
	child.Stop(100 * time.Millisecond)
	select {
	case <-child.Done():
	default:
		t.Error("runs after Stop")
	}
}

func TestStartOfWhatIsNotThereFails(t *testing.T) {
	_, err := Start(Spec{Name: "child", Path: "/nowhere/at/all", Dir: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}

func TestReservedPortsDifferAndCanBeListenedOnAgain(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer port.Release()
		if seen[port.Number] {
			t.Fatalf("port %d was given out twice", port.Number)
		}
		seen[port.Number] = true
		for range 2 {
			listener, err := net.Listen("tcp", port.Address())
			if err != nil {
				t.Fatal(err)
			}
			_ = listener.Close()
		}
	}
}

func TestReservedPortIsNotGivenToAnother(t *testing.T) {
	port, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	locks := filepath.Dir(port.lock.Name())
	if _, ok := tryPort(locks, port.Number); ok {
		t.Error("given out twice")
	}
	port.Release()
	again, ok := tryPort(locks, port.Number)
	if !ok {
		t.Fatal("not given out after its release")
	}
	again.Release()
}

func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	inUse, abandoned := tempDir(t), tempDir(t)
	_ = abandoned.lock.Close() // as the end of its process does
	for _, dir := range []*Dir{inUse, abandoned} {
		old := time.Now().Add(-2 * youngest)
		if err := os.Chtimes(filepath.Join(dir.Path, "lock"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	young := tempDir(t)
	_ = young.lock.Close()

	another := tempDir(t)
	for dir, want := range map[*Dir]bool{inUse: true, abandoned: false, young: true, another: true} {
		if _, err := os.Stat(dir.Path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir.Path, err == nil, want)
		}
	}
	if err := another.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(another.Path); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}

func start(t *testing.T, script string) *Process {
	t.Helper()
	child, err := Start(Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-child.PID(), syscall.SIGKILL) })
	return child
}

func tempDir(t *testing.T) *Dir {
	t.Helper()
	dir, err := TempDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
