// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is a folder for the data of servers, removed when it is closed, or by the next process that calls TempDir
// when this one was killed before.
type Dir struct {
	Path string
	lock *os.File
}

const (
	dirPattern = "rukpak-testenv-"
	youngest   = time.Minute // age below which a lock file is not judged
)

// TempDir makes a new folder below the system's temporary one, and removes those that killed processes have left.
func TempDir() (*Dir, error) {
	removeAbandoned()
	path, err := os.MkdirTemp("", dirPattern)
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path, lock: lock}, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// Close removes the folder and what is in it.
func (d *Dir) Close() error {
	err := os.RemoveAll(d.Path)
	_ = d.lock.Close()
	return err
}

// Keep leaves the folder where it is, for somebody to look into.
func (d *Dir) Keep() {
	_ = os.Remove(d.lock.Name()) // without its lock file it does not count as abandoned
	_ = d.lock.Close()
}

// removeAbandoned removes folders whose lock nobody holds. A folder just made has no lock file yet, and is left.
func removeAbandoned() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern+"*", "lock"))
	for _, path := range locks {
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		if abandoned(lock) {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}

// abandoned takes the lock of a folder. The process that made it a moment ago holds it from the time that the file
// is a few milliseconds old, so a young file is never abandoned.
func abandoned(lock *os.File) bool {
	info, err := lock.Stat()
	if err != nil || time.Since(info.ModTime()) < youngest {
		return false
	}
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
