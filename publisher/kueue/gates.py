"""Opens our gate before Kueue's queue: the annotation of what a Workload is of.

Kueue copies the annotation from the Job to its Workload, so the Job's is changed; a
Workload that nothing owns has its own. Gates of others stay. [io]
"""

from __future__ import annotations

from typing import Any

from publisher.kueue.objects import ADMISSION_GATE, GATED_BY, read_kueue_workload
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import GANG_OWNERS, KUEUE_WORKLOAD, Kind
from runtime.log import get_logger

Json = dict[str, Any]
log = get_logger(__name__)


async def open_gate(api: KubernetesApi, key: str, raw: Json) -> bool:
    """Take our gate from the Job of a Workload, or from one that nothing owns.

    Returns:
        False where the owner is of a kind that is not changed here.

    Raises:
        ApiError: the API server refuses it, or does not answer.
    """
    workload = read_kueue_workload(raw)
    namespace = workload.metadata.namespace
    others = [gate for gate in workload.gates if gate != ADMISSION_GATE]
    body = {"metadata": {"annotations": {GATED_BY: ",".join(others) or None}}}
    owners = [one for one in workload.metadata.owner_references if one.controller]
    if not owners:
        await api.patch(KUEUE_WORKLOAD, key, body, uid=workload.metadata.uid)
        return True
    owner = owners[0]
    kind = _find_kind(owner.api_version, owner.kind)
    if kind is None:
        log.warning("kueue.gate_kept", workload=key, owner=owner.kind)
        return False
    await api.patch(kind, f"{namespace}/{owner.name}", body, uid=owner.uid)
    log.info("kueue.gate_opened", workload=key)
    return True


def _find_kind(api_version: str, name: str) -> Kind | None:
    """Return the kind of an owner whose path we know."""
    for kind in GANG_OWNERS:
        if (kind.api_version, kind.name.partition(".")[0]) == (api_version, name):
            return kind
    return None
