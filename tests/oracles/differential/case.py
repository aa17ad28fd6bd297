"""One random case: a node, what it offers, who holds it, and what a pod asks.

The form is that of the oracle: Kubernetes objects as JSON, and the switches by the
names upstream gives them.
"""

from __future__ import annotations

from tests.oracles.differential.claims import claims, classes
from tests.oracles.differential.draw import Draw, Json
from tests.oracles.differential.nodes import node
from tests.oracles.differential.pools import slices
from tests.oracles.differential.state import state

DEFAULTS = {
    "AdminAccess": True,
    "CompatibilityGroups": False,
    "ConsumableCapacity": True,
    "DerivedAttributes": False,
    "DeviceBindingAndStatus": True,
    "DeviceTaints": True,
    "FractionalCapacityRange": True,
    "ListTypeAttributes": False,
    "OptionalNodeOperations": False,
    "PartitionableDevices": True,
    "PrioritizedList": True,
}
"""The switches of upstream's allocator, as Kubernetes 1.37 has them."""
_ALPHAS = {
    "CompatibilityGroups": "groups",
    "DerivedAttributes": "derived",
    "ListTypeAttributes": "lists",
    "OptionalNodeOperations": "skip",
}
TIMEOUT_MS = 5000


def generate(seed: int) -> Json:
    """Make the case of a seed; the same seed makes the same case."""
    draw = Draw(seed)
    features = _features(draw)
    found = slices(draw)
    drivers = {item["spec"]["driver"] for item in found}
    case: Json = {
        "id": f"case-{seed}",
        "node": node(draw),
        "claims": claims(draw, drivers=drivers or {"gpu.example.com"}),
        "classes": classes(draw),
        "slices": found,
        "features": features,
        **state(draw, found, sharing=features["ConsumableCapacity"]),
        "timeoutMs": TIMEOUT_MS,
    }
    case["tags"] = sorted(draw.tags | {f"about-{trait}" for trait in draw.traits})
    return case


def _features(draw: Draw) -> dict[str, bool]:
    found = dict(DEFAULTS)
    for switch, trait in _ALPHAS.items():
        found[switch] = draw.says(trait, 0.95)
    if draw.says("shares", 0.25):
        found["FractionalCapacityRange"] = False
    if draw.about("gates"):
        kept = draw.one((0.2, 0.5, 0.8))
        for switch in found:
            if not draw.chance(kept):
                found[switch] = draw.chance(0.5)
    for switch, value in found.items():
        if value != DEFAULTS[switch]:
            draw.tag(f"{switch}={str(value).lower()}")
    return found
