"""The bases of every Struct that travels: frozen, named like the Kubernetes API.

Stands alone so that all contracts agree on one wire form: camelCase keys, and fields
at their default left out.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""JSON has numbers of any length; beyond these Kubernetes reads none."""
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class KubernetesStruct(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """A part of a Kubernetes object, decoded leniently; validate.py judges it.

    Kept by the hundred thousand and never part of a cycle, so the garbage collector
    need not know of them: its rounds took most of a second on a large cluster.
    """


class KubernetesExcerpt(KubernetesStruct, frozen=True, kw_only=True):
    """A part of an object of which few fields matter to us; others are expected."""
