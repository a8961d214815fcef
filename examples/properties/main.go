// SPDX-License-Identifier: Apache-2.0

// Command properties is the provisioner "properties.example.com": it makes a ConfigMap of each .properties file. It is the
// one that docs/provisioners/write-your-own.md writes, and as small as a provisioner can be.
package main

import "rukpak.io/rukpak/provisioner"

func main() { provisioner.Main(properties{}) }
