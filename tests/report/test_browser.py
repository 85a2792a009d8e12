"""The page of one analysis in a real browser: what must not run does not, pointing at a sentence tells why,
and choosing one shades the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from lrp4rag.claims.arithmetic import Computed, ComputedKind
from lrp4rag.classifiers.verdict import Difference, DifferenceKind
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.report.html import html_page
from lrp4rag.util.text import visible
from tests.browser import Open, browsing, faults_of, needs_browser, overflows
from tests.report.samples import RESPONSE, contradicted, grounded_then_not, hostile
from tests.report.test_record import LONG, judged

pytestmark = needs_browser

ATTACKS = """
</script><script>document.documentElement.dataset.owned = "script"</script>
<img src="x:" onerror="document.documentElement.dataset.owned = 'image'">
<svg onload="document.documentElement.dataset.owned = 'svg'"></svg>
<input autofocus onfocus="document.documentElement.dataset.owned = 'focus'">
<iframe srcdoc="<script>parent.document.documentElement.dataset.owned = 'frame'</script>"></iframe>
<style>@import "x:";</style> " autofocus onfocus="document.documentElement.dataset.owned = 'quote'" x="
"""


@pytest.fixture(scope="module")
def open_page() -> Iterator[Open]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def show(open_page: Open, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pages")

    def shown(html: str, **options: Any) -> Any:
        file = folder / f"{len(list(folder.iterdir()))}.html"
        file.write_text(html, encoding="utf-8")
        return open_page(file.as_uri(), **options)

    return shown


def owned(page: Any) -> str | None:
    return page.evaluate("document.documentElement.dataset.owned ?? null")


# What a newcomer sees.


def quotes_are_cut_between_words(page: Any) -> None:
    for text, most, kept in (
        ("a storm destroyed its upper gallery in 1953", 36, "a storm destroyed its upper gallery…"),
        ("a storm destroyed its upper gallery in 1953", 30, "a storm destroyed its upper…"),
        ("take not more than 6 tablets a day", 22, "take not more than…"),
        ("short", 22, "short"),
        ("x" * 50, 10, "x" * 9 + "…"),
    ):
        assert page.evaluate("([text, most]) => lrp4rag.clipped(text, most)", [text, most]) == kept


def test_the_word_that_is_wrong_is_joined_with_the_passages(show) -> None:
    page = show(html_page(contradicted()))
    assert page.locator("h1").inner_text() == "Passage 2 says 2 weeks, not 4 weeks"
    assert page.locator("mark.wrong").inner_text() == "4 weeks"
    assert page.locator("mark.instead").first.inner_text() == "2 weeks"
    assert page.locator(".joins path").count() == 1
    assert page.locator(".why").inner_text() == "Passage 2 says “2 weeks”, not “4 weeks”."
    assert "permit lasts 2 weeks here." in page.locator(".quote").inner_text()
    assert page.locator(".issue").inner_text() == "“4 weeks” is contradicted: passage 2 says 2 weeks"
    for words in ("logits", "nats", "tokens", "0.78"):
        assert words not in page.locator("body").inner_text()
    assert "contradicted" in page.locator(".sentence").first.get_attribute("class")
    page.get_by_role("button", name="Expert view").click()
    moved = page.get_by_role("heading", name="What moved the verdict most").locator("+ ul li")
    assert moved.all_inner_texts() == ['the response: "4 weeks": passage 2 has "2 weeks"']
    quotes_are_cut_between_words(page)


def test_pointing_at_a_sentence_tells_why(show) -> None:
    page = show(html_page(judged()))
    first, second = page.locator(".sentence").all()
    why = page.locator(".why")
    assert (
        why.inner_text() == "Nothing in the passages supports this."
    )  # the worst is at hand from the beginning
    first.hover()
    assert why.inner_text().startswith("Nothing speaks against it")
    assert (first.get_attribute("data-step"), second.get_attribute("data-step")) == ("0", "3")
    assert page.locator(".summary").inner_text() == "Of 2 sentences: 1 without support."


def test_each_status_has_its_words_and_colours(show) -> None:
    """Colours do not contradict the verdict: what is supported is never one of the two darkest."""
    doubtful = show(html_page(judged(claims=(0.45, 0.05))))
    steps = [one.get_attribute("data-step") for one in doubtful.locator(".sentence").all()]
    assert steps == ["1", "0"]
    assert doubtful.locator("h1").inner_text() == "Looks supported"
    assert doubtful.locator(".issue").count() == 0
    flagged = show(html_page(judged(claims=(0.45, 0.55))))
    assert (
        flagged.locator("h1").inner_text()
        == "Nothing in the passages supports “Aliens built it from cheese.”"
    )
    assert flagged.locator(".banner .reason").inner_text() == "The detector's verdict: likely hallucinated."

    page = show(html_page(judged(claims=(0.9, 0.78), stating=("nothing", "a claim"))))
    first, second = page.locator(".sentence").all()
    assert "nothing" in first.get_attribute("class")
    assert (first.get_attribute("data-step"), second.get_attribute("data-step")) == (None, "3")
    first.hover()
    assert page.locator(".why").inner_text() == "This states nothing that a passage could support."
    assert page.locator(".issue").count() == 1

    page = show(html_page(judged(unlike=((), (LONG,)))))
    assert page.locator("h1").inner_text() == "No verdict"
    assert "what the detector learned" in page.locator(".banner").inner_text()
    assert "unjudged" in page.locator(".sentence").last.get_attribute("class")
    assert page.locator(".summary").inner_text() == "Of 2 sentences: 1 not judged."


def test_an_answer_that_states_nothing_has_no_verdict(show) -> None:
    page = show(html_page(judged(claims=(0.9, 0.9), stating=("nothing", "nothing"), reasons=())))
    assert page.locator("h1").inner_text() == "No verdict"
    assert page.locator(".banner .reason").inner_text() == "It states nothing that a passage could support."
    assert page.locator(".issue").count() == 0


@pytest.mark.parametrize(
    ("reason", "action", "headline"),
    [
        ("contradicted", "withhold", "Passage 2 says 2 weeks, not 4 weeks"),
        ("fabricated citation", "withhold", "It cites a document that is not among the passages"),
        ("conflict", "disclose", "The passages contradict each other on what it says"),
        ("unlike training data", "withhold", "No verdict"),
    ],
)
def test_a_file_says_what_is_wrong_and_not_what_was_done(
    show, reason: str, action: str, headline: str
) -> None:
    """Nothing was done with its answer."""
    analysis = contradicted()
    if reason != "contradicted":
        unlike = ((LONG,), (LONG,)) if reason == "unlike training data" else ((), ())
        analysis = judged(claims=(0.05, 0.05), unlike=unlike)
    found = assess(Policy(), analysis.example, analysis)
    decision = replace(found, decided=replace(found.decided, action=action, reason=reason))
    page = show(html_page(analysis, decision=decision))
    assert page.locator("h1").inner_text() == headline
    would = page.locator(".would").inner_text()
    assert would.startswith("The policy would ")
    text = page.locator("body").inner_text()
    for words in ("Withheld", "Served", "Held for"):
        assert words not in text


def test_lines_from_several_words_can_be_told_apart(show) -> None:
    page = show(html_page(contradicted()))
    for between in (" ", "\n"):  # one row of text, and a row for each
        lines_are_told_apart(page, between)


def lines_are_told_apart(page: Any, between: str) -> None:
    page.evaluate(
        """(between) => {
          const { view, ofVerdict } = lrp4rag;
          const values = [0, 1, 2, 3, 4];
          const response = values.map((k) => `W${k}`).join(between);
          const passage = values.map((k) => `P${k}`).join(between);
          const contradictions = values.map((k) => ({
            start: response.indexOf(`W${k}`), end: response.indexOf(`W${k}`) + 2, passage: 1,
            passage_start: passage.indexOf(`P${k}`), passage_end: passage.indexOf(`P${k}`) + 2,
          }));
          const sentence = { start: 0, end: response.length, probability: .9, status: "contradicted" };
          const spans = [{ start: 0, end: 0, contradictions }];
          const shown = view(ofVerdict("", [passage], { response, sentences: [sentence], spans }));
          document.getElementById("view").replaceChildren(shown.root);
          shown.redraw();
        }""",
        between,
    )
    lines = page.locator(".join").all()
    assert len(lines) == 5
    dashes = [one.evaluate("(line) => getComputedStyle(line).strokeDasharray") for one in lines]
    assert all(one != other for one, other in pairwise(dashes))
    assert page.locator(".join-number").all_text_contents() == ["1", "2", "3", "4", "5"]
    # The stretches beside text, of either side, lie on no other line's.
    runs = [
        one.evaluate("(line) => line.getAttribute('d').match(/V([\\d.]+)H|([\\d.]+)H[\\d.]+V/g)")
        for one in lines
    ]
    for k in (0, 1):
        heights = [float(re.search(r"[\d.]+", run[k])[0]) for run in runs]
        assert len(set(heights)) == 5, heights


@pytest.mark.parametrize(
    ("kind", "words", "claims"),
    [("computed", "“1874” = 1870 + 4", (0.1, 0.78)), ("rounded", "“1874” ≈ 1870 + 4", (0.78, 0.1))],
)
def test_what_follows_from_a_passage_is_worded_and_marked(
    show, kind: ComputedKind, words: str, claims: tuple[float, float]
) -> None:
    """Of a sentence that looks supported and of one that is suspect."""
    text = "1874"
    start = RESPONSE.index(text)
    place = "The bridge opened in 1874.".index(text)
    value = Computed(start, start + len(text), text, "1870 + 4", 0, ((place, place + len(text)),), kind)
    page = show(html_page(judged(claims=claims, computed=(value,))))
    page.locator(".sentence").first.click()
    assert f"{words}, {kind} from passage 1." in page.locator(".why").inner_text()
    assert page.locator(".passage .term").inner_text() == text
    assert page.locator(".quote b").inner_text() == text
    assert "supports" not in page.locator(".why").inner_text()
    if claims[0] > claims[1]:
        assert words in page.locator(".issue").inner_text()
        assert page.locator("h1").inner_text() == "No passage says “It opened in 1874.”"
    page.locator(".sentence").nth(1).click()
    assert page.locator(".passage .term").count() == 0


@pytest.mark.parametrize(
    ("kind", "words"),
    [("left out", "leaves out"), ("answered", "may have it"), ("said of another", "of “The bridge”")],
)
def test_what_a_passage_has_against_a_sentence_is_worded_and_marked(
    show, kind: DifferenceKind, words: str
) -> None:
    start, text = RESPONSE.index("Aliens"), "Fish is sold"
    difference = Difference(kind, start, len(RESPONSE), 1, 0, len(text), text, "The bridge")
    page = show(html_page(judged(differences=(difference,))))
    for place in ("h1", ".why", ".issue"):
        assert words in page.locator(place).inner_text()
        assert f"“{text}”" in page.locator(place).inner_text()
    assert page.locator(".passage .instead").inner_text() == text
    assert page.locator(".quote ins").inner_text() == text
    page.locator(".sentence").first.click()
    assert page.locator(".passage .instead").count() == 0


def test_a_reason_is_told_once(show) -> None:
    analysis = judged(claims=(0.05, 0.05))
    page = show(html_page(analysis, decision=assess(Policy(), analysis.example, analysis)))
    assert page.locator(".would").inner_text() == "The policy would serve it."


def test_what_was_not_judged_has_no_colour(show) -> None:
    analysis = judged(unlike=((LONG,), (LONG,)))
    page = show(html_page(analysis, decision=assess(Policy(), analysis.example, analysis)))
    assert page.locator(".sentence[data-step]").count() == 0
    assert page.locator(".banner").get_attribute("class") == "banner care"


def test_words_without_an_end_fit_a_phone(show) -> None:
    page = show(html_page(hostile("W" * 400)), narrow=True)
    page.locator("details summary").evaluate_all("(every) => every.forEach((one) => one.click())")
    assert not overflows(page)
    page.get_by_role("button", name="Expert view").click()
    cells = page.locator(".figures td").filter(has_text=re.compile("^supported$")).all()
    assert all(one.bounding_box()["height"] < 100 for one in cells), "ordinary words are whole"
    assert not overflows(page)


def test_the_keyboard_does_all_that_the_mouse_does(show) -> None:
    page = show(html_page(judged()))
    assert page.locator('.answer [tabindex="0"]').count() == 1
    page.locator('.answer [tabindex="0"]').focus()
    page.keyboard.press("Home")
    assert page.locator(".why").inner_text().startswith("Nothing speaks against it")
    page.keyboard.press("ArrowRight")
    assert page.locator(".why").inner_text() == "Nothing in the passages supports this."
    page.keyboard.press("Escape")
    assert page.locator('.sentence[aria-pressed="true"]').count() == 0
    page.keyboard.press("Enter")
    assert page.locator('.sentence[aria-pressed="true"]').inner_text().startswith("Aliens built it")
    page.keyboard.press("ArrowLeft")
    page.locator(".issue").press("Enter")
    assert page.evaluate("document.activeElement.textContent").startswith("Aliens built it")


# What an expert sees.


def test_numbers_are_one_click_away(show) -> None:
    page = show(html_page(judged(grounded_then_not()), detector="default"))
    button = page.get_by_role("button", name="Expert view")
    assert not page.locator("#prompt").is_visible()
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#prompt").is_visible()
    text = page.locator("body").inner_text()
    for words in (
        "0.780",
        "What moved the verdict most",
        "share of its values among the passages' alternatives 4%",
        "logits",
    ):
        assert words in text
    button.click()
    assert not page.locator("#prompt").is_visible()


MEAN = {"1874.": "5", "2:Fish": "-3"}
FIRST, SECOND = {"1874.": "10"}, {"2:Fish": "-5"}


def test_shading_follows_the_reader(show) -> None:
    page = show(html_page(grounded_then_not()))
    page.get_by_role("button", name="Expert view").click()
    first, second = page.locator('#response [data-s="0"]'), page.locator('#response [data-s="1"]')
    status, clear = page.locator("#status"), page.locator("#clear")

    def shaded() -> dict[str, str]:
        found = page.locator("#prompt [data-l]").all()
        return {one.inner_text().strip(): one.get_attribute("data-l") for one in found}

    assert (shaded(), status.inner_text()) == (MEAN, "Mean over the response's sentences")
    first.hover()
    assert shaded() == FIRST
    assert status.inner_text().startswith("Sentence 1: relevance +2;")
    assert status.inner_text().endswith("main source: passage 1 (+2.00)")
    second.click()
    assert (shaded(), clear.is_visible()) == (SECOND, True)
    first.hover()
    assert shaded() == FIRST
    page.locator("#prompt-title").hover()
    assert shaded() == SECOND, "what was chosen stays"
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert (shaded(), clear.is_visible()) == (MEAN, False)
    first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.s") == "1"
    page.keyboard.press("Enter")
    assert second.get_attribute("aria-pressed") == "true"
    clear.click()
    assert shaded() == MEAN
    bars = page.locator(".bars tr").all_inner_texts()
    assert [one.split("\t")[-1] for one in bars[:2]] == ["+1", "\u22120.5"]
    assert page.locator('#response [role="button"][tabindex="0"]').count() == 2


# Everybody.


@pytest.mark.parametrize(("scheme", "narrow"), [("light", True), ("dark", False)])
def test_nobody_is_left_out(show, scheme: str, narrow: bool) -> None:
    page = show(
        html_page(contradicted()),
        narrow=narrow,
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,
    )
    assert faults_of(page) == []
    assert not overflows(page)
    page.get_by_role("button", name="Expert view").click()
    assert faults_of(page) == []
    assert not overflows(page)


def test_without_scripts_the_page_has_a_summary(show) -> None:
    page = show(html_page(contradicted()), java_script_enabled=False, quiet=True)
    text = page.locator("noscript").inner_text()
    assert "Likely hallucinated, probability 0.78" in text
    assert '"4 weeks": passage 2 has "2 weeks"' in text
    assert page.locator("#prompt").is_visible()


# Attacks.


def test_the_page_runs_its_own_script_and_nobody_elses(show) -> None:
    page = show(html_page(hostile(ATTACKS)))
    assert owned(page) is None
    assert page.locator(".sentence").count() > 1  # its own script did run, under its policy
    assert page.locator("img, iframe, input[autofocus]").count() == 0


def test_the_policy_stops_what_escaping_would_let_through(show) -> None:
    html = html_page(grounded_then_not()).replace("</body>", f"{ATTACKS}</body>")
    assert owned(show(html, quiet=True)) is None
    # And the attacks are real ones:
    assert owned(show(html, quiet=True, bypass_csp=True)) is not None


def test_text_cannot_become_markup_and_is_shown_as_on_a_terminal(show) -> None:
    page = show(html_page(contradicted()), quiet=True)
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    codes = [*range(0x700), *range(0x2000, 0x2100), 0xD800, 0xDFFF, 0xFEFF, 0x1F600]
    found = page.evaluate("(codes) => codes.map((one) => lrp4rag.visible(String.fromCodePoint(one)))", codes)
    assert found == [visible(chr(code)) for code in codes]


def test_offsets_count_characters_and_not_their_halves(show) -> None:
    page = show(html_page(contradicted("😀 4 \u202eweeks 😀", "😀 2 \u202eweeks")))
    assert page.locator("mark.wrong").inner_text() == "😀 4 \ufffdweeks 😀"
    assert page.locator("mark.instead").first.inner_text() == "😀 2 \ufffdweeks"
    assert "\u202e" not in page.locator("#view").inner_text()
