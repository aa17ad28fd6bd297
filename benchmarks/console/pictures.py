"""First picture, updates and memory of the console's fleet view in headless Chromium.

    python -m benchmarks.console.pictures [--size full]

`small` is the fleet `small` (8 nodes), `full` is `openb` (1,523 nodes, 6,212 GPUs).
Columns: milliseconds from opening the page, and from the standing connection, to the
first picture; bytes that came over the wire for it; heap of the page's script after
garbage collection; milliseconds of drawing all of it anew; and from publishing a
device's health on the bus to its node being drawn, median and 95th percentile.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Page

from benchmarks.report import Row, arguments, percentile, report
from contracts.ids import DeviceID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.names import UNHEALTHY
from contracts.topics import HEALTH
from moorings.bus_client import Client
from runtime.wire import Outgoing
from tests.builders import taint
from tests.lab.browser import browser_up, console_up
from tests.lab.command_line import open_as, read_server, stack_up

FLEETS = {"small": "small", "full": "openb"}
OPENINGS, UPDATES = 5, 40
PAUSE_S = 0.2
_TIMEOUT_MS = 60_000
_MARKS = """() => Object.fromEntries(
  performance.getEntriesByType("mark").map((mark) => [mark.name, mark.startTime]))"""
_HEARD = """(node) => new Promise((resolve) => {
  new PerformanceObserver((list, observer) => {
    for (const mark of list.getEntriesByName("update-drawn")) {
      if (!mark.detail.nodes.includes(node)) continue;
      observer.disconnect();
      resolve(performance.timeOrigin + mark.startTime);
    }
  }).observe({ type: "mark" });
})"""
_DRAW = """() => ["gang", "state"].map((mode) => {
  const began = performance.now();
  document.querySelector(`[data-mode=${mode}]`).click();
  return performance.now() - began;
})"""


async def measure(home: Path, link: str) -> Row:
    """Measure the console of the stack in a home."""
    async with browser_up() as browser, open_as("nodeagent", home) as agent:
        openings = [await _open(browser, link) for _ in range(OPENINGS)]
        page = await browser.new_page(viewport={"width": 1280, "height": 860})
        await _show(page, link)
        async with open_as("viewer", home) as viewer:
            announced = list((await viewer.fetch_inventories()).values())
        with_devices = [each for each in announced if each.pools]
        delays = [
            await _update(page, agent, with_devices[index % len(with_devices)])
            for index in range(UPDATES)
        ]
        drawn = [ms for _ in range(5) for ms in await page.evaluate(_DRAW)]
    return {
        "nodes": len(announced),
        "devices": sum(len(pool.devices) for a in announced for pool in a.pools),
        "open ms": percentile([each["open ms"] for each in openings], 0.5),
        "connected ms": percentile([each["connected ms"] for each in openings], 0.5),
        "wire kB": openings[-1]["wire kB"],
        "heap MB": openings[-1]["heap MB"],
        "draw all ms": percentile(drawn, 0.5),
        "update p50 ms": percentile(delays, 0.5),
        "update p95 ms": percentile(delays, 0.95),
    }


async def _show(page: Page, link: str) -> None:
    await page.goto(link)
    await page.wait_for_function(
        "performance.getEntriesByName('first-picture').length > 0", timeout=_TIMEOUT_MS
    )


async def _open(browser: Browser, link: str) -> dict[str, float]:
    """Open the page anew: when it shows what, and what that takes."""
    context = await browser.new_context(viewport={"width": 1280, "height": 860})
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    received = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal received
        received += int(event["encodedDataLength"]) or int(event["dataLength"])

    session.on("Network.dataReceived", count)
    await session.send("Network.enable")
    await _show(page, link)
    marks = await page.evaluate(_MARKS)
    heap = await _read_heap(session)
    await context.close()
    return {
        "open ms": marks["first-picture"],
        "connected ms": marks["first-picture"] - marks["connected"],
        "wire kB": received / 1e3,
        "heap MB": heap / 1e6,
    }


async def _read_heap(session: CDPSession) -> float:
    await session.send("HeapProfiler.enable")
    await session.send("HeapProfiler.collectGarbage")
    usage = await session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"])


async def _update(page: Page, agent: Client, announced: DevicesAnnounced) -> float:
    """Let a device be sick and well again; returns the delay of the first, in ms."""
    pool = announced.pools[0]
    sick = DeviceHealth(
        device=DeviceID(pool.driver, pool.name, pool.devices[0].name),
        verdict="Unhealthy",
        taints=(taint(UNHEALTHY),),
    )
    node: dict[str, Any] = {"cluster": agent.cluster, "node": announced.node}
    heard = asyncio.ensure_future(page.evaluate(_HEARD, announced.node))
    await asyncio.sleep(PAUSE_S)  # the page listens
    began_ms = time.time() * 1e3
    message = HealthJudged(**node, devices=(sick,))
    await agent.bus.publish(Outgoing.of(HEALTH, message))
    drawn_ms = float(await heard)
    await agent.bus.publish(Outgoing.of(HEALTH, HealthJudged(**node)))
    return drawn_ms - began_ms


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with stack_up(home, "--fleet", FLEETS[options.size]) as process:
            read_server(process)
            with console_up(home) as links:
                rows = [asyncio.run(measure(home, links.look))]
    report("console.pictures", options, rows)


if __name__ == "__main__":
    main()
