package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
)

const pageSize = 4096

// A journal knows of each file what a loss of power would take: writes go to the file at
// once, and what its pages held when they were last synced is kept here until the next sync.
type journal struct {
	mu    sync.Mutex
	files map[inode]*unsynced
}

type inode struct{ dev, ino uint64 }

// unsynced is what a file was when it was last synced, as far as that was changed since.
type unsynced struct {
	file  *os.File // a handle of our own: the file may be renamed, or closed by its writer
	size  int64
	pages map[int64][]byte // by number; those inside of size that were written since
}

// lost is what one loss of power took.
type lost struct {
	Files int   `json:"files"`
	Pages int   `json:"pages"`
	Bytes int64 `json:"bytes"` // by which files grew in vain
}

func newJournal() *journal {
	return &journal{files: map[inode]*unsynced{}}
}

// change lets act change the bytes [from, to) of the file behind fd; to < 0 means its end.
func (j *journal) change(fd int, from, to int64, act func() syscall.Errno) syscall.Errno {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.keep(fd, from, to); err != nil {
		fmt.Fprintln(os.Stderr, "lostpages:", err)
		return syscall.EIO
	}
	return act()
}

// synced forgets how the file behind fd was: it is on the disk as it is.
func (j *journal) synced(fd int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if id, _, err := identify(fd); err == nil {
		j.forget(id)
	}
}

func (j *journal) forget(id inode) {
	if found := j.files[id]; found != nil {
		found.file.Close()
		delete(j.files, id)
	}
}

func (j *journal) keep(fd int, from, to int64) error {
	id, size, err := identify(fd)
	if err != nil {
		return err
	}
	found := j.files[id]
	if found == nil {
		file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		found = &unsynced{file: file, size: size, pages: map[int64][]byte{}}
		j.files[id] = found
	}
	if to < 0 || to > found.size {
		to = found.size
	}
	for page := from / pageSize; page*pageSize < to; page++ {
		if _, ok := found.pages[page]; ok {
			continue
		}
		before := make([]byte, min(pageSize, found.size-page*pageSize))
		if _, err := found.file.ReadAt(before, page*pageSize); err != nil && err != io.EOF {
			return err
		}
		found.pages[page] = before
	}
	return nil
}

// lose takes what was not synced, as a loss of power would: of every second file all of
// it, of the others some pages, and the end from some page on.
func (j *journal) lose(seed uint64) (lost, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	draw, all := rand.New(rand.NewPCG(seed, seed)), lost{}
	for id, found := range j.files {
		pages, grown, err := found.restore(draw)
		if err != nil {
			return all, err
		}
		if pages > 0 || grown > 0 {
			all.Files++
		}
		all.Pages += pages
		all.Bytes += grown
		j.forget(id)
	}
	return all, nil
}

func (u *unsynced) restore(draw *rand.Rand) (pages int, grown int64, err error) {
	info, err := u.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	whole, size := draw.IntN(2) == 0, u.size
	if more := info.Size() - u.size; more > 0 && !whole {
		size += draw.Int64N(more+1) / pageSize * pageSize
	}
	for page, before := range u.pages {
		if !whole && draw.IntN(2) == 0 {
			continue
		}
		pages++
		if _, err := u.file.WriteAt(before, page*pageSize); err != nil {
			return 0, 0, err
		}
	}
	return pages, max(0, info.Size()-size), u.file.Truncate(size)
}

func identify(fd int) (inode, int64, error) {
	var found syscall.Stat_t
	err := syscall.Fstat(fd, &found)
	return inode{uint64(found.Dev), found.Ino}, found.Size, err
}
