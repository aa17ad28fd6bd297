package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A node is a file or folder of the folder below; its handles tell the journal.
type node struct {
	*fs.LoopbackNode
	unsynced *journal
}

func (n *node) WrapChild(_ context.Context, below fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{below.(*fs.LoopbackNode), n.unsynced}
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		if errno := n.truncate(0); errno != 0 {
			return nil, 0, errno
		}
	}
	below, _, errno := n.LoopbackNode.Open(ctx, flags&^syscall.O_TRUNC)
	if errno != 0 {
		return nil, 0, errno
	}
	return n.handle(below, flags), fuse.FOPEN_DIRECT_IO, 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32,
	out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	made, below, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return made, n.handle(below, flags), fuse.FOPEN_DIRECT_IO, 0
}

func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn,
	out *fuse.AttrOut,
) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if errno := n.truncate(int64(size)); errno != 0 {
			return errno
		}
	}
	if mine, ok := f.(*handle); ok {
		f = mine.LoopbackFile
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

func (n *node) truncate(size int64) syscall.Errno {
	path := filepath.Join(n.RootData.Path, n.Path(n.Root()))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fs.ToErrno(err)
	}
	defer file.Close()
	return n.unsynced.change(int(file.Fd()), size, -1, func() syscall.Errno {
		return fs.ToErrno(file.Truncate(size))
	})
}

func (n *node) handle(below fs.FileHandle, flags uint32) *handle {
	return &handle{below.(*fs.LoopbackFile), n.unsynced, flags&syscall.O_DSYNC != 0}
}

// A handle is an open file. O_DSYNC is a part of O_SYNC.
type handle struct {
	*fs.LoopbackFile
	unsynced *journal
	syncs    bool
}

func (h *handle) Write(ctx context.Context, data []byte, off int64) (n uint32, errno syscall.Errno) {
	to := off + int64(len(data))
	errno = h.unsynced.change(h.fd(), off, to, func() syscall.Errno {
		n, errno = h.LoopbackFile.Write(ctx, data, off)
		return errno
	})
	if h.syncs {
		h.unsynced.synced(h.fd())
	}
	return n, errno
}

func (h *handle) Fsync(_ context.Context, _ uint32) syscall.Errno {
	h.unsynced.synced(h.fd())
	return 0
}

func (h *handle) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	return h.unsynced.change(h.fd(), int64(off), int64(off+size), func() syscall.Errno {
		return h.LoopbackFile.Allocate(ctx, off, size, mode)
	})
}

// PassthroughFd keeps reads and writes here: the kernel is given no way around us.
func (h *handle) PassthroughFd() (int, bool) {
	return 0, false
}

func (h *handle) fd() int {
	fd, _ := h.LoopbackFile.PassthroughFd()
	return fd
}
