"""The web console in a real browser: each view shows what the bus says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from msgspec import structs

from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.kubernetes.decode import decode_object
from contracts.messages import SubmitGang
from contracts.topics import STATE, SUBMISSIONS
from moorings.bus_client import Client
from runtime.waits import first_of
from runtime.wire import Outgoing
from tests.builders.inputs import TRAIN
from tests.builders.queues import cluster_queue, flavor, local_queue, observed
from tests.lab.command_line import open_as, read_server, stack_up
from tests.lab.services import eventually

pytest.importorskip("playwright", reason="Playwright is not installed")
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from tests.lab.browser import ConsoleLinks, browser_up, console_up

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
GPU = "gpu.moorings.dev"
WIDE, NARROW = (1280, 860), (390, 844)
LINE_PX = 48
TIMEOUT_MS = 60_000
pytestmark = pytest.mark.asyncio(loop_scope="module")
expect.set_options(timeout=TIMEOUT_MS)
Theme = Literal["light", "dark"]
ALSO_SHOWN = [
    pytest.param(*form, marks=pytest.mark.soak)
    for form in ((WIDE, "dark"), (NARROW, "light"))
]
"""Forms of a page besides those that show each size and each theme once."""


def gang_of(name: str, *, pods: int = 2, gpus: int = 4) -> Gang:
    """Make a gang of simulated GPUs."""
    raw: dict[str, Any] = json.loads(json.dumps(TRAIN))
    raw["metadata"]["name"] = name
    (member,) = raw["spec"]["members"]
    member["count"] = pods
    (request,) = member["claims"][0]["spec"]["devices"]["requests"]
    request["exactly"]["count"] = gpus
    value = decode_object(raw).value
    assert isinstance(value, Gang)
    return value


async def submit_unchecked(client: Client, name: str) -> None:
    """Submit as somebody who checks no names."""
    gang = gang_of("x")
    gang = structs.replace(gang, metadata=structs.replace(gang.metadata, name=name))
    message = SubmitGang(cluster=client.cluster, uid=GangUID("hostile"), gang=gang)
    await client.bus.publish(Outgoing.of(SUBMISSIONS, message))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A stack with gangs: one holds 40 of 64 GPUs, one waits; its home and link."""
    home = tmp_path_factory.mktemp("home")
    with stack_up(home) as process:
        read_server(process)
        asyncio.run(_submit_all(home))
        assert process.stdout is not None
        (link,) = [line.split()[1] for line in _read_lines(process.stdout)]
        yield home, link


def _read_lines(output: IO[str]) -> Iterator[str]:
    """Read what `up` prints until it names its console."""
    for line in output:
        if line.strip().startswith("console"):
            yield line
            return


@pytest.fixture(scope="module")
def console(stack: tuple[Path, str]) -> Iterator[ConsoleLinks]:
    """A console of its own beside the stack."""
    home, _ = stack
    with console_up(home) as links:
        yield links


async def _observe_queues(home: Path) -> None:
    """Say that there is a queue, of a namespace in which nobody waits."""
    queue = cluster_queue("idle", {"any": {GPU: 8}}, cohort="research")
    async with open_as("publisher", home) as client:
        for raw in (flavor("any"), queue, local_queue("team-q", "idle")):
            await client.bus.publish(Outgoing.of(STATE, observed(raw, client.cluster)))


async def _submit_all(home: Path) -> None:
    await _observe_queues(home)
    async with open_as("platform", home) as client:
        # One after the other: in one batch the second would be outranked by the first,
        # and which solve comes last would be left to chance.
        await submit_unchecked(client, HOSTILE)
        await _all_are_decided(client)
        await client.submit(gang_of("train", pods=5, gpus=8))
        await _all_are_decided(client)
        await client.submit(gang_of("waits", pods=4, gpus=8))
        await _all_are_decided(client)


async def _all_are_decided(client: Client) -> None:
    async with asyncio.timeout(60):
        while not all(g.decision for g in await client.fetch_gangs()):
            await first_of(asyncio.Event(), within_s=0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with browser_up() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, console: ConsoleLinks) -> AsyncIterator[Page]:
    """A page that may look; whatever a script complains of fails the test."""
    async with open_page(browser, console.look) as page:
        yield page


@asynccontextmanager
async def open_page(
    browser: Browser, link: str, size: tuple[int, int] = WIDE, theme: Theme = "light"
) -> AsyncIterator[Page]:
    """Open a page at a link; at its end no script has failed."""
    width, height = size
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme
    )
    page = await context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        await page.goto(link)
        await expect(page.locator("#live")).to_have_text("live")
        await expect(page.locator(".tile").first).to_be_visible()
        yield page
    finally:
        await context.close()
    assert errors == []


async def test_the_fleet_is_one_picture(page: Page) -> None:
    tiles = page.locator(".tile")
    words = ["8nodes", "2gangs, 1 waiting", "24 of 64 free", "64 of 64 free"]
    await expect(tiles).to_contain_text(words)
    await expect(tiles.nth(2)).to_contain_text("class gpu.moorings.dev")
    await expect(tiles.nth(2)).to_contain_text("40 held")
    await expect(page.locator(".legend")).to_contain_text("Held 40")
    await page.get_by_role("button", name="Gang", exact=True).click()
    await expect(page.locator(".legend")).to_contain_text("team-a/train 40")
    assert await is_drawn(page)


async def is_drawn(page: Page) -> bool:
    """Whether the canvas has more than one colour."""
    return bool(
        await page.evaluate(
            """() => {
              const canvas = document.querySelector("canvas");
              const { width, height } = canvas;
              const all = canvas.getContext("2d").getImageData(0, 0, width, height);
              return new Set(new Uint32Array(all.data.buffer)).size > 4;
            }"""
        )
    )


async def test_the_token_does_not_stay_in_the_address(page: Page) -> None:
    assert "token" not in page.url


async def test_a_new_user_finds_out_why_a_gang_waits_and_what_would_help(
    page: Page,
) -> None:
    await page.get_by_role("link", name="team-a/waits").click()
    await expect(page.locator(".why .rule")).to_contain_text("DevicesTaken")
    line = page.locator("section", has_text="Its place in line")
    await expect(line).to_contain_text("Place 1 of 1")
    await expect(line).to_contain_text("held by team-a/train (40 devices, priority 0)")
    await page.get_by_role("button", name="Find out what would help").click()
    enough = page.locator(".tries .yes")
    # The gang that holds the devices is of equal priority: it is never proposed to end.
    await expect(enough.first).to_contain_text("1 more node like")
    await enough.first.get_by_role("link", name="try it").click()
    verdict = page.locator("#what-if-verdict")
    await expect(verdict).to_contain_text("team-a/waits gets its devices")
    await expect(page.locator(".difference")).to_contain_text("what-if-1-like-")


async def test_a_gang_has_a_time_line_and_its_places(page: Page) -> None:
    await page.keyboard.press("g")
    await page.get_by_role("link", name="train").click()
    events = page.locator(".timeline li")
    await expect(events.first).to_have_attribute("data-event", "SubmitGang")
    await expect(events.last).to_have_attribute("data-event", "AllocationWritten")
    places = page.locator("section", has_text="Where it is").locator("tbody tr")
    await expect(places).to_have_count(5)
    await places.first.get_by_role("link").click()
    await expect(page.locator(".device", has_text="Held")).to_have_count(8)
    await expect(page.locator(".device[data-device=nic-0]")).to_contain_text("Free")


async def test_a_queue_is_a_line_with_its_quotas(page: Page) -> None:
    await page.keyboard.press("q")
    row = page.locator("table.queues tr.row")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("research")
    await expect(row).to_contain_text(f"{GPU} 0 of 8 of any, 8 left")


async def test_a_recorded_solve_is_replayed_to_the_same_bytes(page: Page) -> None:
    await page.keyboard.press("s")
    await page.locator("table.solves tbody a").first.click()
    objective = page.locator("section", has_text="Objective").first
    await expect(objective).to_contain_text("weight of the allocated gangs")
    await page.get_by_role("button", name="Replay").click()
    await expect(page.locator(".verdict").first).to_have_text("✓ Same bytes")


async def test_a_hostile_name_stays_text(page: Page) -> None:
    await page.goto(page.url.partition("#")[0] + "#/gangs")
    await page.get_by_role("button", name="Finished").click()
    link = page.get_by_role("link", name=HOSTILE)
    await expect(link).to_have_text(f"team-a/{HOSTILE}")
    await link.click()
    await expect(page.locator("h1")).to_have_text(HOSTILE)
    await page.keyboard.press("/")
    await page.locator("#search").fill("<img")
    await expect(page.locator("#found li")).to_contain_text(HOSTILE)
    assert await page.locator("main img, #found img").count() == 0
    assert "owned" not in await page.title()


async def test_search_and_keys_lead_everywhere(page: Page) -> None:
    await page.keyboard.press("/")
    await page.keyboard.type("gpu-3")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("gpu-3")
    await page.keyboard.press("f")
    canvas = page.locator("canvas")
    await canvas.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".card p[role=status]")).to_contain_text("gpu-1: ready")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("gpu-1")
    await page.keyboard.press("g")
    await expect(page.locator("table.gangs")).to_be_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("waits")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("dark or light")


async def test_what_changes_is_seen_and_who_only_looks_changes_nothing(
    browser: Browser, console: ConsoleLinks, page: Page
) -> None:
    await page.keyboard.press("g")
    await expect(page.locator("table.gangs")).to_be_visible()
    assert await page.get_by_text("Submit a gang").count() == 0
    async with open_page(browser, console.change) as changing:
        await changing.keyboard.press("g")
        await changing.get_by_text("Submit a gang").click()
        manifest = json.dumps({**TRAIN, "metadata": {"name": "late", "namespace": "b"}})
        await changing.get_by_label("Manifest").fill(manifest)
        await changing.get_by_role("button", name="Submit").click()
        row = page.locator("tr.row", has_text="late")
        await expect(row).to_contain_text("Has devices")
        await changing.get_by_role("link", name="late").click()
        changing.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
        await changing.get_by_role("button", name="Release").click()
        await expect(row).to_have_count(0)
        await expect(changing.locator("h1 + .badge")).to_have_text("Completed")


async def open_each_view(page: Page, console: ConsoleLinks) -> AsyncIterator[str]:
    """Go through all views, each with what it shows in the page."""
    shown = {
        "fleet": "canvas",
        "node/gpu-0": ".device",
        "gangs": "table.gangs",
        "queues": "table.queues",
        "solves": "table.solves",
    }
    for view, part in shown.items():
        await page.goto(f"{console.address}#/{view}")
        await expect(page.locator(part).first).to_be_visible()
        yield view
    for view, part in (("gangs", ".timeline"), ("solves", "form")):
        await page.goto(f"{console.address}#/{view}")
        await page.locator("tr.row td:first-child a").first.click()
        await expect(page.locator(part).first).to_be_visible()
        yield f"one of {view}"


@pytest.mark.parametrize(
    ("size", "theme"), [(WIDE, "light"), (NARROW, "dark"), *ALSO_SHOWN]
)
async def test_every_view_fits_its_page_and_can_be_used_by_all(
    browser: Browser, console: ConsoleLinks, size: tuple[int, int], theme: Theme
) -> None:
    """By axe: contrast, names for screen readers, headings, order of focus."""
    async with open_page(browser, console.look, size, theme) as page:
        async for view in open_each_view(page, console):
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], view
            found = await Axe().run(page)
            assert not found.violations_count, (view, found.generate_report())
        assert await page.evaluate("document.documentElement.dataset.theme") == theme


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_gang_is_a_line(
    browser: Browser, console: ConsoleLinks, size: tuple[int, int]
) -> None:
    async with open_page(browser, console.look, size) as page:
        await page.keyboard.press("g")
        row = page.locator("table.gangs tr.row", has_text="waits")
        await expect(row.locator(".badge")).to_have_text("Waiting")
        box = await row.bounding_box()
        assert box is not None
        assert box["height"] < LINE_PX


async def test_solves_are_found_by_gang_and_by_answer(page: Page) -> None:
    await page.keyboard.press("s")
    rows = page.locator("table.solves tr.row")
    await page.get_by_placeholder("Gang or namespace").fill("team-a/wai")
    await expect(rows.first).to_contain_text("team-a/waits")
    await expect(page.locator("table.solves")).not_to_contain_text("team-a/train")
    await page.get_by_placeholder("Gang or namespace").fill("")
    await expect(page.locator("table.solves")).to_contain_text("team-a/train")
    await page.get_by_role("button", name="With waiting gangs").click()
    await expect(page.locator("table.solves")).not_to_contain_text("team-a/train")


async def test_times_are_those_of_the_readers_clock(
    browser: Browser, console: ConsoleLinks
) -> None:
    context = await browser.new_context(timezone_id="Asia/Kolkata", locale="en-US")
    page = await context.new_page()
    await page.goto(console.look)
    await page.keyboard.press("s")
    at = page.locator("table.solves tr.row td[data-label=At] time").first
    await expect(at).to_contain_text("GMT+5:30")
    recorded = datetime.fromisoformat(await at.get_attribute("datetime") or "")
    local = recorded.astimezone(timezone(timedelta(hours=5, minutes=30)))
    await expect(at).to_have_text(f"{local:%Y-%m-%d %H:%M:%S} GMT+5:30")
    await context.close()


async def test_up_serves_a_console_that_changes_nothing(
    browser: Browser, stack: tuple[Path, str]
) -> None:
    _, link = stack
    async with open_page(browser, link) as page:
        await page.keyboard.press("g")
        await expect(page.locator("table.gangs")).to_contain_text("train")
        assert await page.get_by_text("Submit a gang").count() == 0
    links = ConsoleLinks(look=link, change=link)
    token = f"Bearer {links.token(link)}"
    submit = "/api/change/submit"
    assert ask(links, submit, "POST", Authorization=token) == 403


async def test_without_the_token_there_is_nothing(
    browser: Browser, console: ConsoleLinks
) -> None:
    page = await browser.new_page()
    await page.goto(console.address)
    await expect(page.locator("h1")).to_have_text("This console needs its token")
    assert await page.locator(".tile").count() == 0
    await page.close()


def ask(console: ConsoleLinks, path: str, method: str = "GET", **headers: str) -> int:
    """Ask as any program may; returns the status."""
    connection = HTTPConnection(urlsplit(console.address).netloc, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


async def test_others_are_refused_by_host_origin_and_token(
    console: ConsoleLinks,
) -> None:
    look = f"Bearer {console.token(console.look)}"
    change = f"Bearer {console.token(console.change)}"
    node, submit = "/api/nodes/gpu-0", "/api/change/submit"
    seen = partial(ask, console, node, Authorization=look)
    await eventually(lambda: seen() == 200, "the console knows the node")
    assert ask(console, node) == 401
    assert ask(console, "/", Host="rebound.example.com") == 421
    other = "http://other.example.com"
    assert ask(console, node, Authorization=look, Origin=other) == 403
    assert ask(console, submit, "POST", Authorization=look) == 403
    assert ask(console, submit, "POST", Authorization=change) == 400
    cancel = "/api/change/cancel/team-a/nobody"
    assert ask(console, cancel, "POST", Authorization=change) == 404
    assert ask(console, "/../access.py") == 404


async def test_a_console_says_that_no_solver_leads(
    browser: Browser, stack: tuple[Path, str]
) -> None:
    """On every page, in words; where one does nothing is said."""
    home, _ = stack
    with console_up(home, "--cluster", "nowhere") as links:
        async with open_page(browser, links.look, WIDE, "light") as page:
            notice = page.locator("#notice")
            await expect(notice).to_contain_text(
                "no solver has ever led in cluster nowhere"
            )
            await page.keyboard.press("g")
            await expect(notice).to_be_visible()
    with console_up(home) as links:
        async with open_page(browser, links.look, WIDE, "light") as page:
            await expect(page.locator(".tile").first).to_be_visible()
            await expect(page.locator("#notice")).to_be_hidden()
