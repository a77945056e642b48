// Package disk tells how much space a folder's file system has left.
package disk
