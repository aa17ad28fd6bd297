"""The page: well-formed, without a network, and nothing of a trace is markup."""

from __future__ import annotations

from html.parser import HTMLParser

from moorings.simulate.course import Stay
from moorings.simulate.measure import measure
from moorings.simulate.page import describe_seconds, write_page
from tests.builders.simulated import make_job

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Sees that what is opened is closed, and that nothing is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        given = dict(attrs)
        assert not {"src", "href", "onclick"} & given.keys()
        assert tag != "script"
        if tag == "svg":
            self.images.append(given["aria-label"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element that is closed at once."""

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        assert self.open.pop() == tag


def test_two_policies_stand_side_by_side() -> None:
    stays = [Stay(job=make_job("a", 4), started_s=0)]
    reports = [
        measure(name, stays, devices=8, now_s=60, left_out=["<b>x"])
        for name in ("none", "reservations=<i>")
    ]
    page = write_page("a <trace>", reports, 8)
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert "<b>x" not in page
    assert "<i>" not in page
    in_use, wanted = reader.images
    assert in_use.startswith("Devices in use over 1.0 min. none: at most 4")
    assert wanted.startswith("Devices that waiting jobs want")
    assert page == write_page("a <trace>", reports, 8)


def test_times_are_said_as_people_do() -> None:
    said = [describe_seconds(each) for each in (0, 45.2, 90, 3600, 90_000, 400_000)]
    assert said == ["0 s", "45 s", "1.5 min", "1.0 h", "25.0 h", "4.6 d"]
