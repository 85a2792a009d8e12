"""A headless Chromium, by Playwright, for tests of pages; they are skipped where one of both is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = [
    *([] if CHROMIUM else ["a Chromium on the path"]),
    *(name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None),
]
needs_browser = pytest.mark.skipif(bool(MISSING), reason=f"there is no {', no '.join(MISSING)}")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
Open = Callable[..., Any]


@contextmanager
def browsing() -> Iterator[Open]:
    """A function that opens a page; what its scripts fail at, or its policy refuses, fails at the end. Pages
    of earlier tests are closed then: with forty open, each takes twice as long.

    Chromium runs until the end: Playwright's loop of events is in this thread, where another cannot run.
    """
    from playwright.sync_api import sync_playwright

    troubles: list[str] = []
    opened: list[tuple[str, Any]] = []
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)

        def open_page(url: str, *, quiet: bool = False, narrow: bool = False, **options: Any) -> Any:
            test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
            while opened and opened[0][0] != test:
                opened.pop(0)[1].close()
            context = browser.new_context(viewport=NARROW if narrow else WIDE, has_touch=narrow, **options)
            opened.append((test, context))
            page = context.new_page()
            page.set_default_timeout(15_000)
            if not quiet:
                page.on("pageerror", lambda error: troubles.append(str(error)))
                page.on(
                    "console",
                    lambda message: troubles.append(message.text) if message.type == "error" else None,
                )
            page.goto(url)
            return page

        yield open_page
    assert troubles == []


def faults_of(page: Any) -> list[str]:
    """What axe finds wrong with a page for people who cannot see it, or use no mouse. The page is opened with
    `bypass_csp`, for axe is no script of ours."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]


def overflows(page: Any) -> bool:
    """Whether a page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
