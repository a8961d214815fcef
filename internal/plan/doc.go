// SPDX-License-Identifier: Apache-2.0

// Package plan says what activating a revision would do, before anybody approves it: which objects would be added,
// changed and removed, field by field, what would be refused, what the service account lacks, and which images would run.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it reads
// what Render gave and what is live, and gives a value, which is kept beside the revision and shown to approvers. It
// asks the engine of package activate for the preview of every object, so that a plan and what is then done cannot
// differ in judgement. All it sends to the API server are reads, access reviews and dry runs, as the service account.
//
// What is in Secrets never gets into a plan: neither the data nor digests of it.
package plan
