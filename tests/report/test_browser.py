"""The page in a real browser: what must not run does not, and choosing a sentence shades the prompt."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lrp4rag.report.html import html_page
from tests.report.samples import grounded_then_not, hostile
from tests.report.test_html import Page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on the path")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=3000",
    "--dump-dom",
]
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

ATTACKS = """
</script><script>document.documentElement.dataset.owned = "script"</script>
<img src="x:" onerror="document.documentElement.dataset.owned = 'image'">
<svg onload="document.documentElement.dataset.owned = 'svg'"></svg>
<input autofocus onfocus="document.documentElement.dataset.owned = 'focus'">
<iframe srcdoc="<script>parent.document.documentElement.dataset.owned = 'frame'</script>"></iframe>
<style>@import "x:";</style> " autofocus onfocus="document.documentElement.dataset.owned = 'quote'" x="
"""

# Steps that a reader of the page takes; after each, what is shaded.
DRIVER = """
const observed = {};
const find = (selector) => document.querySelector(selector);
function observe(name) {
  const shaded = {};
  for (const element of document.querySelectorAll("#prompt [data-l]")) {
    shaded[element.textContent.trim()] = element.dataset.l;
  }
  observed[name] = { shaded, status: find("#status").textContent, clear: !find("#clear").hidden };
}
const over = (element) => element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
const leave = () => find("#response").dispatchEvent(new MouseEvent("mouseleave"));
// A browser on a busy machine may not have the window's focus, and then says nothing of an element's.
const focus = (element) => {
  let told = false;
  element.addEventListener("focusin", () => { told = true; }, { once: true });
  element.focus();
  if (!told) element.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
};
const blur = (element) => {
  let told = false;
  element.addEventListener("focusout", () => { told = true; }, { once: true });
  element.blur();
  if (!told) element.dispatchEvent(new FocusEvent("focusout", { bubbles: true }));
};
const key = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const first = find('[data-s="0"]'), second = find('[data-s="1"]');

observe("start");
over(first); observe("hover");
leave(); observe("left");
second.click(); observe("click");
over(first); observe("hover over another");
leave(); observe("chosen stays");
key(document.body, "Escape"); observe("escape");
focus(first); observe("focus");
key(first, "ArrowRight"); observed.arrow = document.activeElement === second;
key(second, "Enter"); blur(second); observe("enter");
observed.pressed = second.getAttribute("aria-pressed");
find("#clear").click(); observe("clear");
observed.bars = Object.fromEntries([...document.querySelectorAll(".bars th")].map(
  (th) => [th.textContent, th.closest("tr").querySelector(".number").textContent]));

find('input[value="tokens"]').click(); observe("tokens");
over(find('[data-t="3"]')); observe("token hover");
find('[data-t="4"]').click(); leave(); observe("token click");
observed.stops = document.querySelectorAll('#response [tabindex="0"]').length;
observed.buttons = document.querySelectorAll('#response [role="button"]').length;
find('input[value="sentences"]').click(); observe("sentences again");

const output = document.createElement("pre");
output.id = "observed";
output.textContent = JSON.stringify(observed);
document.body.append(output);
"""


def dom(page: str, folder: Path) -> str:
    """The document as the browser leaves it after the scripts ran."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "</html>" in done.stdout, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    page = html_page(grounded_then_not(tokens=True))
    # The driver is no part of the page, so the page's own policy would not let it run.
    page = POLICY.sub("", page).replace("</body>", f"<script>{DRIVER}</script></body>")
    return json.loads(Page(dom(page, tmp_path_factory.mktemp("browser"))).text("observed"))


MEAN = {"1874.": "5", "2:Fish": "-3"}
FIRST, SECOND = {"1874.": "10"}, {"2:Fish": "-5"}


@pytest.mark.parametrize(
    ("step", "shaded"),
    [
        ("start", MEAN),
        ("hover", FIRST),
        ("left", MEAN),
        ("click", SECOND),
        ("hover over another", FIRST),
        ("chosen stays", SECOND),
        ("escape", MEAN),
        ("focus", FIRST),
        ("enter", SECOND),
        ("clear", MEAN),
        ("token hover", FIRST),
        ("token click", SECOND),
        ("sentences again", MEAN),
    ],
)
def test_shading_follows_the_reader(observed, step, shaded):
    assert observed[step]["shaded"] == shaded


def test_what_is_said_of_a_sentence(observed):
    assert observed["start"]["status"] == "Mean over the response's sentences"
    assert observed["hover"]["status"].startswith("Sentence 1: relevance +2;")
    assert observed["hover"]["status"].endswith("main source: passage 1 (+2.00)")
    assert observed["token hover"]["status"] == "Token “1874.”"
    assert observed["bars"]["passage 1"] == "+1"
    assert observed["bars"]["passage 2"] == "\u22120.5"


def test_clearing_is_offered_while_something_is_chosen(observed):
    assert [observed[step]["clear"] for step in ("start", "hover", "click", "escape", "enter", "clear")] == [
        False, False, True, False, True, False,
    ]  # fmt: skip


def test_keyboard(observed):
    assert observed["arrow"] is True
    assert observed["pressed"] == "true"
    assert (observed["stops"], observed["buttons"]) == (1, 9)


def test_the_page_runs_its_own_script_and_nobody_elses(tmp_path):
    page = html_page(hostile(ATTACKS))
    left = dom(page, tmp_path)
    assert not re.search(r"<html[^>]*data-owned", left)
    assert 'role="button"' in left  # its own script did run, under its policy
    assert not re.search(r"<(img|iframe|input autofocus)", left)


def test_the_policy_stops_what_escaping_would_let_through(tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    page = html_page(grounded_then_not()).replace("</body>", f"{ATTACKS}</body>")
    assert not re.search(r"<html[^>]*data-owned", dom(page, tmp_path / "with"))
    # And the attacks are real ones:
    assert re.search(r"<html[^>]*data-owned", dom(POLICY.sub("", page), tmp_path / "without"))
