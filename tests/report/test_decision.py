"""What a policy does with a response: the same in terminal, JSON and page, and hostile texts do nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.guard.policy import Assessment, Policy, assess
from lrp4rag.report.html import html_page
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render
from tests.hostile.strings import IN_PAGES, obeyed
from tests.report.samples import grounded_then_not
from tests.report.test_html import Page
from tests.report.test_record import printed


def decided(response: str, **policy: object) -> tuple[Analysis, Assessment]:
    """Of an answer with a citation that no passage carries."""
    analysis = grounded_then_not()
    example = replace(analysis.example, response=response)
    return analysis, assess(Policy.model_validate(policy), example, analysis)


def test_all_three_say_what_is_done_and_why() -> None:
    analysis, decision = decided("It opened in 1874 [7].", texts={"contact": "Ask Ann."})
    told = record(analysis, decision=decision)["decision"]
    assert (told["action"], told["reason"]) == ("withhold", "fabricated citation")
    assert (told["supported"], told["contradicted"], told["unsupported"]) == (1, 0, 1)
    assert told["policy"] == Policy.model_validate({"texts": {"contact": "Ask Ann."}}).hash
    (fault,) = [one for one in told["findings"] if one["kind"] == "fabricated"]
    terminal = printed(render(analysis, decision=decision), width=400)
    page = Page(html_page(analysis, decision=decision))
    assert page.data()["verdict"]["decision"]["rule"] == told["rule"]
    for text in (" ".join(terminal.split()), " ".join(page.text("decision").split())):
        for words in ("withhold", "fabricated citation", fault["words"], "Ask Ann."):
            assert words in text


def test_without_a_policy_there_is_no_decision() -> None:
    analysis = grounded_then_not()
    assert record(analysis)["decision"] is None
    assert "policy" not in printed(analysis)
    assert "policy does" not in html_page(analysis)


@pytest.mark.parametrize("text", [one for one in IN_PAGES if one.strip()])
def test_hostile_texts_are_texts(text: str) -> None:
    written = text.replace("{", "(").replace("}", ")")  # braces of a policy's texts name places
    analysis, decision = decided(f"As {text} says [7], it opened ({text}) [9].", texts={"contact": written})
    page = html_page(analysis, decision=decision)
    page.encode()
    assert not obeyed(page)
    assert not obeyed(printed(render(analysis, decision=decision), width=400))
