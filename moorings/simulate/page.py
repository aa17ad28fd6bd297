"""Simulated courses as one HTML page: tables and plots, no script, no network. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from moorings.simulate.measure import Point, Report

COLOURS = ("#1f5fa8", "#b3470b")
"""Of each policy, with a contrast of 4.5 to white; the second is dashed, too."""
DASHES = ("none", "6 3")
WIDTH, HEIGHT, LEFT, BOTTOM = 860, 220, 70, 30
END = 'text-anchor="end"'
STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff;
  margin: 0 auto; max-width: 60rem; padding: 1rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #d0d7de }
th[scope=row], th:first-child { text-align: left }
figure { margin: 1rem 0 }
svg { max-width: 100%; height: auto }
svg text { font: 12px system-ui, sans-serif; fill: #1b1f24 }
"""


def write_page(title: str, reports: Sequence[Report], devices: int) -> str:
    """Write the page of one policy, or of two side by side."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_write_summary(reports),
        "<h2>Devices over time</h2>",
        _write_plot("Devices in use", reports, lambda point: point.used, devices),
        _write_plot("Devices that waiting jobs want", reports, lambda p: p.wanted, 0),
        "<h2>Waits</h2>",
        *(part for report in reports for part in _write_waits(report)),
        *_write_left_out(reports),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head>",
            "<body><main>",
            *parts,
            "</main></body></html>\n",
        ]
    )


def describe_seconds(seconds: float) -> str:
    """Describe a time as people do: `45 s`, `12.5 min`, `3.2 h`, `4.0 d`."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size * (2 if unit == "d" else 1):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _write_summary(reports: Sequence[Report]) -> Iterator[str]:
    rows: list[tuple[str, Callable[[Report], str]]] = [
        ("Jobs", lambda report: f"{report.jobs:,}"),
        ("Started", lambda report: f"{report.started:,}"),
        ("Utilisation", lambda report: f"{report.utilisation:.1%}"),
        ("Mean wait", lambda report: describe_seconds(report.waits[0].mean_s)),
        (
            "Mean wait, largest 1 %",
            lambda report: describe_seconds(report.waits[1].mean_s),
        ),
        ("Promises made", lambda report: f"{report.promises.made:,}"),
        ("Promises kept", lambda report: f"{report.promises.kept:,}"),
        ("Moved later", lambda report: f"{report.promises.moved_later:,}"),
    ]
    yield "<table><caption>Summary</caption><thead><tr><th scope=col>What</th>"
    yield "".join(f"<th scope=col>{escape(r.policy)}</th>" for r in reports)
    yield "</tr></thead><tbody>"
    for name, text_of in rows:
        cells = "".join(f"<td>{text_of(report)}</td>" for report in reports)
        yield f"<tr><th scope=row>{name}</th>{cells}</tr>"
    yield "</tbody></table>"


def _write_waits(report: Report) -> Iterator[str]:
    columns = ("Jobs", "Started", "Mean", "Median", "99 %", "Longest")
    yield f"<table><caption>Waits, {escape(report.policy)}</caption><thead><tr>"
    yield "<th scope=col>Of</th>"
    yield "".join(f"<th scope=col>{column}</th>" for column in columns)
    yield "</tr></thead><tbody>"
    for waits in report.waits:
        seconds = (waits.mean_s, waits.median_s, waits.p99_s, waits.most_s)
        cells = [f"{waits.jobs:,}", f"{waits.started:,}"]
        cells += [describe_seconds(each) for each in seconds]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        yield f"<tr><th scope=row>{escape(waits.of)}</th>{row}</tr>"
    yield "</tbody></table>"


def _write_left_out(reports: Sequence[Report]) -> Iterator[str]:
    left_out = reports[0].left_out if reports else ()
    if left_out:
        yield "<h2>Jobs that can never fit</h2>"
        yield f"<p>{escape(', '.join(left_out))}</p>"


def _write_plot(
    name: str, reports: Sequence[Report], value_of: Callable[[Point], int], most: int
) -> str:
    """Draw a line for each policy; `most`: a value that is marked, if any."""
    points = [point for report in reports for point in report.timeline]
    highest = max(max(map(value_of, points), default=0), most, 1)
    longest_s = max((point.at_s for point in points), default=0) or 1
    inner, base = WIDTH - LEFT - 10, HEIGHT - BOTTOM

    def draw(report: Report) -> str:
        return " ".join(
            f"{LEFT + inner * point.at_s / longest_s:.1f},"
            f"{base - (base - 20) * value_of(point) / highest:.1f}"
            for point in report.timeline
        )

    lines = [
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" '
        f'stroke-dasharray="{dash}" points="{draw(report)}"/>'
        for report, colour, dash in zip(reports, COLOURS, DASHES, strict=False)
    ]
    names = [
        f'<line x1="{LEFT + 160 * number}" x2="{LEFT + 30 + 160 * number}" y1="8" '
        f'y2="8" stroke="{COLOURS[number]}" stroke-width="3" '
        f'stroke-dasharray="{DASHES[number]}"/>'
        f'<text x="{LEFT + 36 + 160 * number}" y="12">{escape(report.policy)}</text>'
        for number, report in enumerate(reports)
    ]
    said = "; ".join(
        f"{report.policy}: at most {max(map(value_of, report.timeline), default=0):,}"
        for report in reports
    )
    length = describe_seconds(longest_s)
    label = escape(f"{name} over {length}. {said}", quote=True)
    return "\n".join(
        [
            f"<figure><figcaption>{name}</figcaption>",
            f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {HEIGHT}">',
            f'<path d="M{LEFT} 20V{base}h{inner}" fill="none" stroke="#57606a"/>',
            f'<text x="{LEFT - 6}" y="24" {END}>{highest:,}</text>',
            f'<text x="{LEFT - 6}" y="{base}" {END}>0</text>',
            f'<text x="{LEFT}" y="{HEIGHT - 10}">0</text>',
            f'<text x="{WIDTH - 10}" y="{HEIGHT - 10}" {END}>{length}</text>',
            *lines,
            *names,
            "</svg></figure>",
        ]
    )
