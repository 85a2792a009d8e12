from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from lrp4rag.report.html import html_page, html_summary
from lrp4rag.report.page import Piece, cut, level, rounded
from lrp4rag.report.record import record
from tests.report.samples import RESPONSE, analysis_of, encoded_of, grounded_then_not, hostile


class Page(HTMLParser):
    """The page's elements, with the text inside those that have an id or a class."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag not in ("meta", "input"):
            key = named.get("id") or named.get("class") or tag
            self._open.append((tag, key))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        self.texts.append((tuple(key for _, key in self._open), data))

    def text(self, key: str) -> str:
        return "".join(text for path, text in self.texts if key in path)

    def marked(self) -> list[str]:
        """Every text that is marked, once in the summary and once in the response."""
        return [text for path, text in self.texts if path[-1:] == ("mark",) and "note" not in path]

    def data(self):
        """What the page's scripts show."""
        return json.loads(self.text("data"))

    def rows(self):
        """What shades the prompt."""
        return json.loads(self.text("rows"))

    def shaded(self) -> dict[str, str]:
        """Step of shading by token text, default shading."""
        found = {}
        steps = [
            named.get("data-l") for tag, named in self.tags if named.get("class", "") in ("p", "p break")
        ]
        texts = [text for path, text in self.texts if "prompt" in path and path[-1] in ("p", "p break")]
        for step, text in zip(steps, texts, strict=True):
            if step:
                found[text.strip()] = step
        return found


def test_the_page_shows_verdict_prompt_and_response():
    analysis = grounded_then_not(token_threshold=0.0)
    page = Page(html_page(analysis, detector="default"))
    assert page.text("headline") == "Likely hallucinated, probability 0.78 (of 2 sentences 1 unsupported)"
    data = page.data()
    assert (data["question"], data["passages"]) == (
        analysis.example.question,
        list(analysis.example.passages),
    )
    assert data["verdict"] == json.loads(json.dumps(record(analysis)))
    assert page.text("prompt") == analysis.encoded.text
    assert page.text("response") == RESPONSE
    facts = page.text("dl")
    for words in ("bridge-1", "tiny, raw prompt, float32, abc123", "attnlrp", "default", "0.50"):
        assert words in facts


def test_the_page_says_which_prevalence_its_probabilities_are_for():
    words, analysis = "probabilities are for a prevalence of 0.12", grounded_then_not()
    assert words not in html_page(analysis) + html_summary(analysis)
    shifted = replace(analysis, prevalence=0.12)
    page = Page(html_page(shifted))
    assert page.data()["verdict"]["prevalence"] == 0.12
    assert words in page.text("dl")
    assert words in html_summary(shifted)


def test_segments_shading_and_marks_need_no_script():
    page = Page(html_page(grounded_then_not()))
    assert "The bridge opened in 1874." in page.text("segment passage")
    assert page.text("segment question").strip() == "When did the bridge open?"
    assert "Briefly answer" in page.text("segment template")
    names = [named["data-name"] for _, named in page.tags if "data-name" in named]
    assert names == ["passage 1", "passage 2"]
    # The mean over sentences: 1.0 and -0.5 on a scale of 2.0 (row maxima: 2.0 and -1.0).
    assert page.shaded() == {"1874.": "5", "2:Fish": "-3"}
    assert set(page.marked()) == {"Aliens built it from cheese."}, "the one with the lowest relevance"
    every = Page(html_page(grounded_then_not(token_threshold=99.0)))
    assert set(every.marked()) == {"It opened in 1874.", "Aliens built it from cheese."}
    fine = html_page(grounded_then_not(token_threshold=99.0, probability=0.2))
    assert Page(fine).marked() == [], "nothing is marked where nothing is flagged"
    assert "suspect, so that nothing" in fine


def test_data_for_the_script():
    data = Page(html_page(grounded_then_not())).rows()
    assert np.shape(data["sentences"]["rows"])[0] == 2
    assert max(data["sentences"]["rows"][0]) == 2.0
    assert data["restsOn"] == ["passage 1 (+2.00)", "no passage"]


@pytest.mark.parametrize("options", [{"rows": False}, {"segments": False}])
def test_whatever_was_not_attributed_is_left_out(options):
    page = Page(html_page(analysis_of(probability=None, **options)))
    assert page.text("headline") == "Evidence only, no detector"
    assert page.text("response") == RESPONSE


def test_tokens_that_share_characters_are_shown_once_and_summed():
    example = analysis_of().example
    encoded = encoded_of(example)
    first = encoded.prompt_offsets[0]
    encoded = replace(
        encoded,
        prompt_offsets=(first, first, first, *encoded.prompt_offsets[1:]),
        prompt_ids=(0, 0, *encoded.prompt_ids),
        segments=(0, 0, *encoded.segments),
    )
    matrix = np.zeros((9, len(encoded.prompt_ids)))
    matrix[:, :3] = [1.0, 2.0, 4.0]
    page = Page(html_page(analysis_of(example, encoded=encoded, matrix=matrix)))
    assert page.text("prompt") == encoded.text
    assert page.rows()["sentences"]["rows"][0][:2] == [7, 0]


def test_dropped_tokens_are_struck_through():
    encoded = encoded_of(analysis_of().example)
    last = max(k for k, segment in enumerate(encoded.segments) if segment == 3)

    def without(values):
        return (*values[:last], *values[last + 1 :])

    cut = replace(
        encoded,
        prompt_ids=without(encoded.prompt_ids),
        prompt_offsets=without(encoded.prompt_offsets),
        segments=without(encoded.segments),
        dropped=1,
    )
    page = Page(html_page(analysis_of(encoded=cut)))
    assert page.text("prompt") == cut.text
    assert page.text("gone").strip().endswith("nearby.")
    assert "1 passage tokens were dropped" in page.text("warning")


def test_nothing_but_the_own_script_and_style_may_run_or_load():
    page = html_page(grounded_then_not())
    policy = next(
        named["content"]
        for tag, named in Page(page).tags
        if named.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    # A name, which is never loaded.
    assert not re.search(r"(src|href)=|url\(|https?:|@import", page.replace("http://www.w3.org/2000/svg", ""))


ATTACKS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "<!--<script>",
    "{{ 7 * 7 }} {% raw %}",
    "]]></style><svg onload=alert(1)>",
    "\u2028\u2029 \u202e \ud800 \x00 \x1b",
]


@pytest.fixture(scope="module")
def plain():
    return Page(html_page(hostile("innocent text")))


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_adds_no_element_and_no_attribute(attack, plain):
    page = html_page(hostile(attack))
    page.encode("utf-8")
    parsed = Page(page)
    assert {tag for tag, _ in parsed.tags} <= {tag for tag, _ in plain.tags}
    assert {key for _, named in parsed.tags for key in named} <= {
        key for _, named in plain.tags for key in named
    }
    assert sum(tag == "script" for tag, _ in parsed.tags) == 3
    assert parsed.data().keys() == plain.data().keys()
    assert parsed.rows().keys() == plain.rows().keys()
    if attack.isprintable():
        for key in ("prompt", "response", "dl", "title", "fallback"):
            assert attack in parsed.text(key)


def test_levels_and_rounding():
    assert [level(v, 2.0) for v in (0.0, 0.09, 0.1, 1.0, 5.0, -0.3, -9.0)] == [0, 0, 1, 5, 10, -2, -10]
    assert rounded(np.array([[12.34567, -0.00004, 0.5]])) == [[12.35, 0.0, 0.5]]
    assert rounded(np.zeros((1, 2))) == [[0, 0]]


OFFSETS = [(0, 0), (1, 3), (3, 4), (3, 4), (6, 9), (8, 10)]


def test_every_character_is_in_one_piece():
    pieces = cut(OFFSETS, 12)
    assert pieces == [
        Piece(0, 1, ()),
        Piece(1, 3, (1,)),
        Piece(3, 4, (2, 3)),
        Piece(4, 6, ()),
        Piece(6, 10, (4, 5)),
        Piece(10, 12, ()),
    ]
