// SPDX-License-Identifier: Apache-2.0

// Package identity lets RukPak act as a service account and tells what that
// account may do. The steps plan, activate and watch use it: all writes for an
// instance, and the reads that decide them, are made in the account's name.
//
// Acting is by impersonation headers. There are no tokens to fetch, keep or
// renew, and the API server's audit log names both the account and the manager.
package identity
