"""`python -m solver`: the solver service, configured by `SOLVER_` variables."""

from __future__ import annotations

import os
import sys

from contracts.process.config import read_config
from contracts.process.errors import ConfigError
from contracts.process.run import run_service
from solver.service.config import SolverConfig
from solver.service.service import open_service


def main() -> int:
    """Run until SIGTERM; gives the exit code."""
    try:
        config = read_config(SolverConfig, "SOLVER_", os.environ)
    except ConfigError as error:
        sys.stderr.write(f"solver: {error}\n")
        return 2
    return run_service("solver", lambda: open_service(config))


if __name__ == "__main__":
    sys.exit(main())
