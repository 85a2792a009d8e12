"""What the check of citations tells users: true ones, false ones, and what is no citation."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.checks.__main__ import citation_figures
from benchmarks.checks.citation_cases import FORMATS, Case, generated, written
from lrp4rag.classifiers.verdict import Contradiction, Sentence, Status, SuspectSpan, Verdict
from lrp4rag.guard.checks.check import CheckInput, Finding, OverBudget
from lrp4rag.guard.checks.citations import Citations
from lrp4rag.source import Source

SOURCES = (
    Source(
        "Section 4.1 Annual leave. Staff receive 25 days of leave a year.\n"
        "Section 4.2 Parental leave. Parents receive 16 weeks of paid leave.",
        id="HR-12",
        title="Leave Policy v3.1",
    ),
    Source("The canteen opens at 11:30. Lunch costs 6 euros for staff and 9 euros for guests.", id="doc_7"),
    Source(
        "Article 17 Right to erasure. Data subjects may obtain the erasure of personal data.\n"
        "Article 21 Right to object. Data subjects may object to direct marketing.",
        title="GDPR extract",
    ),
    Source(
        "ISO 27001:2022 8.13 Backup. Backup copies are tested regularly. See https://example.com/backup for "
        "the form. Families with Section 8 housing vouchers are welcome.",
        id="kb-3",
    ),
)


def found(response: str, sources: tuple[Source, ...] = SOURCES) -> list[Finding]:
    return Citations()(CheckInput("", sources, response))


def kinds(response: str) -> list[tuple[str, str]]:
    return [(str(one.details["cited"]), one.kind) for one in found(response)]


@pytest.mark.parametrize(
    ("response", "cited"),
    [
        ("Staff receive 25 days of leave a year [1].", "[1]"),
        ("Staff receive 25 days of leave a year. [1]", "[1]"),
        ("According to passage 2, lunch costs 9 euros for guests.", "passage 2"),
        ("The second passage says that the canteen opens at 11:30.", "second passage"),
        ("Passages 1 and 2 say that parents get 16 weeks and that lunch costs 6 euros.", "Passages 1 and 2"),
        ("Lunch costs 6 euros for staff<sup>2</sup>.", "<sup>2</sup>"),
        ("Lunch costs 6 euros for staff (2).", "(2)"),
        ("Lunch costs 6 euros for staff\u30102\u2020source\u3011.", "\u30102\u2020source\u3011"),
        ("Personal data are erased on request (Article XVII GDPR).", "(Article XVII GDPR)"),
        ("Parents receive 16 weeks of leave[^a].\n\n[^a]: Leave Policy v3.1", "[^a]"),
        ("The Leave Policy v3.1 grants parents 16 weeks of paid leave.", "Leave Policy v3.1"),
        ("Under \u00a7 4.2 of the Leave Policy, parents receive 16 weeks.", "\u00a7 4.2 of the Leave Policy"),
        ("Personal data are erased on request (Art. 17 GDPR).", "(Art. 17 GDPR)"),
    ],
)
def test_a_true_citation_is_verified(response: str, cited: str) -> None:
    assert kinds(response) == [(cited, "verified")]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Staff receive 28 days of leave a year [1].", ["misattributed"]),
        ("The first passage says that the canteen opens at 11:30.", ["misattributed"]),
        ("GDPR Article 21 gives the right to erasure of personal data.", ["misattributed"]),
        ("Staff receive 25 days of leave a year [0].", ["fabricated"]),
        ("Staff receive 25 days of leave a year [1, 9].", ["fabricated"]),
        ("Staff receive 25 days of leave a year [1-9].", ["fabricated"]),
        ("According to passage 12, lunch costs 6 euros.", ["fabricated"]),
        ("The Leave Policy v4.0 grants parents 16 weeks of paid leave.", ["fabricated"]),
        ("Personal data are erased on request (Article 99 GDPR).", ["fabricated"]),
        ("Backup copies are tested regularly (ISO 27001:2022 8.4.3).", ["fabricated"]),
        # Each stands for the clause before it; one that speaks, for what follows.
        ("Staff receive 25 days of leave [1], and lunch costs 6 euros [1].", ["verified", "misattributed"]),
        (
            "Passage 1 says that parents receive 16 weeks, while passage 2 says that lunch costs 6 euros.",
            ["verified"] * 2,
        ),
        (
            "Passage 2 says that parents receive 16 weeks, while passage 1 says that lunch costs 6 euros.",
            ["misattributed"] * 2,
        ),
    ],
)
def test_what_was_not_retrieved_or_does_not_say_so_is_told(response: str, expected: list[str]) -> None:
    assert [one.kind for one in found(response)] == expected


@pytest.mark.parametrize(
    "response",
    [
        "",
        "The canteen opens at 11:30.",
        "Use `rows[1]` to read the second row.",
        "```\nx = rows[1]\ny = see[9]\n```\nThat is all.",
        "The first element is a[0].",
        'The minutes said "it were open [sic]".',
        "The canteen opened long ago (2022).",
        "1. Open the door.\n2. Sit down.\n(3) Eat.",
        "Probabilities lie in [0, 1].",
        "Families with Section 8 housing vouchers are welcome.",
        "![plan](plan9.png)",
        "Use the form [here](https://example.com/backup).",
        "In part 2 of the trial, the article was read.",
        "The hall has 80 m\u00b2, 10\u2075 times more.",
        "Write to [us](mailto:a@example.com).",
    ],
)
def test_what_is_no_citation_is_not_found(response: str) -> None:
    assert kinds(response) == []


def test_a_finding_says_where_it_is_and_who_supports_it() -> None:
    response = "Lunch costs 6 euros for staff [1]."
    (one,) = found(response)
    assert response[one.start : one.end] == "[1]"
    assert one.passages == (0,)
    assert one.details == {"cited": "[1]", "format": "number", "supported_by": [1]}
    assert one.words == "[1] does not support what it is cited for: passage 2 does."


def test_a_list_of_sources_says_what_its_numbers_are() -> None:
    response = "Lunch costs 6 euros for staff [1].\n\nSources:\n[1] doc_7\n"
    assert [(one.kind, one.passages) for one in found(response)] == [("verified", (1,))]


@pytest.mark.parametrize(
    ("written", "instead", "status", "kind"),
    [
        ("6 euros", "9 euros", "contradicted", "misattributed"),
        ("[2]", "Terms for Lunch", "supported", "verified"),  # the name of a citation is no value
    ],
)
def test_a_verdict_adds_its_evidence(written: str, instead: str, status: Status, kind: str) -> None:
    response = "Lunch costs 6 euros for staff [2]."
    start = response.index(written)
    end = start + len(written)
    contradiction = Contradiction(start, end, written, instead, 1, 0, 5, 2.0)
    spans = (SuspectSpan(start, end, written, contradictions=(contradiction,)),)
    sentence = Sentence(0, len(response), response, 1.0, (), None, status, 0.5)
    (one,) = Citations()(CheckInput("", SOURCES, response, Verdict(0.5, 0.5, None, None, spans, (sentence,))))
    assert one.kind == kind
    assert (f'"{instead}"' in one.words) == (kind == "misattributed")


def test_without_passages_every_citation_is_fabricated() -> None:
    assert [one.kind for one in found("It is so [1], as HR says (Passage 2).", ())] == ["fabricated"] * 2


def test_a_policy_can_leave_out_what_is_right() -> None:
    given = CheckInput("", SOURCES, "Staff receive 25 days of leave a year [1]. Lunch costs 6 euros [9].")
    assert [one.kind for one in Citations(verified=False)(given)] == ["fabricated"]


@pytest.mark.parametrize(
    ("response", "cited"),
    [
        ("Staff receive 25 days (Bergstrom et al., The Lancet 2019).", "Bergstrom et al., The Lancet 2019"),
        ("Staff receive 25 days (Meyer & Olsen, 2021).", "Meyer & Olsen, 2021"),
        ("Studies by Hattie show that leave helps.", "Studies by Hattie"),
        ("Research shows that leave helps.", "Research shows"),
        ("The court agreed in its judgment of 12 January 2022.", "judgment of 12 January 2022"),
        ("This was confirmed in memo SE-2023-117.", "memo SE-2023-117"),
        ("It has a certificate (certificate Q 60131874).", "certificate Q 60131874"),
        ("See https://www.example.test/leave.pdf, page 4.", "https://www.example.test/leave.pdf"),
        (
            'The director said: "Nobody will lose a single day of leave with us."',
            "Nobody will lose a single day of leave with us.",
        ),
        ("The WHO guideline on leave requires 25 days.", "WHO guideline"),
        ("As BaFin Circular 03/2021 (GW) sets out, it is 25 days.", "BaFin Circular 03/2021 (GW)"),
    ],
)
def test_an_authority_that_no_passage_has_is_fabricated(response: str, cited: str) -> None:
    assert (cited, "fabricated") in kinds(response)


@pytest.mark.parametrize(
    "response",
    [
        'The passage says: "Staff receive 25 days of leave a year."',
        "See https://example.com/backup for the form.",
        "Lunch costs 6 euros; an expert is not needed.",
        "The notice was sent in May, and the case of 24 bottles is free.",
    ],
)
def test_what_passages_have_and_what_is_no_authority(response: str) -> None:
    assert all(kind != "fabricated" for _, kind in kinds(response))


def test_an_authority_that_the_question_names_is_the_user_s() -> None:
    response = "Nothing is said of the studies by Hattie."
    given = CheckInput("What do the studies by Hattie say?", SOURCES, response)
    assert Citations()(given) == []


EDITIONS = (
    Source("Partners get 12 weeks of leave.", title="Leave Policy", version="2.8", effective="2020-01-01"),
    Source("Partners get 16 weeks of leave.", title="Leave Policy", version="3.1", effective="2024-01-01"),
    Source("Lunch costs 6 euros.", title="Canteen"),
)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ("Under the Leave Policy 3.1 partners get 16 weeks of leave.", "verified"),
        ("According to version 2.8 of the Leave Policy, partners got 12 weeks of leave.", "verified"),
        ("By the Leave Policy of 2024 partners get 16 weeks of leave; it was 12 weeks before.", "verified"),
        ("Under the Leave Policy partners get 20 weeks of leave.", "misattributed"),
        ("Under the Canteen partners get 16 weeks of leave.", "misattributed"),
    ],
)
def test_one_edition_of_a_document_supports_what_is_cited_for(response: str, kind: str) -> None:
    assert [one.kind for one in found(response, EDITIONS)] == [kind]


@pytest.mark.parametrize(
    ("response", "cited"),
    [
        ("According to the European Medicines Agency, staff receive 25 days.", "European Medicines Agency"),
        ("The WHO recommends 25 days of leave.", "WHO"),
        ("Staff receive 25 days, as confirmed by Dr. Ingrid Solheim.", "Dr. Ingrid Solheim"),
        (
            "According to version 4.2 of the Leave Policy, partners get 16 weeks.",
            "version 4.2 of the Leave Policy",
        ),
        ("Under the Leave Policy 9.9 partners get 16 weeks.", "Leave Policy 9.9"),
    ],
)
def test_a_person_a_body_or_an_edition_that_no_passage_has_is_fabricated(response: str, cited: str) -> None:
    assert [(one.details["cited"], one.kind) for one in found(response, EDITIONS)] == [(cited, "fabricated")]


@pytest.mark.parametrize(
    "response",
    [
        "According to Partners, it is 16 weeks.",
        "According to the passages, partners get 16 weeks of leave.",
        "Under the Leave Policy 3.1 partners get 16 weeks of leave; it was 12 weeks under version 2.8.",
    ],
)
def test_a_name_that_passages_have_is_no_invention(response: str) -> None:
    assert all(one.kind == "verified" for one in found(response, EDITIONS))


# Many cases: written by hand, and of a grammar.


@pytest.mark.parametrize("cases", [generated()[::8], written()], ids=["grammar", "hand"])
def test_citations_are_told_apart(cases: list[Case]) -> None:
    result = citation_figures(cases)
    assert result["right"] >= 0.98, result["wrong"]
    assert result["fabricated_called_verified"] == 0


def test_the_grammar_makes_as_many_true_as_false_in_twelve_formats() -> None:
    cases = generated()
    kinds = [kind for case in cases for _, kind in case.expected]
    assert (len(FORMATS), len(kinds), kinds.count("verified")) == (12, 600, 300)


# Hostile answers and passages: findings, or over budget, in linear time.

HOSTILE = (Source("Lunch costs 6 euros. Section 4.2 applies.", id="a-1", title="Menu Policy"), Source("x"))
LONG = 20_000
PIECES = st.sampled_from(
    ["[", "]", "(", ")", "[1]", "[^1]", "[^1]:", "Passage ", "1", "0", "\u00b9", "`", "```", "Section 4.2",
     "\n", "ISO 27001:2022 8.1", " ", "Menu Policy", "according to ", "\ud800", "\x00", "a-1", "](", "![",
     "\u3010", "v1.", "Article 17 GDPR", "-", ",", "and", "<sup>", "of the ", "\"",
     "et al.", "(Smith, 2020)", "study by ", "studies show", "memo ", "notice of 3 May", "https://", "said: "]
)  # fmt: skip


@example("*Section 4.2")
@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_gets_findings_with_exact_places(text: str) -> None:
    for sources in (HOSTILE, (Source(text, id=text, title=text), *HOSTILE)):
        last = 0
        for one in Citations()(CheckInput("", sources, text)):
            assert one.start is not None
            assert one.end is not None
            assert last <= one.start < one.end <= len(text)
            assert one.kind in ("verified", "misattributed", "fabricated")
            assert all(0 <= k < len(sources) for k in one.passages)
            assert len(one.words) < 250
            last = one.end


QUICK = ["[", "[1, ", "(", "`", "A ", "Aa of the ", "\u00a7", "1.", "ISO ", "[^1]: x\n", '"', "*", "<sup>"]
CITE = ["Section 4.2 ", "Word [1]. ", "[1-999999]", "\u00b9"]
CITE_TOO = ["[1]", "passage 1 ", "[a](b) ", "Menu Policy ", "a-1 ", "[^1] ", "[1] x\n", "Article 1 and "]


@pytest.mark.parametrize(
    "piece", [*QUICK, *CITE, *(pytest.param(one, marks=pytest.mark.slow) for one in CITE_TOO)]
)
def test_long_answers_cost_a_bounded_time(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    begin = time.process_time()
    with suppress(OverBudget):
        Citations()(CheckInput("", HOSTILE, text))
    assert time.process_time() - begin < 4


def test_more_different_citations_than_it_may_judge_are_over_budget() -> None:
    text = " ".join(f"Lunch costs {k} euros [1]." for k in range(30))
    with pytest.raises(OverBudget):
        Citations(most=20)(CheckInput("", HOSTILE, text))
