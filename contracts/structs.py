"""The bases of every Struct that travels: frozen, named like the Kubernetes API.

Stands alone so that all contracts agree on one wire form: camelCase keys, and fields
at their default left out.
"""

from __future__ import annotations

from msgspec import Struct


class KubernetesStruct(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """A part of a Kubernetes object, decoded leniently; validate.py judges it."""


class KubernetesExcerpt(KubernetesStruct, frozen=True, kw_only=True):
    """A part of an object of which few fields matter to us; others are expected."""
