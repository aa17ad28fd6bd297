"""The way to a cluster as people have it: a kubeconfig, and one of its contexts.

Read ahead of everything that starts, so that a wrong name is one line at once and not a
service that ends again and again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from moorings.errors import InputError


class ClusterAccess(Struct, frozen=True, kw_only=True):
    """A cluster, and how to get there."""

    kubeconfig: Path
    context: str
    server: str
    """Address of its API server."""


def read_access(file: Path, context: str = "") -> ClusterAccess:
    """Read a kubeconfig; `context` is one of its contexts, or the current one.

    Raises:
        InputError: it cannot be read, is no kubeconfig, or lacks what is named.
    """
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise InputError(str(file), str(reason)) from error
    except yaml.YAMLError as error:
        raise InputError(str(file), " ".join(str(error).split())) from error
    contexts = _named(found, "contexts", "context")
    if not contexts:
        raise InputError(str(file), "is no kubeconfig: it has no contexts")
    known = ", ".join(sorted(contexts))
    chosen = context or str(found.get("current-context") or "")
    if not chosen:
        reason = f"has no current context; choose one with --context: {known}"
        raise InputError(str(file), reason)
    if chosen not in contexts:
        raise InputError(str(file), f"has no context {chosen!r}; it has {known}")
    clusters = _named(found, "clusters", "cluster")
    name = str(contexts[chosen].get("cluster"))
    server = str(clusters.get(name, {}).get("server") or "")
    if not server:
        reason = f"context {chosen!r} is of cluster {name!r}, which has no server here"
        raise InputError(str(file), reason)
    return ClusterAccess(kubeconfig=file.resolve(), context=chosen, server=server)


def _named(found: Any, plural: str, singular: str) -> dict[str, dict[str, Any]]:
    """Read a list of names, each with what it stands for; what is none is left out."""
    items = found.get(plural) if isinstance(found, dict) else None
    return {
        str(item.get("name")): item[singular]
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and isinstance(item.get(singular), dict)
    }
