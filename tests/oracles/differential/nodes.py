"""The node that is asked about, and selectors that accept or refuse it."""

from __future__ import annotations

from tests.oracles.differential.draw import Draw, Json

NODE = "node-1"
OTHER = "node-2"
_LABELS = {"zone": "west", "disk": "ssd", "rank": "5"}


def node(draw: Draw) -> Json:
    """Make the node; it declares what it can only in some cases about that."""
    labels = dict(_LABELS)
    if draw.says("where", 0.1):
        labels["rank"] = "five"
    made: Json = {"metadata": {"name": NODE, "labels": labels}}
    if draw.says("skip", 0.6):
        draw.tag("node-declares")
        made["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    elif draw.says("skip", 0.3):
        made["status"] = {"declaredFeatures": ["Other"]}
    return made


def place(draw: Draw) -> Json:
    """Choose where a slice or a device is, in the fields that say so."""
    kind = draw.one(("name", "name", "all", "selector", "selector", "other", "none"))
    if kind in ("other", "none") and draw.chance(0.5):
        kind = "all"
    draw.tag(f"place-{kind}")
    match kind:
        case "name":
            return {"nodeName": NODE}
        case "other":
            return {"nodeName": OTHER}
        case "all":
            return {"allNodes": True}
        case "selector":
            return {"nodeSelector": selector(draw)}
        case _:
            return {}


def selector(draw: Draw) -> Json:
    """Make a node selector, of one term mostly."""
    terms = [_term(draw)]
    if draw.chance(0.06):
        draw.tag("selector-terms")
        terms = [_term(draw) for _ in range(draw.one((0, 2)))]
    return {"nodeSelectorTerms": terms}


def _term(draw: Draw) -> Json:
    if draw.chance(0.04):
        return {}
    if draw.chance(0.15):
        return {"matchFields": [_field(draw)]}
    term: Json = {"matchExpressions": [_row(draw) for _ in range(draw.number(1, 2))]}
    if draw.chance(0.1):
        term["matchFields"] = [_field(draw)]
    return term


def _field(draw: Draw) -> Json:
    operator = "NotIn" if draw.chance(0.2) else "In"
    value = NODE if draw.chance(0.85) == (operator == "In") else OTHER
    return {"key": "metadata.name", "operator": operator, "values": [value]}


def _row(draw: Draw) -> Json:
    if draw.says("odd", 0.1):
        draw.tag("selector-malformed")
        return draw.one(
            (
                {"key": "zone", "operator": "Near", "values": ["west"]},
                {"key": "rank", "operator": "Gt", "values": ["x"]},
                {"key": "zone", "operator": "In"},
                {"key": "zone", "operator": "Exists", "values": ["west"]},
            )
        )
    if draw.chance(0.15):
        return draw.one(
            (
                {"key": "zone", "operator": "NotIn", "values": ["west"]},
                {"key": "disk", "operator": "DoesNotExist"},
                {"key": "rank", "operator": "Gt", "values": ["5"]},
                {"key": "absent", "operator": "Exists"},
            )
        )
    return draw.one(
        (
            {"key": "zone", "operator": "In", "values": ["east", "west"]},
            {"key": "zone", "operator": "In", "values": ["west", "east"]},
            {"key": "zone", "operator": "NotIn", "values": ["east"]},
            {"key": "absent", "operator": "NotIn", "values": ["x"]},
            {"key": "absent", "operator": "DoesNotExist"},
            {"key": "disk", "operator": "Exists"},
            {"key": "rank", "operator": "Gt", "values": ["4"]},
            {"key": "rank", "operator": "Lt", "values": ["10"]},
        )
    )
