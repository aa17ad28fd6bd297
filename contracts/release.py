"""Which release of Kubernetes a cluster's API server is, as the bus carries it.

Said on STATE like an object, so that it is there for whoever reads later: the defaults
of feature gates follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from contracts.errors import DecodeError
from contracts.names import API_VERSION

RELEASE = "KubernetesRelease"
"""The kind, and its only object's key."""
_NUMBER = re.compile(r"\d+")


def make_release(release: str) -> dict[str, Any]:
    """Make the object that says a release, such as `1.37`."""
    return {
        "apiVersion": API_VERSION,
        "kind": RELEASE,
        "metadata": {"name": RELEASE, "resourceVersion": "1"},
        "release": release,
    }


def read_release(raw: Mapping[str, Any]) -> str:
    """Read the release that an object says.

    Raises:
        DecodeError: it says none.
    """
    release = raw.get("release")
    if not isinstance(release, str) or not re.fullmatch(r"\d+\.\d+", release):
        raise DecodeError(RELEASE, "release", "Expected a release such as `1.37`")
    return release


def release_of(version: dict[str, Any]) -> str:
    """Read the release from what `/version` answers; empty: it does not say.

    An API server that emulates an older release serves that one's API and gates.

    Source: k8s.io/apimachinery/pkg/version Info.
    """
    for names in (("emulationMajor", "emulationMinor"), ("major", "minor")):
        # Some providers say `37+`.
        found = [_NUMBER.match(str(version.get(name) or "")) for name in names]
        numbers = [match.group() for match in found if match]
        if len(numbers) == len(names):
            return ".".join(numbers)
    return ""
