//go:build !kubernetes138

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

func newAllocator(c *Case, classes classLister) (structured.Allocator, error) {
	return structured.NewAllocator(context.Background(), c.Features, state(c), classes, c.Slices, celCache(c.Features))
}

func addShared(s *structured.AllocatedState, shared []SharedRef) {
	s.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
	for _, d := range shared {
		uid := types.UID(d.ShareID)
		s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id(d.DeviceRef), &uid))
	}
}
