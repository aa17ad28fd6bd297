"""Plans from Python: the answer of `moorings plan`, and no yes to what was not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorings.client import BadInputError, PlanSession, UsageError, load, plan
from tests.builders.small_fleet import FLEET, written_gang
from tests.lab import shell


def test_a_gang_gets_its_nodes() -> None:
    (train,) = plan([*FLEET, written_gang("train", 2, 8)]).gangs
    assert train.verdict == "allocated"
    assert sorted(pod.node for pod in train.members) == ["gpu-1", "gpu-2"]


def test_many_plans_of_one_session_do_not_see_each_other() -> None:
    with PlanSession() as session:
        verdicts = [
            session.plan([*FLEET, written_gang("train", pods, 8)]).gangs[0].verdict
            for pods in (2, 3, 2)
        ]
    assert verdicts == ["allocated", "none", "allocated"]


def test_files_give_what_dicts_give(tmp_path: Path) -> None:
    fleet, job = tmp_path / "fleet.yaml", tmp_path / "job.yaml"
    fleet.write_text(yaml.safe_dump_all(FLEET))
    job.write_text(
        yaml.safe_dump({"kind": "List", "items": [written_gang("train", 1, 4)]})
    )
    of_files = plan(load(fleet, job))
    assert of_files.gangs == plan([*FLEET, written_gang("train", 1, 4)]).gangs
    with pytest.raises(BadInputError, match=r"missing\.yaml"):
        load(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "Gang"}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "nothing that was read"),
        ({**written_gang("train", 1, 1), "spec": {"member": []}}, "spec.member"),
        (3, "Expected `object`"),
    ],
)
def test_what_is_not_understood_is_an_error(given: Any, told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        plan([*FLEET, given])


def test_the_page_plans_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The block of docs/python.md, where there are such files."""
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(FLEET))
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(written_gang("train", 2, 8)))
    monkeypatch.chdir(tmp_path)
    (block,) = shell.blocks("docs/python.md", "## A plan, in process", "python")
    exec(block, {})  # noqa: S102  # our own
    assert capsys.readouterr().out == "Optimal\ntrain allocated ['gpu-1', 'gpu-2']\n"


def test_an_unknown_release_is_named() -> None:
    with pytest.raises(UsageError, match="next"):
        plan(FLEET, kubernetes_version="next")


def test_an_unknown_order_is_named() -> None:
    """Else it would be answered as the optimal one."""
    order: Any = "best"
    with pytest.raises(UsageError, match="order 'best' is unknown; use optimal or"):
        plan([], order=order)


@pytest.mark.parametrize("given", ["cluster.yaml", {"kind": "Pod"}])
def test_one_object_or_a_path_is_no_list(given: Any) -> None:
    with pytest.raises(BadInputError, match="must be a list; `load` reads files"):
        plan(given)
