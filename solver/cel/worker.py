"""The inside of the sandbox: a process that evaluates what it is sent.

It loads the engine, gives up what it can, and then forks for each expression: whoever
breaks out of one finds no memory in which another is judged. The fork has nothing but
its connection: no file, no network, no other process, and limits on memory and on the
CPU time of one evaluation. All end with their owner. What is printed before the engine
is ready reaches the owner; nothing of what is printed later does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import resource
import signal
import sys
import zoneinfo
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle

from contracts.codec import encode
from contracts.device import Device
from contracts.ids import DeviceName
from runtime.kernel import die_first_without_memory, die_with_parent
from solver.cel import confinement
from solver.cel.engine import Engine
from solver.cel.wire import Confinement, EvaluationBatch, Limits, Reply

_KIB = 1024 if sys.platform == "linux" else 1
"""The unit of ru_maxrss."""
_RECURSION = 5000
"""Of Python: reading each of 250 levels of an expression takes six calls."""
_ZONES = 100
"""So many names of time zones fit an expression."""
_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*|localtime")
"""Files beside them have dots in their names, or begin small."""
_OTHER_ZONES = {"posix", "right"}
"""Folders with all of them again."""


def main() -> None:
    """Serve the connection that the owner left open for us, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as control:
        limits: Limits = control.recv()
        _limit(limits)
        sys.setrecursionlimit(_RECURSION)
        engine = Engine()
        _load_time_zones(engine)
        landlock = confinement.forbid_files()
        # What a fork does not change stays shared with us.
        gc.collect()
        gc.freeze()
        os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
        tried = _wait(_fork(lambda: None if _filter() else sys.exit(1)))
        said = Confinement(seccomp=tried == 0, landlock=landlock)
        control.send_bytes(encode(said))
        with contextlib.suppress(EOFError, OSError):
            while True:
                _serve_expression(control, engine, limits)


def _serve_expression(control: Connection, engine: Engine, limits: Limits) -> None:
    """Have the next expression evaluated; tell of the process, and of its end."""
    handle = recv_handle(control)

    def evaluate() -> None:
        control.close()
        with Connection(handle) as connection:
            _filter()
            with contextlib.suppress(EOFError, OSError):
                while True:
                    _serve(connection, engine, connection.recv(), limits)

    pid = _fork(evaluate)
    os.close(handle)
    control.send_bytes(str(pid).encode())
    control.send_bytes(str(_wait(pid)).encode())


def _fork(work: Callable[[], None]) -> int:
    """Do some work in a process of its own, which ends with it and with us."""
    pid = os.fork()
    if pid:
        return pid
    try:
        die_with_parent()
        work()
        os._exit(0)
    finally:
        os._exit(1)


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _filter() -> bool:
    confinement.forbid_growth()
    return confinement.forbid_system_calls()


def _serve(
    connection: Connection, engine: Engine, batch: EvaluationBatch, limits: Limits
) -> None:
    """Answer device by device, so that the owner knows which one we died of."""
    signal.setitimer(signal.ITIMER_PROF, limits.compile_s)
    engine.prepare(batch.expression)
    begun_s = used_s = _cpu_s()
    for looks, (driver, device) in enumerate(batch.devices, start=1):
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
        verdict = engine.evaluate(batch.expression, driver, device)
        signal.setitimer(signal.ITIMER_PROF, 0)
        before_s, used_s = used_s, _cpu_s()
        reply = Reply(
            verdict=verdict,
            cpu_s=used_s - before_s,
            is_tired=_most_resident_bytes() > limits.resident_bytes,
            is_spent=not batch.allowance.covers(used_s - begun_s, looks),
        )
        connection.send_bytes(encode(reply))
        if reply.is_tired or reply.is_spent:
            return


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _load_time_zones(engine: Engine) -> None:
    """Have the engine keep all time zones, which it reads from files otherwise."""
    names = sorted(_list_time_zones())
    for first in range(0, len(names), _ZONES):
        zones = " ".join(names[first : first + _ZONES])
        hours = "timestamp('2000-01-01T00:00:00Z').getHours(zone) >= 0"
        # One literal: a list of so many takes longer to compile than to evaluate.
        engine.evaluate(
            f"'{zones}'.split(' ').all(zone, {hours})",
            "",
            Device(name=DeviceName("any")),
        )


def _list_time_zones() -> Iterator[str]:
    """List the files that may be zones; what is none of them is an error in the engine.

    By name alone: zoneinfo.available_timezones opens each, which took longer than all
    else that this process does before it is ready.
    """
    for root in zoneinfo.TZPATH:
        for folder, inner, files in os.walk(root):
            within = os.path.relpath(folder, root)
            if within == ".":
                inner[:] = [name for name in inner if name not in _OTHER_ZONES]
            for file in files:
                if _ZONE.fullmatch(file):
                    yield file if within == "." else f"{within}/{file}"


def _limit(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    die_first_without_memory()


def _most_resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


if __name__ == "__main__":
    main()
