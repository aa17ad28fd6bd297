"""Narrowing the nodes that a pod may go to, as the API server lets gated pods.

A gated pod's required node affinity may be set, or its terms may ask for more; terms
are neither added nor taken away (KEP-3838). So what narrows goes into each term.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.codec import to_builtins
from contracts.device import NodeSelector
from contracts.pods.node_affinity import NODE_AFFINITY, REQUIRED

_TERMS = "nodeSelectorTerms"
_LISTS = ("matchExpressions", "matchFields")


def narrowed(affinity: Mapping[str, Any], selector: NodeSelector) -> dict[str, Any]:
    """Give the affinity that holds where both the old one and the selector hold.

    With a selector of one term the number of terms stays. Idempotent: what a term
    says already is not said twice.
    """
    of_nodes = dict(affinity.get(NODE_AFFINITY) or {})
    known = (of_nodes.get(REQUIRED) or {}).get(_TERMS) or [{}]
    wanted = to_builtins(selector)[_TERMS]
    terms = [_both(term, more) for term in known for more in wanted]
    return {**affinity, NODE_AFFINITY: {**of_nodes, REQUIRED: {_TERMS: terms}}}


def _both(term: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(term)
    for name in _LISTS:
        known = list(term.get(name) or ())
        new = [item for item in more.get(name, ()) if item not in known]
        if known or new:
            both[name] = [*known, *new]
    return both
