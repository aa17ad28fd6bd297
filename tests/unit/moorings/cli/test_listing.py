"""What is listed is printed in every form, and while somebody watches as it changes."""

from __future__ import annotations

import pytest

from moorings.cli.listing import ChangesPrinter, ListForm, Listing, print_listing
from moorings.errors import UsageError


def nodes(*names: str, status: str = "ready", hidden: tuple[str, ...] = ()) -> Listing:
    """List nodes."""
    return Listing(
        what="node",
        names=list(names),
        views=[{"name": name, "status": status, "age": "1s"} for name in names],
        columns=("name", "status"),
        rows=[[name, status] for name in names],
        nothing="no nodes",
        notices=["look out"],
        hidden=frozenset(hidden),
    )


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("table", ["NAME   STATUS", "a      ready", "b      ready"]),
        ("name", ["node/a", "node/b"]),
        ("jsonpath={.items[*].name}", ["a b"]),
        ('jsonpath={range .items[*]}{.name}{"\\n"}{end}', ["a", "b"]),
        ("yaml", ["- age: 1s", "  name: a", "  status: ready", "- age: 1s"]),
    ],
)
def test_a_list_is_printed_in_every_form(
    form: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_listing(nodes("a", "b", "c", hidden=("c",)), ListForm.parse(form))
    said = capsys.readouterr()
    assert said.out.splitlines()[: len(lines)] == lines
    assert "c" not in said.out.split()
    assert said.err == "look out\n"


def test_of_one_that_was_asked_for_a_template_is_about_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As kubectl's."""
    listing = nodes("a")
    listing.is_one = True
    print_listing(listing, ListForm.parse("jsonpath={.status}"))
    assert capsys.readouterr().out == "ready\n"


def test_a_device_is_named_with_its_pool(capsys: pytest.CaptureFixture[str]) -> None:
    """Its name alone is no name."""
    view = {"node": "n", "driver": "gpu.example.com", "pool": "p", "name": "gpu-0"}
    listing = Listing(what="device", names=["x"], views=[view], columns=(), rows=[[]])
    print_listing(listing, ListForm.parse("name"))
    assert capsys.readouterr().out == "device/gpu.example.com/p/gpu-0\n"


@pytest.mark.parametrize("text", ["", "xml", "jsonpath"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the formats are table, wide"):
        ListForm.parse(text)


def test_a_watch_prints_all_and_then_what_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also what was hidden at first; notices once; nothing where only ages changed."""
    printer = ChangesPrinter(ListForm())
    printer.print_changes(nodes("a", "c", hidden=("c",)))
    assert capsys.readouterr().out.splitlines() == ["NAME   STATUS", "a      ready"]
    printer.print_changes(nodes("a", "c", hidden=("c",)))
    assert capsys.readouterr() == ("", "")
    printer.print_changes(nodes("a", "c", status="away", hidden=("c",)))
    printer.print_changes(nodes("a", "b", "c", status="away"))
    said = capsys.readouterr()
    assert said.out.splitlines() == ["a      away", "c      away", "b      away"]
    assert said.err == ""
