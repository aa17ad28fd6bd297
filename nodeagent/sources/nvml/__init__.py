"""NVIDIA's GPUs by NVML, the library that comes with their driver."""
