"""Writing `status.devices` of ResourceClaims (KEP-4817), which may be dropped.

While its feature gate is off, the API server answers as if it had taken the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.ids import ClaimRef, object_key
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import Kind
from runtime.log import get_logger

_GATE = "DRAResourceClaimDeviceStatus"

log = get_logger(__name__)


class DeviceStatusField:
    """The field, as one writer of it knows it."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._is_kept = True
        """True unless the API server dropped what was written last."""

    async def apply(
        self, kind: Kind, claim: ClaimRef, entries: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Write all our entries of a claim; False if the API server dropped them.

        That is logged when it begins.

        Raises:
            ApiError: they were not written.
        """
        key = object_key(claim.namespace, claim.name)
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": claim.name, "uid": claim.uid},
            "status": {"devices": list(entries)},
        }
        after = await self._api.apply(kind, key, body, subresource="status")
        is_kept = not entries or bool((after.get("status") or {}).get("devices"))
        if self._is_kept and not is_kept:
            reason = f"the API server drops status.devices: its gate {_GATE} is off"
            log.warning("device_status.dropped", claim=key, reason=reason)
        self._is_kept = is_kept
        return is_kept
