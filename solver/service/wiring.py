"""The solver's parts, put together for as long as the process runs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.ids import DriverName
from runtime.bus.bus import Bus
from runtime.bus.relaying import relaying
from runtime.log import get_logger
from runtime.run import ServiceTasks
from runtime.tracing import open_traces
from runtime.wire import BusSettings
from solver.cel.evaluator import SelectorEvaluator
from solver.cel.sandbox import Sandbox
from solver.service import metrics
from solver.service.config import SolverConfig
from solver.service.decide import Decider
from solver.service.lead import Leadership
from solver.service.ledger import Ledger
from solver.service.service import SolverService
from solver.service.telemetry import Telemetry
from solver.service.worker import SolveWorker

log = get_logger(__name__)


@asynccontextmanager
async def open_service(config: SolverConfig) -> AsyncIterator[ServiceTasks]:
    """Open the bus, the sandbox and the worker; close them in reverse."""
    holder = config.name or f"{socket.gethostname()}-{os.getpid()}"
    settings = BusSettings.of(config, f"solver-{holder}")
    worker = SolveWorker(
        memory_bytes=config.worker_memory_bytes, guard_s=config.guard_s
    )
    async with (
        open_traces(config, "solver") as traces,
        relaying(settings),
        Bus.open(settings) as bus,
    ):
        await bus.wait_connected()
        await bus.ensure_streams()
        worker.start()
        sandbox = Sandbox(on_loss=metrics.SANDBOX_KILLS.inc)
        with SelectorEvaluator(sandbox) as evaluator:
            bounds = await asyncio.to_thread(evaluator.wait_ready)
            tell = log.info if bounds.seccomp or bounds.landlock else log.warning
            tell("sandbox.ready", seccomp=bounds.seccomp, landlock=bounds.landlock)
            ledger = Ledger(bus, config.cluster)
            drivers = map(DriverName, config.agent_drivers)
            leadership = Leadership(
                bus, config.cluster, holder, config.lease_s, drivers
            )
            decider = Decider(
                config, ledger, leadership, evaluator, worker, traces=traces
            )
            telemetry = Telemetry(
                bus, evaluator, leadership, traces, census_s=config.census_s
            )
            service = SolverService(
                config, bus, decider, ledger, leadership, telemetry=telemetry
            )
            try:
                yield ServiceTasks(service.tasks(), service.is_ready)
            finally:
                worker.stop()
