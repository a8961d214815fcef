// SPDX-License-Identifier: Apache-2.0

// Package notify tells the receivers that a class names what waits for an approval and
// what was decided, as CloudEvents 1.0 over HTTP. It makes the event out of a revision, and
// sends it to one receiver; controller/notify says when, and keeps what was told.
package notify
