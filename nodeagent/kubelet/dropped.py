"""Finds records of claims whose driver the agent's sources no longer name.

kubelet finds nobody to unprepare them, so their pods never end. Only a person knows
whether the driver comes back or its records can go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from contracts.ids import DriverName
from nodeagent.errors import TornRecordError
from nodeagent.kubelet.sockets import is_answered
from nodeagent.prepare.prepared import PreparedClaim, decode_record


def list_dropped(
    plugins: Path, drivers: Collection[DriverName]
) -> Iterator[PreparedClaim]:
    """Yield the records below kubelet's plugins whose driver nobody serves; blocks.

    `drivers` are ours. What is no record of ours is left out.
    """
    for folder in sorted(plugins.glob("*/claims")):
        plugin = folder.parent
        if plugin.name in drivers or any(map(is_answered, plugin.glob("dra*.sock"))):
            continue
        for path in sorted(folder.glob("*.json")):
            try:
                prepared = decode_record(path.read_bytes())
            except (OSError, TornRecordError):
                continue
            if prepared.driver == plugin.name:
                yield prepared
