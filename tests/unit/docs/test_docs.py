"""What the documents say of the code is so: modules, functions, commands, widths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from contracts.topics import BLOBS, TOPICS

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
    ]
)
WIDTH = 100
HISTORY = {"CHANGELOG.md"}
"""It also tells of what was, so a name in it need not exist today."""
ROOMS = (
    "benchmarks",
    "contracts",
    "docs",
    "k8s",
    "moorings",
    "nodeagent",
    "publisher",
    "runtime",
    "scripts",
    "solver",
    "tests",
)
_FUNCTION = re.compile(r"`([\w/]+):([A-Za-z_][\w.]*)`")
_PATH = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w/.-]*)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
_PAGE = re.compile(r"\bdocs/[\w/-]+\.(?:md|yaml|json)\b")
_COMMAND = re.compile(r"python -m ([a-z][\w.]*)")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def prose(document: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are neither code nor rows of a table."""
    is_code = False
    for number, line in enumerate(document.read_text().split("\n"), start=1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("|"):
            yield number, line


@cache
def modules() -> dict[str, Path]:
    """List the modules of product, tests and benchmarks by path without `.py`."""
    return {
        str(path.relative_to(ROOT).with_suffix("")): path
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
    }


@cache
def names_in(path: Path) -> frozenset[str]:
    """List what a module defines: functions, classes, constants, `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            names.update(
                f"{node.name}.{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            )
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(t.id for t in targets if isinstance(t, ast.Name))
    return frozenset(names)


def fault_of(module: str, name: str) -> str:
    """Return what is wrong with a reference `module:name`; empty: nothing."""
    suffix = f"/{module}"
    paths = [path for key, path in modules().items() if f"/{key}".endswith(suffix)]
    if len(paths) != 1:
        return f"{module}: {len(paths)} modules end so"
    return "" if name in names_in(paths[0]) else f"{module}: defines no {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_function_that_a_document_names_is_there(document: Path) -> None:
    """`module:function` is the end of one module's path, and a name in it."""
    if document.name in HISTORY:
        return
    references = _FUNCTION.findall(document.read_text())
    faults = [fault_of(module, name) for module, name in references]
    assert [fault for fault in faults if fault] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_file_and_folder_that_a_document_names_is_there(document: Path) -> None:
    """Paths from the root, and links from where the document lies."""
    if document.name in HISTORY:
        return
    text = document.read_text()
    paths = [path for path in _PATH.findall(text) if not (ROOT / path).exists()]
    links = [link for link in _LINK.findall(text) if not _is_there(document, link)]
    assert (paths, links) == ([], [])


def _is_there(document: Path, link: str) -> bool:
    return (document.parent / link).exists()


@cache
def anchors(document: Path) -> frozenset[str]:
    """List the anchors of a page's headings, as its readers' tools make them."""
    headings = [
        line.lstrip("#").strip().lower()
        for _, line in prose(document)
        if line.startswith("#")
    ]
    return frozenset(
        re.sub(r"[^\w\s-]", "", heading).strip().replace(" ", "-")
        for heading in headings
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_heading_that_a_link_names_is_there(document: Path) -> None:
    """`page.md#heading` names a heading of that page, `#heading` one of this page."""
    dangling = [
        f"{page}#{anchor}"
        for page, anchor in _ANCHOR.findall(document.read_text())
        if anchor not in anchors((document.parent / page) if page else document)
    ]
    assert dangling == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_command_that_a_document_names_can_be_run(document: Path) -> None:
    """`python -m a.b` names a module, or a package with a `__main__`."""
    if document.name in HISTORY:
        return
    for command in _COMMAND.findall(document.read_text()):
        path = command.replace(".", "/")
        assert path in modules() or f"{path}/__main__" in modules(), command


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_lines_of_prose_are_wrapped(document: Path) -> None:
    """A line of prose has at most 100 characters."""
    wide = [number for number, line in prose(document) if len(line) > WIDTH]
    assert wide == []


def test_each_page_that_code_names_is_there() -> None:
    """In comments, messages, manifests and scripts."""
    kinds = ("*.py", "*.yaml", "*.sh", "*.toml", "Makefile", "Containerfile")
    rooms = [ROOT / room for room in ROOMS if room != "docs"]
    files = [
        *(path for kind in kinds for path in ROOT.glob(kind)),
        *(path for kind in kinds for room in rooms for path in room.rglob(kind)),
    ]
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in files
        if path != Path(__file__)
        for page in _PAGE.findall(path.read_text())
    }
    assert len(named) >= 50
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []


def tables(document: Path) -> Iterator[list[list[str]]]:
    """Yield the tables of a page as rows of cells."""
    rows: list[list[str]] = []
    for line in [*document.read_text().split("\n"), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield rows
            rows = []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_table_is_whole(document: Path) -> None:
    """A header, a line of dashes, and as many cells in each row."""
    for header, dashes, *rows in tables(document):
        assert {*dashes} == {"---"}, header
        assert rows, header
        assert {len(row) for row in (dashes, *rows)} == {len(header)}, header


def test_a_reference_that_does_not_resolve_is_found() -> None:
    """The test above would see a stale name."""
    assert fault_of("contracts/topics", "SubjectFamily.subject") == ""
    assert "defines no" in fault_of("contracts/topics", "wildcard")
    assert "0 modules" in fault_of("contracts/subjects", "token")
    assert "modules end so" in fault_of("errors", "SolverError")


def test_the_table_of_the_bus_is_the_table_of_topics() -> None:
    """A row a topic: its subjects, its stream, who sends and who reads."""
    rows = {}
    for line in (ROOT / "docs" / "bus.md").read_text().split("\n"):
        if line.startswith("| `"):
            subject, stream, users, _ = (c.strip() for c in line.strip("|").split("|"))
            rows[subject.strip("`")] = (stream.split(",")[0], users)
    assert rows == {
        family.pattern: (
            family.stream,
            f"{', '.join(family.senders)} -> {', '.join(family.receivers)}",
        )
        for family in (*TOPICS, BLOBS)
    }
