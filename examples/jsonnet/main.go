// SPDX-License-Identifier: Apache-2.0

// Command jsonnet is the provisioner "jsonnet.example.com": content written in Jsonnet, such as a mixin or a Tanka
// environment, evaluated to Kubernetes objects. It is an example of a provisioner that is not part of RukPak, and uses
// nothing of it but its public package provisioner.
package main

import (
	"fmt"
	"os"

	"rukpak.io/rukpak/provisioner"
)

func main() {
	if os.Getenv(childEnv) != "" { // Render starts this very program
		if err := evaluate(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	provisioner.Main(New())
}
