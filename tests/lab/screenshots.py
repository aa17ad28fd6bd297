"""Takes the pictures of docs/console.md: a stack with gangs, every view of its console.

.venv/bin/python -m tests.lab.screenshots
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import yaml
from playwright.async_api import Browser, Page, expect

from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object
from contracts.lifecycle import GangRecord
from moorings.local.state import find_stack
from runtime.waits import first_of
from tests.builders.inputs import TRAIN
from tests.lab.browser import ConsoleLinks, browser_up, console_up
from tests.lab.command_line import open_as, read_server, stack_up

IMAGES = Path(__file__).parents[2] / "docs" / "images"
TIMEOUT_MS = 60_000
GANGS = (
    ("team-a", "pretrain", 5, 8, 5),
    ("team-b", "evaluate", 4, 2, 0),
    ("team-b", "serve", 2, 4, 9),
    ("team-c", "tune", 3, 1, 0),
    ("team-a", "next-pretrain", 3, 8, 1),
    ("team-c", "sweep", 6, 4, 0),
)
"""Namespace, name, pods, GPUs a pod, priority: the last two have to wait."""
FAULTS = {
    "faults": [
        {"node": "gpu-7", "device": "gpu-2", "verdict": "Unhealthy", "at": "0s"},
        {"node": "gpu-6", "device": "nic-5", "verdict": "Unhealthy", "at": "0s"},
    ]
}


def make_gang(namespace: str, name: str, pods: int, gpus: int, priority: int) -> Gang:
    """Make a gang of simulated GPUs."""
    (member,) = TRAIN["spec"]["members"]
    (claim,) = member["claims"]
    exactly = {"deviceClassName": "gpu.moorings.dev", "count": gpus}
    request = {"name": "gpu", "exactly": exactly}
    claims = [{**claim, "spec": {"devices": {"requests": [request]}}}]
    members = [{**member, "count": pods, "claims": claims}]
    raw: dict[str, Any] = {
        **TRAIN,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"priority": priority, "members": members},
    }
    value = decode_object(raw).value
    assert isinstance(value, Gang)
    return value


async def submit_all(home: Path) -> None:
    """Let devices fall sick, then submit the gangs, one after the other."""
    folder = find_stack(home / "moorings").users.parents[1]
    (folder / "faults.yaml").write_text(yaml.safe_dump(FAULTS))
    await first_of(asyncio.Event(), within_s=3.0)
    async with open_as("platform", home) as client:
        for values in GANGS:
            uid, _ = await client.submit(make_gang(*values))
            records: list[GangRecord] = []
            while not any(r.uid == uid and r.decision for r in records):
                records = await client.fetch_gangs()


async def take(page: Page, name: str, *, whole: bool = True) -> None:
    """Take one picture."""
    await page.evaluate("window.scrollTo(0, 0)")
    await page.mouse.move(0, 0)
    await page.screenshot(path=IMAGES / f"console-{name}.png", full_page=whole)


async def take_all(browser: Browser, links: ConsoleLinks) -> None:
    """Go through the views as a person would."""
    page = await browser.new_page(viewport={"width": 1060, "height": 640})
    page.set_default_timeout(TIMEOUT_MS)
    await page.goto(links.look)
    await expect(page.locator(".tile").first).to_be_visible()
    await page.get_by_role("button", name="Gang", exact=True).click()
    await take(page, "fleet")
    await page.keyboard.press("g")
    await expect(page.locator("table.gangs")).to_be_visible()
    await take(page, "gangs")
    await page.get_by_role("link", name="next-pretrain").last.click()
    await page.get_by_role("button", name="Find out what would help").click()
    await expect(page.locator(".tries .yes").first).to_be_visible(timeout=TIMEOUT_MS)
    await take(page, "gang")
    await page.locator(".tries .yes a").first.click()
    verdict = page.locator("#what-if-verdict")
    await expect(verdict).to_be_visible(timeout=TIMEOUT_MS)
    await page.get_by_role("button", name="Replay").click()
    same = page.locator(".verdict").first
    await expect(same).to_contain_text("Same bytes", timeout=TIMEOUT_MS)
    header = "document.querySelector('header').style.position = 'static'"
    await page.evaluate(header)
    await page.set_viewport_size({"width": 1060, "height": 800})
    await take(page, "solve", whole=False)
    what_if = page.locator("section", has=page.locator("form"))
    await what_if.screenshot(path=IMAGES / "console-what-if.png")
    await page.goto(f"{links.address}#/node/gpu-7")
    await expect(page.locator(".device").first).to_be_visible()
    await take(page, "node")
    await page.keyboard.press("s")
    await expect(page.locator("table.solves")).to_be_visible()
    await take(page, "solves")


async def take_others(browser: Browser, links: ConsoleLinks) -> None:
    """A telephone, in the dark."""
    page = await browser.new_page(
        viewport={"width": 390, "height": 844}, color_scheme="dark"
    )
    await page.goto(links.look)
    await expect(page.locator(".tile").first).to_be_visible()
    await take(page, "telephone", whole=False)


async def take_large(browser: Browser, links: ConsoleLinks) -> None:
    """All of a large fleet, in the dark."""
    page = await browser.new_page(
        viewport={"width": 1280, "height": 900}, color_scheme="dark"
    )
    await page.goto(links.look)
    await expect(page.locator(".tile").first).to_be_visible()
    await page.get_by_role("button", name="Class and model").click()
    await take(page, "openb", whole=False)


async def run_small(home: Path, links: ConsoleLinks) -> None:
    """Take the pictures of the small fleet."""
    await submit_all(home)
    async with browser_up() as browser:
        await take_all(browser, links)
        await take_others(browser, links)


async def run_large(links: ConsoleLinks) -> None:
    """Take the picture of the large fleet."""
    async with browser_up() as browser:
        await take_large(browser, links)


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "small"
        with stack_up(home) as process:
            read_server(process)
            with console_up(home) as links:
                asyncio.run(run_small(home, links))
        home = Path(folder) / "openb"
        with stack_up(home, "--fleet", "openb") as process:
            read_server(process)
            with console_up(home) as links:
                asyncio.run(run_large(links))


if __name__ == "__main__":
    main()
