"""The openb trace, one pod after the other: unallocated GPUs of every policy."""
