//go:build kubernetes138

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/structured"
)

func newAllocator(c *Case, classes classLister) (structured.Allocator, error) {
	slices := make([]*draapi.ResourceSlice, len(c.Slices))
	for i, slice := range c.Slices {
		slices[i] = &draapi.ResourceSlice{}
		if err := draapi.Convert_v1_ResourceSlice_To_api_ResourceSlice(slice, slices[i], nil); err != nil {
			return nil, err
		}
	}
	return structured.NewAllocator(context.Background(), c.Features, state(c), classes, slices, celCache(c.Features))
}

func addShared(s *structured.AllocatedState, shared []SharedRef) {
	s.AllocatedSharedDeviceIDs = sets.New[structured.DeviceID]()
	for _, d := range shared {
		s.AllocatedSharedDeviceIDs.Insert(id(d.DeviceRef))
	}
}
