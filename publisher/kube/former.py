"""Whether the holder of a Lease is a former process of this place, which is gone.

A leader that crashed leaves its Lease behind. Whoever comes next waits until it
expires, unless the holder is known to be dead. That is known in two cases only:

- It ran where we run: on this host since the same boot, in our namespaces of processes
  and time. Then the kernel knows its process id no more, or knows it as that of a
  process that began at another time.
- It ran in our pod, by uid, before us. Kubernetes runs a container of a pod again only
  after the run before is dead, and one container of a pod is a publisher.

Everything else may be alive: another host, another pod, one that is frozen, a name that
two processes share. What the dead one had sent may still arrive, as that of any leader
whose Lease expired.

The kernel gives a number of a namespace away again, but only when nothing runs in it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

from publisher.kube.holder import HolderProcess, read_holder

_PROC = Path("/proc")


def describe_process(pod_uid: str) -> HolderProcess:
    """Describe this process; `pod_uid` is that of our pod, or empty."""
    began = _read_began(os.getpid())
    return HolderProcess(
        place=_digest(_read_place()) if began else "",
        pid=os.getpid(),
        began=began,
        pod=_digest(pod_uid),
    )


def is_gone(holder: str, process: HolderProcess) -> bool:
    """True if a holder was a process of the place or pod of ours, and is dead."""
    former = read_holder(holder)
    if former is None or former == process:
        return False
    if process.place and former.place == process.place:
        return _is_dead(former)
    return bool(process.pod) and former.pod == process.pod


def _is_dead(process: HolderProcess) -> bool:
    """True if the kernel has no such process; one that it may not show us is alive."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    began = _read_began(process.pid)
    return began not in ("", process.began)


def _read_began(pid: int) -> str:
    """Read when a process began, in ticks since boot; empty: not known.

    Source: proc(5), /proc/pid/stat, field 22. The name before it may have any sign.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def _read_place() -> str:
    """Read what tells our host, boot and namespaces from others; empty: not known."""
    ours = _PROC / "self" / "ns"
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        spaces = [(ours / kind).readlink().name for kind in ("pid", "time")]
    except OSError:
        return ""
    return "\n".join((socket.gethostname(), boot, *spaces))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
