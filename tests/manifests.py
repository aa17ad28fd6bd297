"""The manifests of k8s/ as they lie there, for tests that need no cluster."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

K8S = Path(__file__).parents[1] / "k8s"
BASE = K8S / "base"
OVERLAYS = K8S / "overlays"
KUSTOMIZATION = "kustomization.yaml"

Manifest = dict[str, Any]


@cache
def base() -> tuple[Manifest, ...]:
    """Read every object of k8s/base, one a file."""
    paths = sorted(BASE.glob("*-*.yaml"))
    return tuple(yaml.safe_load(path.read_text()) for path in paths)
