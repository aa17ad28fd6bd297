"""`python -m nodeagent.sources.nvml`: records this machine's GPUs, as JSON."""

from __future__ import annotations

import sys

from nodeagent.sources.nvml.calls import NvmlError
from nodeagent.sources.nvml.library import open_library
from nodeagent.sources.nvml.record import record

if __name__ == "__main__":
    try:
        sys.stdout.buffer.write(record(open_library(), " ".join(sys.argv[1:])))
    except NvmlError as error:
        sys.exit(f"error: {error}; is NVIDIA's driver loaded?")
