"""`python -m nodeagent`: the node agent, configured by `NODEAGENT_` variables."""

from __future__ import annotations

import sys

from nodeagent.config import NodeAgentConfig
from nodeagent.service import open_service
from runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("nodeagent", NodeAgentConfig, open_service))
