// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

func limitMemory(uint64) {}
