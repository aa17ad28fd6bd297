"""`python -m nodeagent`: the node agent, configured by `NODEAGENT_` variables."""

from __future__ import annotations

import sys

from contracts.process.main import service_main
from nodeagent.config import NodeAgentConfig
from nodeagent.service import open_service

if __name__ == "__main__":
    sys.exit(service_main("nodeagent", NodeAgentConfig, open_service))
