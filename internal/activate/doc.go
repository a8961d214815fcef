// SPDX-License-Identifier: Apache-2.0

// Package activate brings objects into a cluster and takes them out again. It is the last step but one of the flow:
// source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch.
//
// It has three levels, and each knows only the one below: a revision is phases in order, a phase is objects side by
// side, an object is a few requests. The answer is a Result, a value: the engine writes no condition, sends no event
// and knows no kind of RukPak's API.
//
// What it promises:
//   - An absent object is created, never applied, so that a stranger's object is not taken by accident. One that is
//     there is taken only where package ownership allows it.
//   - An object that is as it should be costs no write, and no request at all if the cache of the watch can vouch for
//     it. One that differs costs one server-side apply.
//   - What the content no longer says goes, also where an older client-side tool or our own create left it. What
//     others add stays.
//   - Tasks are run, not kept: each once in a run, waited for until it has ended, and not looked at afterwards.
//   - Phases go in order. A fault in one stops those after it, and all faults of that phase are told.
//   - No call takes long. What needs time is Waiting, and the caller comes again.
//   - Deletes name the UID and the resource version of what was looked at.
//   - A call that is cut off at any point can be made again.
package activate
