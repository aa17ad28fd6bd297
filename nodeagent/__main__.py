"""`python -m nodeagent`: the node agent, configured by `NODEAGENT_` variables."""

from __future__ import annotations

import asyncio
import os
import sys

from nodeagent.config import NodeAgentConfig
from nodeagent.service import open_service
from runtime.main import service_main

# A command that a source runs executes another program at once: gRPC need not prepare
# for a fork, and would write a line each time.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

if __name__ == "__main__":
    # A node says little: Python's own loop does, and takes less of the node's memory.
    new_loop = asyncio.new_event_loop
    sys.exit(service_main("nodeagent", NodeAgentConfig, open_service, new_loop))
