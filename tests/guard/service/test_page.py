"""The page at `/`: what is served, and, in a real browser, what people do with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lrp4rag import Detector
from lrp4rag.claims.index import Index
from lrp4rag.claims.nearest import nearest
from lrp4rag.classifiers.verdict import Contradiction, Sentence, Status, SuspectSpan
from lrp4rag.guard.service import app as service
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.judge import ExplainedVerdict
from lrp4rag.streaming import JudgedPiece, StreamingDetector
from lrp4rag.util.sentences import Piece, sentences_in
from tests.browser import Open, browsing, faults_of, needs_browser, overflows
from tests.guard.service.conftest import listening, piece_of
from tests.guard.service.scripted_upstream import Script, chunk, events, serving
from tests.guard.service.test_reviews import ESCALATING

QUESTION = "How long is leave for partners?"
PASSAGES = [
    "Birth parents get 16 weeks. Partners get 2 weeks of paid leave.",
    "Requests go to the HR portal.",
]
RESPONSE = "Partners get 4 weeks of paid leave. Requests go to the HR portal. WRONG: a nanny is paid."
ONE = {"question": QUESTION, "passages": PASSAGES, "response": RESPONSE}
JUDGE = "(body) => lrp4rag.call('v1/judge', { body })"
ATTACK = "<img src=x onerror=\"document.documentElement.dataset.owned='1'\"> \u202eevil"


# What is served.


def test_the_page_needs_no_token_and_every_call_does(start) -> None:
    _, hash = new_token()
    with start(upstream=None, open=False, tokens={"app": hash}) as client:
        page = client.get("/")
        assert page.status_code == 200
        files = [word.split('"')[0] for word in page.text.split('"page/')[1:]]
        assert len(files) == 3
        for name in files:
            assert client.get(f"/page/{name}").status_code == 200, name
        for route in ("/v1/decisions", "/v1/reviews", "/page", "/pages/x", "/v1/decisions/page/"):
            assert client.get(route).status_code == 401, route
        assert client.get("/page/nothing.js").status_code == 404
        assert client.get("/page/../v1/decisions").status_code == 401
        assert client.get("/page/%2e%2e/v1/decisions").status_code in (401, 404)


def test_nothing_runs_or_loads_but_the_pages_own_files(client) -> None:
    page = client.get("/")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    for words in ("frame-ancestors 'none'", "form-action 'none'", "require-trusted-types-for 'script'"):
        assert words in policy
    assert "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Cache-Control"] == "no-cache"
    assert "<style" not in page.text
    assert "style=" not in page.text
    assert "<script>" not in page.text
    script = page.text.split('src="page/')[1].split('"')[0]
    found = client.get(f"/page/{script}")
    assert found.headers["Content-Type"].startswith("text/javascript")
    for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]:
        assert sink not in found.text


def test_the_list_of_routes_loads_nothing_from_elsewhere(client) -> None:
    reply, policy = client.get("/docs"), client.get("/").headers["Content-Security-Policy"]
    assert reply.status_code == 200
    assert reply.headers["Content-Security-Policy"] == policy
    assert "<script" not in reply.text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', reply.text)
    assert loaded
    for name in loaded:
        assert ":" not in name
        assert not name.startswith("//")
        assert client.get(f"/{name}").status_code == 200
    schema = client.get("/openapi.json").json()
    assert all(f" {path}</code>" in reply.text for path in schema["paths"])
    assert "parental leave" in reply.text, "examples"
    for gone in ("/redoc", "/docs/oauth2-redirect"):
        assert client.get(gone).status_code in (401, 404)


# The log that the page draws.


def test_decisions_are_told_the_newest_first_and_without_texts(start) -> None:
    with start(upstream=None, keep_texts=True) as client:
        ids = [client.post("/v1/judge", json=ONE).json()["decision"]["id"] for _ in range(3)]
        client.post("/v1/feedback", json={"decision": ids[0], "said": "grounded"})
        client.post("/v1/retrieval/check", json={"question": QUESTION, "passages": PASSAGES})
        found = client.get("/v1/decisions?limit=2").json()["decisions"]
        assert [row["id"] for row in found] == [ids[2], ids[1]]
        assert {"texts", "evidence"}.isdisjoint(found[0])
        assert found[0]["faithfulness"] is not None
        before = found[-1]["sequence"]
        rest = client.get(f"/v1/decisions?before={before}").json()["decisions"]
        assert [row["id"] for row in rest] == [ids[0]]
        assert {"question"}.isdisjoint(found[0])
        asked = client.get("/v1/decisions?questions=true&limit=2").json()["decisions"]
        assert asked == [row | {"question": QUESTION} for row in found]
        for wrong in ("limit=0", "limit=5000", "before=0", "before=x", f"before={2**70}"):
            assert client.get(f"/v1/decisions?{wrong}").status_code == 422, wrong


def test_questions_are_told_shortened_and_only_where_they_are_kept(
    start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LONGEST_QUESTION", 12)
    with start(upstream=None, keep_texts=True) as client:
        client.post("/v1/judge", json=ONE)
        (row,) = client.get("/v1/decisions?questions=true").json()["decisions"]
        assert row["question"].startswith("How … (")
        assert "Partners" not in json.dumps(row), "no other text"
    with start(upstream=None, keep_texts=False) as client:
        client.post("/v1/judge", json=ONE)
        assert "question" not in client.get("/v1/decisions?questions=true").json()["decisions"][0]


def test_a_record_has_where_an_answer_is_suspect_and_no_word_of_it(client, judged, script) -> None:
    script.stream = events("Leave is long. WRONG words. ")
    id = client.post("/v1/judge", json=ONE).json()["decision"]["id"]
    body = {"messages": [{"role": "user", "content": QUESTION}], "lrp4rag": {"passages": PASSAGES}}
    other = client.post("/v1/chat/completions", json=body).json()["lrp4rag"]["id"]
    records = [client.get(f"/v1/decisions/{one}").json()["record"] for one in (id, other)]
    assert [len(one["evidence"]["sentences"]) for one in records] == [3, 2]
    assert [one["suspect"] for one in records[1]["evidence"]["sentences"]] == [False, True]
    told = json.dumps(records)
    for word in ("Partners", "leave", "Leave", "portal", "WRONG"):
        assert word not in told


# In a browser. The reader's verdicts are scripted: "4" is contradicted, WRONG has no support.


def _contradicted(text: str, offset: int) -> tuple[SuspectSpan, ...]:
    at, there = text.find("4 weeks"), PASSAGES[0].index("2 weeks")
    if at < 0:
        return ()
    start, end = offset + at, offset + at + 7
    one = Contradiction(start, end, "4 weeks", "2 weeks", 0, there, there + 7, 3.0)
    return (SuspectSpan(start, end, "4 weeks", None, 0.8, 0, (one,)),)


def _status(text: str) -> tuple[Status, float]:
    if "4 weeks" in text:
        return "contradicted", 0.6
    return ("unsupported", 0.9) if "WRONG" in text else ("supported", 0.02)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(self: Detector, example: Any, **_: Any) -> ExplainedVerdict:
        found = real(self, example, **_)
        spans, sentences = [], []
        for start, end in sentences_in(example.response):
            text = example.response[start:end]
            near = nearest(Index(example.passages), example.passages, text)
            spans += _contradicted(text, start)
            sentences.append(Sentence(start, end, text, None, (), None, *_status(text), near))
        parts = {"spans": tuple(spans), "sentences": tuple(sentences)}
        return replace(
            found, probability=0.8, threshold=0.5, marks=None, unlike=(), computed=(), reasons=(), **parts
        )

    def along(self: StreamingDetector, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        near = nearest(Index(self.example.passages), self.example.passages, piece.text)
        spans = _contradicted(piece.text, piece.start)
        return piece_of(piece, *_status(piece.text), spans, near)

    real = Detector.judge
    monkeypatch.setattr(Detector, "judge", judge)
    monkeypatch.setattr(StreamingDetector, "judge", along)


@pytest.fixture(scope="module")
def open_page() -> Iterator[Open]:
    with browsing() as opened:
        yield opened


@pytest.fixture
def server(detector: Detector, settings: Callable[..., Settings], script: Script, scripted: None) -> Any:
    """A server in a thread, before the scripted upstream; its address."""

    @contextmanager
    def run(**given: Any) -> Iterator[str]:
        with serving(script) as upstream:
            app = create_app(settings(**({"upstream": upstream} | given)), detector)
            with listening(app) as url:
                yield url.removesuffix("v1")

    return run


def fill(page: Any, *, response: str = RESPONSE, passages: list[str] = PASSAGES) -> None:
    page.get_by_label("Question").fill(QUESTION)
    page.locator("#response").fill(response)
    for number, text in enumerate(passages, start=1):
        if number > 1:
            page.get_by_role("button", name="Add a passage").click()
        page.get_by_label(f"Passage {number}", exact=True).fill(text)


@needs_browser
def test_from_paste_to_the_word_that_is_wrong(open_page, server) -> None:
    with server() as url:
        page = open_page(url)
        fill(page)
        page.get_by_role("button", name="Check the answer").click()
        page.locator(".sentence").first.wait_for()
        assert page.locator("#result .done").inner_text() == "Withheld"
        assert page.locator(".reason").inner_text() == "A passage says something else."
        assert page.locator(".why").inner_text() == "Passage 1 says “2 weeks”, not “4 weeks”."
        assert page.locator("mark.wrong").inner_text() == "4 weeks"
        assert page.locator(".joins path").count() == 1
        issues = page.locator(".issue").all_inner_texts()
        assert issues[0] == "“4 weeks” is contradicted: passage 1 says 2 weeks"
        assert issues[1].endswith("has no support in the passages")
        page.locator(".sentence").nth(1).hover()
        assert page.locator(".why").inner_text() == "Looks supported: it rests on passage 2."
        assert page.locator(".passage").nth(1).locator(".rests").count() == 1
        assert "requests" in page.locator(".word").first.inner_text().lower()
        page.get_by_role("button", name="It is wrong").click()
        page.get_by_text("it is recorded").wait_for()
        page.get_by_role("button", name="Change or ask again").click()
        assert page.get_by_label("Question").input_value() == QUESTION


@needs_browser
def test_an_answer_comes_sentence_by_sentence(open_page, server, script: Script) -> None:
    script.stream = events(RESPONSE)
    with server(policy={"claims": {"unsupported": "withhold", "most": None}}) as url:
        page = open_page(url)
        fill(page, response="")
        page.get_by_label("Let the model write it").check()
        page.get_by_role("button", name="Ask the model").click()
        page.locator("#result .done").wait_for()
        states = [one.get_attribute("class") for one in page.locator(".sentence").all()]
        assert [one.removeprefix("sentence ").removesuffix(" at-hand") for one in states] == [
            "contradicted", "supported", "unsupported withheld",
        ]  # fmt: skip
        assert page.locator("mark.wrong").inner_text() == "4 weeks"
        assert "WRONG" not in page.locator("body").inner_text()
        page.locator(".sentence").nth(2).click()
        assert (
            page.locator(".why").inner_text().startswith("This sentence is withheld: nothing in the passages")
        )
        assert page.locator("#result .done").inner_text().startswith("As a whole: ")
        assert script.asked[0]["messages"][0]["content"] == QUESTION
    script.stream = "".join(map(chunk, ["Leave is paid. ", "It is"])).encode()  # and the connection ends
    with server() as url:
        page = open_page(url)
        fill(page, response="")
        page.get_by_label("Let the model write it").check()
        page.get_by_role("button", name="Ask the model").click()
        page.locator("#ask-status.failed").wait_for()
        assert "not whole" in page.locator("#ask-status").inner_text()
        assert page.locator(".sentence").count() == 1, "what was let out stays"


@needs_browser
def test_files_become_passages(open_page, server, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(PASSAGES[0])
    (tmp_path / "two.md").write_text(PASSAGES[1])
    (tmp_path / "three.pdf").write_bytes(b"%PDF-1.4 \xff\xfe\x00")
    (tmp_path / "four.txt").write_text("  ")
    with server() as url:
        page = open_page(url)
        page.locator("#files").set_input_files(
            [tmp_path / name for name in ("one.txt", "two.md", "three.pdf", "four.txt")]
        )
        page.locator("#ask-status.failed").wait_for()
        told = page.locator("#ask-status").inner_text()
        assert told == "“three.pdf” is no text file in UTF-8; “four.txt” is empty."
        assert [one.input_value() for one in page.locator("#passage-list textarea").all()] == PASSAGES
        page.get_by_role("button", name="Remove passage 1").click()
        assert page.locator("#passage-list textarea").count() == 1
        page.get_by_role("button", name="Check the answer").click()
        assert "question" in page.locator("#ask-status").inner_text()
        assert page.evaluate("document.activeElement.id") == "question"


@needs_browser
def test_the_token_stays_in_the_tab(open_page, server) -> None:
    token, hash = new_token()
    with server(open=False, tokens={"app": hash}) as url:
        page = open_page(url, quiet=True)  # a refused call is told on the console
        field = page.get_by_label("Access token")
        field.fill("wrong")
        field.press("Enter")
        page.get_by_text("does not know this token").wait_for()
        field.fill(token)
        field.press("Enter")
        field.wait_for(state="hidden")
        kept = page.evaluate("[localStorage.length, document.cookie, Object.values(sessionStorage)]")
        assert kept == [0, "", [token]]
        assert token not in page.content()
        assert token not in page.url
        fill(page)
        page.get_by_role("button", name="Check the answer").click()
        page.locator(".sentence").first.wait_for()
        page.get_by_role("button", name="Forget the token").click()
        field.wait_for()
        assert page.evaluate("sessionStorage.length") == 0


@needs_browser
def test_a_reviewer_needs_no_mouse(open_page, server, detector: Detector) -> None:
    with server(policy=ESCALATING, keep_texts=True) as url:
        page = open_page(url)
        for _ in range(2):
            page.evaluate(JUDGE, ONE)
        page.get_by_role("link", name="Review").press("Enter")
        page.locator("#queue .sentence").first.wait_for()
        assert page.locator("nav").inner_text().split()[1:3] == ["Review", "(2)"]
        assert page.locator("#queue mark.wrong").inner_text() == "4 weeks"
        page.locator("#review h1").focus()
        page.keyboard.press("a")
        assert page.evaluate("document.activeElement.id") == "reviewer", "a name is asked for first"
        page.keyboard.type("Ada")
        page.get_by_label("The marked words are what is wrong").check()
        page.keyboard.press("a")  # in a field, a letter is a letter
        page.locator("#review h1").focus()
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.get_by_label("The marked words are what is wrong").check()
        page.locator("#queue .done").focus()
        page.keyboard.press("a")
        page.get_by_text("1 left").wait_for()
        page.keyboard.press("d")
        page.get_by_text("No answer waits").wait_for()
        reviews = page.evaluate("lrp4rag.call('v1/reviews')")
        assert reviews == {"reviews": []}


@needs_browser
def test_history_is_drawn_over_time_has_questions_and_is_filtered(open_page, server) -> None:
    asked = {QUESTION: RESPONSE, "Where do <b>requests</b> go?": PASSAGES[1]}
    with server(keep_texts=True) as url:
        page = open_page(url + "#history")
        page.get_by_text("Nothing is decided yet.").wait_for()
        page.evaluate(JUDGE, ONE)
        again = page.get_by_role("button", name="Look again").last
        again.click()
        page.locator(".plot rect").wait_for()
        assert page.locator(".plot rect").get_attribute("class") == "action withhold"
        page.get_by_text("The same as a table").click()
        assert page.locator(".plots tbody tr").count() == 1
        found = page.evaluate(
            "lrp4rag.bucketed([0, 1, 100].map((days) => ({ time: new Date(days * 864e5).toISOString() })))"
            ".map((one) => one.all.length)"
        )
        assert sum(found) == 3
        assert len(found) <= 31
        question, response = [*asked.items()][1]
        page.evaluate(JUDGE, ONE | {"question": question, "response": response})
        again.click()
        page.get_by_text("The last 2 decisions").wait_for()
        lines = page.locator(".decisions li")
        known = page.evaluate("lrp4rag.call('v1/decisions')")["decisions"]
        for line, (question, _), row in zip(lines.all(), reversed(asked.items()), known, strict=True):
            assert f"Asked: {question}" in line.inner_text()
            assert row["id"] in line.inner_text()
        find, which = page.get_by_label("Question, id or reason"), page.get_by_label("What was done")
        for words in ("LEAVE how", known[1]["id"], known[1]["id"][:9], "something else"):
            find.fill(words)
            assert known[1]["id"] in lines.inner_text(), words
            assert page.get_by_text("1 of 2 decisions.").is_visible()
        find.fill("nothing like it")
        assert lines.count() == 0
        find.fill("")
        assert known[0]["action"] != known[1]["action"], known[0]
        which.select_option(known[0]["action"])
        assert known[0]["id"] in lines.inner_text()
        again.click()
        page.get_by_text("The last 2 decisions").wait_for()
        assert lines.count() == 1, "the filter stays"


@needs_browser
@pytest.mark.parametrize(("scheme", "narrow"), [("light", False), ("dark", True)])
def test_nobody_is_left_out(open_page, server, scheme: str, narrow: bool) -> None:
    with server(policy=ESCALATING, keep_texts=True) as url:
        page = open_page(url, narrow=narrow, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)
        assert faults_of(page) == []
        page.get_by_role("button", name="Try an example").click()
        assert all(one.input_value() for one in page.locator("#ask textarea").all())
        assert faults_of(page) == []
        page.reload()
        fill(page)  # the tiny reader's window is small
        page.get_by_role("button", name="Check the answer").click()
        page.locator(".sentence").first.wait_for()
        page.get_by_role("button", name="Expert view").click()
        assert faults_of(page) == []
        assert not overflows(page)
        for part, there in (("Review", "#queue .sentence"), ("History", ".plots")):
            page.get_by_role("link", name=part).click()
            page.locator(there).first.wait_for()
            assert faults_of(page) == [], part
            assert not overflows(page), part


@needs_browser
def test_texts_are_texts(open_page, server, script: Script) -> None:
    script.stream = events(f"{ATTACK}. ")
    with server(policy=ESCALATING, keep_texts=True) as url:
        page = open_page(url)
        fill(page, response=f"{ATTACK}. 4 weeks {ATTACK}.", passages=[f"{PASSAGES[0]} {ATTACK}"])
        page.get_by_label("Question").fill(ATTACK)
        page.get_by_role("button", name="Check the answer").click()
        page.locator(".sentence").first.wait_for()
        page.get_by_role("button", name="Expert view").click()
        page.get_by_role("link", name="Review").click()
        page.locator("#queue .sentence").first.wait_for()
        page.get_by_role("link", name="Check").click()
        page.get_by_role("button", name="Change or ask again").click()
        page.get_by_label("Let the model write it").check()
        page.get_by_role("button", name="Ask the model").click()
        page.locator("#result .done").wait_for()
        assert page.evaluate("document.documentElement.dataset.owned ?? null") is None
        assert page.locator("img").count() == 0
        assert "\u202e" not in page.locator("#result").inner_text()
        assert "<img src=x" in page.locator("#result").inner_text()
