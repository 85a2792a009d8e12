"""Take the pictures of docs/page.md, of a server with the bundled detector, in a headless Chromium."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import httpx
from playwright.sync_api import Browser, Page, Route, sync_playwright

from benchmarks.command import SETTINGS, exit_codes
from benchmarks.service.server import started
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.util.errors import LRP4RAGError

EXAMPLES = Path(__file__).parents[2] / "examples"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
WIDE, NARROW = (1280, 800), (390, 844)
CITED = (
    "According to passage 2, partners are entitled to 6 weeks of paid leave. "
    "Requests are sent to the HR portal [2]."
)
"""The first sentence cites a passage that does not support it, so that a reviewer decides on it: here
that is escalated."""
APART = timedelta(hours=9)
"""Between decisions of the history: in truth they are made within a minute."""


@click.command(context_settings=SETTINGS)
@click.option(
    "--out", default="docs/images", show_default=True, type=click.Path(path_type=Path, file_okay=False)
)
def pictures(out: Path) -> None:
    """Take the pictures of the page again."""
    with exit_codes(), _browser() as browser, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "page.html").write_text(_static(), encoding="utf-8")
        _take(browser, f"file://{folder}/page.html", out / "page.png", WIDE)
        _take(browser, f"file://{folder}/page.html", out / "page-expert.png", WIDE, expert=True)
        escalating = {"rules": {"misattributed": "escalate"}}
        with started(folder, reader="default", demo=True, keep_texts=True, policy=escalating) as server:
            for example in [*load_examples(EXAMPLES / "contradictions.jsonl"), *_lighthouses()]:
                _judge(server.url, example)
            first = next(iter(load_examples(EXAMPLES / "contradictions.jsonl")))
            _judge(server.url, first.with_response(CITED))
            for name, size, scheme in (("check", WIDE, "light"), ("check-narrow", NARROW, "dark")):
                page = _opened(browser, server.url, size, scheme)
                page.get_by_role("button", name="Try an example").click()
                page.get_by_role("button", name="Check the answer").click()
                page.locator(".sentence").first.wait_for()
                page.mouse.move(0, 0)
                page.screenshot(path=out / f"{name}.png", full_page=size == WIDE)
            page = _opened(browser, server.url, WIDE, "light", "#review")
            page.locator("#queue .sentence").first.wait_for()
            page.get_by_label("Your name").fill("Ada")
            page.get_by_label("Your name").blur()
            page.screenshot(path=out / "review.png")
            page = _opened(browser, server.url, WIDE, "dark", "#history")
            page.locator(".plots").wait_for()
            page.screenshot(path=out / "history.png")
    click.echo(f"wrote the pictures to {out}")


@contextmanager
def _browser() -> Iterator[Browser]:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise LRP4RAGError("there is no Chromium on the path: install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


def _static() -> str:
    """The page of one analysis that the README shows."""
    (example,) = load_examples(EXAMPLES / "hallucinated.json")
    return Detector.load().judge(example).to_html()


def _lighthouses() -> list[Example]:
    return [one for name in ("grounded", "hallucinated") for one in load_examples(EXAMPLES / f"{name}.json")]


def _judge(url: str, example: Example) -> None:
    body = {"question": example.question, "passages": list(example.passages), "response": example.response}
    httpx.post(f"{url}/v1/judge", json=body, timeout=120).raise_for_status()


def _opened(browser: Browser, url: str, size: tuple[int, int], scheme: str, part: str = "") -> Page:
    width, height = size
    options: Any = {
        "color_scheme": scheme,
        "has_touch": size == NARROW,
        "locale": "en-GB",
        "timezone_id": "UTC",
    }
    page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    page.set_default_timeout(60_000)
    page.route("**/v1/decisions?*", _spread)
    page.goto(f"{url}/{part}" if url.startswith("http") else url)
    return page


def _spread(route: Route) -> None:
    """Decisions as if they had been made over some days."""
    told = route.fetch().json()
    now = datetime(2026, 3, 30, 16, tzinfo=UTC)
    for number, one in enumerate(told["decisions"]):
        one["time"] = (now - number * APART).isoformat()
    route.fulfill(content_type="application/json", body=json.dumps(told))


def _take(browser: Browser, url: str, path: Path, size: tuple[int, int], *, expert: bool = False) -> None:
    page = _opened(browser, url, size, "light")
    if expert:
        page.get_by_role("button", name="Expert view").click()
    page.screenshot(path=path, full_page=True)
