// SPDX-License-Identifier: Apache-2.0

// Package rules decides how a reference is reached: which rule is about it,
// which endpoints are asked in which order, and how each is spoken to. It
// serves the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// It is pure: who reads files, objects and Secrets makes a Set of rules of
// them, and who speaks to servers asks the Set. The model is neutral between
// containers' registries.conf, containerd's hosts.toml and RegistryConfig, so
// that each can be read and written.
package rules
