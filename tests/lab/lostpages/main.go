// Command lostpages mounts a folder so that a loss of power can be played: what was
// written and not synced is lost on demand.
//
//	lostpages FOLDER MOUNTPOINT
//
// It says "mounted" when it is. Each line "lose SEED" on standard input takes what was not
// synced and is answered by what it took, as JSON; the end of input unmounts. Files that
// were made, renamed or removed stay so, with or without a sync of their directory.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	log.SetPrefix("lostpages: ")
	if len(os.Args) != 3 {
		log.Fatal("usage: lostpages FOLDER MOUNTPOINT")
	}
	loopback, err := fs.NewLoopbackRoot(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	unsynced := newJournal()
	root := &node{loopback.(*fs.LoopbackNode), unsynced}
	options := &fs.Options{MountOptions: fuse.MountOptions{
		DirectMount: true, FsName: "lostpages", Name: "lostpages",
	}}
	if _, err := fs.Mount(os.Args[2], root, options); err != nil {
		log.Fatal(err)
	}
	fmt.Println("mounted")
	if err := obey(unsynced); err != nil {
		log.Print(err)
	}
	// Whoever is still in it gets errors when we end; nobody is waited for.
	if err := syscall.Unmount(os.Args[2], syscall.MNT_DETACH); err != nil {
		log.Fatal(err)
	}
}

func obey(unsynced *journal) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var seed uint64
		if _, err := fmt.Sscanf(lines.Text(), "lose %d", &seed); err != nil {
			return fmt.Errorf("%q: not understood", lines.Text())
		}
		taken, err := unsynced.lose(seed)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(taken); err != nil {
			return err
		}
	}
	return lines.Err()
}
