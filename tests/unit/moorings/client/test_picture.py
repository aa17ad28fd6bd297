"""The fleet as SVG: every device once, coloured by who holds it."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from moorings.client import FleetDrawing, draw, plan
from tests.builders.small_fleet import FLEET, written_gang

SVG = "{http://www.w3.org/2000/svg}"


def count_holders(drawing: FleetDrawing) -> Counter[str]:
    """Count devices by what their tooltips say."""
    root = ET.fromstring(drawing.svg)  # noqa: S314  # our own
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    return Counter(title.partition(": ")[2] for title in titles if title)


def test_devices_of_a_plan_have_the_colour_of_their_gang() -> None:
    objects = [*FLEET, written_gang("train", 1, 8)]
    drawing = draw(objects, plan(objects))
    assert count_holders(drawing) == {"default/train": 8, "free": 8}
    assert drawing._repr_svg_() == drawing.svg


def test_a_claim_that_is_allocated_holds_its_devices() -> None:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "gpu-1"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "old", "namespace": "a"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [{**result, "device": "gpu-3"}]}}
        },
    }
    assert count_holders(draw([*FLEET, claim])) == {"a/old": 1, "free": 15}


def test_names_are_text_and_nodes_are_in_the_order_in_which_people_count() -> None:
    slices = [dict(FLEET[0]) for _ in range(2)]
    for each, name in zip(slices, ("n<10>", "n<9>"), strict=True):
        each["spec"] = {**each["spec"], "nodeName": name}
    root = ET.fromstring(draw(slices).svg)  # noqa: S314  # our own
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[:2] == ["n<9>", "n<10>"]
