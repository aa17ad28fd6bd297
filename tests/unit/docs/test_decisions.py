"""docs/decisions: each record is whole, and every dependency has one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("0*.md"))
PARTS = ["Status:", "Problem.", "Decision.", "Consequences.", "Rejected."]
_STATUS = re.compile(r"accepted|superseded by \[\d{4}\]\(\d{4}-[\w-]+\.md\)")


def status_of(record: Path) -> str:
    (said,) = re.findall(r"^\*\*Status:\*\* (.+)\.$", record.read_text(), re.MULTILINE)
    return str(said)


def test_records_are_numbered_without_a_gap() -> None:
    numbers = [int(record.name[:4]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


def test_each_record_has_its_parts() -> None:
    """In this order, with a status that is one."""
    for record in RECORDS:
        found = re.findall(r"^\*\*(\w+[.:])\*\*", record.read_text(), re.MULTILINE)
        assert found == PARTS, record.name
        assert _STATUS.fullmatch(status_of(record)), record.name


def test_the_index_is_all_there_are() -> None:
    """A row a record: number, title, link, and a status that is not `accepted`."""
    rows = re.findall(
        r"^\| \[(\d{4}) ([^]]+)\]\(([\w-]+\.md)\)(?: \((.+)\))? \|$",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE,
    )
    assert rows == [
        (
            record.name[:4],
            record.read_text().split("\n")[0].removeprefix("# "),
            record.name,
            status_of(record).removeprefix("accepted"),
        )
        for record in RECORDS
    ]


def test_each_dependency_has_a_record() -> None:
    """Of the product, of its extras and for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *(
            each
            for extra in project["project"]["optional-dependencies"].values()
            for each in extra
        ),
        *(
            each
            for group in project["dependency-groups"].values()
            for each in group
            if isinstance(each, str)
        ),
    ]
    names = {re.split(r"[\[>=<]", each)[0] for each in wanted} - {"moorings"}
    text = "\n".join(record.read_text().lower() for record in RECORDS)
    said = {"ortools": "or-tools"}
    missing = [name for name in names if said.get(name, name) not in text]
    assert missing == []
