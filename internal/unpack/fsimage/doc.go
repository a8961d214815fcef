// SPDX-License-Identifier: Apache-2.0

// Package fsimage reads filesystem images in place: ext2 to ext4, squashfs,
// ISO 9660 and FAT, alone or as partitions of a disk. It is part of unpack, the
// second step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// though nothing is unpacked: in the content store an image stays the one file
// that it is, with one digest. Who reads content goes inside with Inside, which
// gives every image a folder beside it, called like the image with "!" behind:
//
//	disk.img                    the image, a file
//	disk.img!/etc/os-release    a file in the filesystem of the image
//	disk.img!/p2/etc/fstab      the same on a disk with partitions: p1, p2, ...
//	live.iso!/live.squashfs!/a  an image inside an image
//
// Such a folder can be named and is not listed, so that who walks over the
// content sees no file twice. Only what is read of an image is looked at: one
// file of a large image costs a few pages of it.
//
// What an image is, its first bytes say, not its name. Images are as little
// trusted as archives: see package volume.
package fsimage
