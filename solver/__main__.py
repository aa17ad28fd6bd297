"""`python -m solver`: the solver service, configured by `SOLVER_` variables."""

from __future__ import annotations

import sys

from runtime.main import service_main
from solver.service.config import SolverConfig
from solver.service.wiring import open_service

if __name__ == "__main__":
    sys.exit(service_main("solver", SolverConfig, open_service))
