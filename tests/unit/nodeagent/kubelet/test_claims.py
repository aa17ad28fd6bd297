"""What was prepared is let go of once its claim no longer holds it on this node."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    DeviceName,
    DriverName,
    Namespace,
    NodeName,
    PoolName,
)
from nodeagent.errors import PrepareError
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import NotFoundError, UnavailableError
from runtime.kube.kinds import Kind
from tests import builders
from tests.builders.pods import real_claim

HERE = builders.allocation(builders.result())
HELD = real_claim("gpus", allocated=HERE, reserved=["a"])


class Told(ClaimReader):
    """Reads what a test says."""

    def __init__(self, claim: ResourceClaim | None) -> None:
        super().__init__(cast("KubernetesApi", None))
        self._claim = claim

    async def read(self, asked: ClaimRef) -> ResourceClaim:
        """Give the claim; there may be none."""
        if self._claim is None:
            raise PrepareError(f"no {asked}") from NotFoundError("get", "none")
        return self._claim


def prepared() -> PreparedClaim:
    meta, result = HELD.metadata, builders.result()
    device = PreparedDevice(
        request=result.request,
        pool=PoolName(result.pool),
        device=DeviceName(result.device),
    )
    ref = ClaimRef(
        namespace=Namespace(meta.namespace), name=meta.name, uid=ClaimUID(meta.uid)
    )
    driver = DriverName(result.driver)
    return PreparedClaim(claim=ref, driver=driver, devices=(device,), since="")


def is_gone(claim: ResourceClaim | None) -> bool:
    node = NodeName(builders.NODE)
    return asyncio.run(Told(claim).is_gone(prepared(), node))


def allocated(allocation: AllocationResult) -> ResourceClaim:
    return real_claim("gpus", allocated=allocation, reserved=["a"])


def test_a_claim_that_holds_its_devices_is_not() -> None:
    assert not is_gone(HELD)


@pytest.mark.parametrize(
    "claim",
    [
        None,
        real_claim("gpus"),
        replace(HELD, metadata=replace(HELD.metadata, uid="another")),
        allocated(builders.allocation(builders.result("gpu-9"))),
        allocated(builders.allocation(builders.result(), node="elsewhere")),
    ],
    ids=["deleted", "deallocated", "replaced", "another device", "another node"],
)
def test_others_are(claim: ResourceClaim | None) -> None:
    assert is_gone(claim)


class Hung(ClaimReader):
    """Asks an API server that accepts and never answers."""

    async def find_kind(self) -> Kind:
        """Wait, as every request does."""
        await asyncio.Event().wait()
        raise AssertionError


async def test_an_api_server_that_hangs_is_named() -> None:
    reader = Hung(cast("KubernetesApi", None), answer_s=0.05)
    said = r"get ResourceClaim .*gpus.*: the API server did not answer within 0.05 s"
    with pytest.raises(UnavailableError, match=said):
        await reader.read(prepared().claim)
