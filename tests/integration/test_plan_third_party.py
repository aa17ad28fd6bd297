"""Plans over objects that others published, as they are; every one has an answer.

The objects lie outside the repository: MOORINGS_DRA_DATA names their folder. Where a
folder has no classes or slices of its own, those of tests/data are added.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.claim import DeviceClass
from moorings.cli.documents import read_documents
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.objects import PlanObject
from moorings.plan.plan import Plan
from moorings.plan.reading import Reader
from solver.cel.evaluator import SelectorEvaluator

REPOSITORY = Path(__file__).parent.parent.parent
DATA = Path(
    os.environ.get("MOORINGS_DRA_DATA") or REPOSITORY.parent / "shared" / "data" / "dra"
)
OURS = Path(__file__).parent.parent / "data"
FOLDERS = (
    sorted({file.parent for file in DATA.rglob("*.yaml")}) if DATA.is_dir() else []
)
SOURCED = ("allocated", "none", "waits", "error")


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


def objects_of(folder: Path) -> tuple[list[PlanObject], list[str]]:
    """Read a folder and, where it lacks some, our classes and slices."""
    said: list[str] = []
    reader = Reader(said.append)
    found = list(reader.read(read_documents([str(folder)])))
    kinds = {item.decoded.kind for item in found}
    ours = reader.read(read_documents([str(OURS / "third-party-classes.yaml")]))
    names = set(class_names(found))
    found.extend(item for item in ours if not names & set(class_names([item])))
    if "ResourceSlice" not in kinds:
        source = str(OURS / "third-party-slices.yaml")
        found.extend(reader.read(read_documents([source])))
    return found, said


def class_names(objects: list[PlanObject]) -> list[str]:
    """List the names of the DeviceClasses among objects."""
    values = [item.decoded.value for item in objects]
    return [v.metadata.name for v in values if isinstance(v, DeviceClass)]


@pytest.mark.skipif(not FOLDERS, reason="set MOORINGS_DRA_DATA to published objects")
def test_every_published_scenario_is_decided_or_refused_by_name(
    planner: Planner, capsys: pytest.CaptureFixture[str]
) -> None:
    """Allocated, none with a reason, or NotModelled with the field; nothing else."""
    lines, verdicts = [], Counter[str]()
    for folder in FOLDERS:
        objects, _ = objects_of(folder)
        plan = planner.plan(objects, PlanOptions())
        assert plan.error is None, folder
        name = str(folder.relative_to(DATA))
        for gang in plan.gangs:
            assert gang.verdict in SOURCED
            assert bool(gang.reasons) is (gang.verdict != "allocated")
            why = str(gang.reasons[0]).split(":")[0:2] if gang.reasons else [""]
            for reason in gang.reasons:
                if reason.rule == "NotModelled":
                    assert reason.field
            verdicts[gang.verdict] += 1
            lines.append(
                f"{name:<70} {gang.name:<40} {gang.verdict:<10} {':'.join(why)[:60]}"
            )
        assert_consistent(plan)
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join([*lines, str(dict(verdicts))]) + "\n")
    assert verdicts["allocated"] >= 20
    assert verdicts["error"] >= 5


def assert_consistent(plan: Plan) -> None:
    """Check that claims and gangs of a plan agree, and no device is given twice."""
    by_gang = {(gang.name, gang.uid): gang.verdict for gang in plan.gangs}
    verdicts = {name: verdict for (name, _), verdict in by_gang.items()}
    devices: Counter[str] = Counter()
    for claim in plan.claims:
        if len([n for n in by_gang if n[0] == claim.gang]) == 1:
            assert claim.verdict == verdicts[claim.gang]
        if claim.allocation is not None:
            assert claim.node
            results = claim.allocation.devices.results
            devices.update(str(result.device_id) for result in results)
    assert all(count == 1 for count in devices.values())


@pytest.mark.skipif(not FOLDERS, reason="set MOORINGS_DRA_DATA to published objects")
def test_aligned_gpu_and_efa_share_a_pcie_root(planner: Planner) -> None:
    """The captured AWS node: each worker gets a GPU and an EFA NIC on one root."""
    objects, _ = objects_of(DATA / "dranet" / "aws_eks_examples" / "gpu-efa")
    plan = planner.plan(objects, PlanOptions())
    assert plan.status == "Optimal"
    assert {gang.verdict for gang in plan.gangs} == {"allocated"}
    assert all(
        len(c.allocation.devices.results) == 2 for c in plan.claims if c.allocation
    )
