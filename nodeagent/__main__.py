"""`python -m nodeagent`: the node agent, configured by `NODEAGENT_` variables."""

from __future__ import annotations

import os
import sys

from contracts.process.config import read_config
from contracts.process.errors import ConfigError
from contracts.process.run import run_service
from nodeagent.config import NodeAgentConfig
from nodeagent.service import open_service


def main() -> int:
    """Run until SIGTERM; gives the exit code."""
    try:
        config = read_config(NodeAgentConfig, "NODEAGENT_", os.environ)
    except ConfigError as error:
        sys.stderr.write(f"nodeagent: {error}\n")
        return 2
    return run_service("nodeagent", lambda: open_service(config))


if __name__ == "__main__":
    sys.exit(main())
