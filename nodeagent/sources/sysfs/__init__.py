"""Devices that the kernel shows in /sys: PCI accelerators, NICs, NVMe disks."""
