"""The benchmark on data that no detector learned from, on miniature sets and a detector of known verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.elsewhere import __main__ as command
from benchmarks.elsewhere.judging import LENGTH, NOVEL, OURS, Judged, cache_of, judge_all
from benchmarks.elsewhere.measures import (
    ALL,
    NOVEL_WORD,
    PREVALENCE,
    WITH_VERDICT,
    measure_halueval,
    measure_pairs,
    measure_wice,
)
from benchmarks.elsewhere.sets import BUMP, HALUEVAL, PAIRS, RIGHT, SETS, SUMMEDITS, UNNAMED, WICE, read_sets
from benchmarks.elsewhere.summaries import best_threshold, by_other_half, measure_summaries
from lrp4rag.classifiers.card import Interval
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.reader.identity import ReaderIdentity
from lrp4rag.util.errors import InputError

WRONG = ("45", "Oslo", "twelve")
"""What the detector of these tests knows to be wrong."""


IDENTITY = ReaderIdentity("tiny", *["0" * 64] * 4, chat_template=True, dtype="float32")


def pair(base: str, kind: str, response: str, *wrong: str) -> dict[str, Any]:
    spans = [[response.index(one), response.index(one) + len(one), one] for one in wrong]
    passages = ["The mast of Brel is 30 metres high.", "Brel lies near Bergen."]
    return {
        "id": f"{base}_{kind}",
        "base": base,
        "domain": "places",
        "kind": kind,
        "question": f"What is known of {base}?",
        "passages": passages,
        "response": response,
        "label": int(bool(wrong)),
        "spans": spans,
    }


def pairs_of(base: str) -> list[dict[str, Any]]:
    return [
        pair(base, "faithful_1", "The mast of Brel is 30 metres high."),
        pair(base, "faithful_2", "Near Bergen stands a mast of 30 metres."),
        pair(base, "number", "The mast of Brel is 45 metres high.", "45"),
        pair(base, "entity", "Brel lies near Oslo.", "Oslo"),
        pair(base, "negation", "The mast of Brel is not 30 metres high.", "not"),
    ]


def answers(question: str, wrong: str) -> dict[str, Any]:
    return {
        "knowledge": "The mast of Brel is 30 metres high.",
        "question": question,
        "right_answer": "30 metres",
        "hallucinated_answer": wrong,
    }


def claim(name: str, words: str, unsupported: Sequence[str] = ()) -> dict[str, Any]:
    tokens = words.split()
    return {
        "claim": words.replace(" .", "."),
        "claim_tokens": tokens,
        "non_supported_spans": [word in unsupported for word in tokens],
        "evidence": [f"{name} has a mast.", "It is 30 metres high."],
        "meta": {"id": f"{name}-{len(tokens)}", "claim_title": name},
        "label": "partially_supported",
    }


def summary(place: str, response: str, label: str, type: str = "", group: str = "") -> dict[str, str]:
    return {
        "id": response,
        "premise": f"(CNN){place} has a mast.\n\nIt is 30 metres high.",
        "hypothesis": response,
        "label": label,
        "group": group or place,
        "type": type,
    }


def copies(place: str, group: str, response: str, type: str) -> list[dict[str, str]]:
    return [
        summary(place, "The mast is 30 metres high .", "e", "reference", group),
        summary(place, response, "not_e", type, group),
    ]


MINIATURE: dict[str, list[dict[str, Any]]] = {
    PAIRS: [*pairs_of("b1"), *pairs_of("b2"), *pairs_of("b3")],
    HALUEVAL: [
        answers("How high is it?", "It is 45 metres high."),
        answers("How high now?", "It is 40 metres."),
    ],
    WICE: [
        claim("Brel", "Brel has twelve masts .", ("twelve", "masts")),
        claim("Brel", "Its mast is 30 metres high ."),
        claim("Oden", "Oden has a mast .", ("Oden",)),
    ],
    SUMMEDITS: [
        summary("Brel", "Its mast is 30 metres high.", "e"),
        summary("Brel", "Its mast is 45 metres high.", "not_e", "entity_modification"),
        summary("Brel", "Oslo has a mast, not one.", "not_e", "antonym_swap|entity_modification"),
        summary("Brel", "The masts fell.", "not_e"),
        summary("Oden", "There is a mast.", "e", "entity_modification"),
        summary("Oden", "There are twelve masts.", "not_e", "entity_modification"),
    ],
    BUMP: [
        *copies("Brel", "bump1", "The mast is 45 metres high .", "Intrinsic Entity Error"),
        *copies("Brel", "bump2", "The mast is 30 miles high .", "Intrinsic Entity"),
        *copies("Oden", "bump1", "Twelve masts are there .", "Coreference"),
    ],
}


def write(folder: Path, sets: dict[str, list[dict[str, Any]]]) -> Path:
    for name, rows in sets.items():
        path = folder / SETS[name].file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data", MINIATURE)


def says(response: str, wrong: str | None) -> SimpleNamespace:
    """A verdict that finds `wrong`, and none on two words or fewer."""
    tokens, place = [], 0
    for word in response.split():
        start = response.index(word, place)
        place = start + len(word)
        tokens.append((start, place))
    at = -1 if wrong is None else response.index(wrong)
    inside = [start <= at < end for start, end in tokens]
    return SimpleNamespace(
        probability=0.9 if wrong else 0.2,
        abstained=len(tokens) <= 2,
        unlike=[SimpleNamespace(facet="surprise", decides=len(tokens) <= 2)],
        read=None,
        spans=() if wrong is None else (SimpleNamespace(start=at, end=at + len(wrong)),),
        marks=SimpleNamespace(probabilities=np.where(inside, 0.8, 0.1)),
        judgement=SimpleNamespace(encoded=SimpleNamespace(response_offsets=tuple(tokens))),
    )


class StandIn:
    """A detector that flags what has one of `WRONG` in it."""

    def __init__(self, *, card: str = "c" * 64, marks: bool = True, sources: Sequence[str] = ()) -> None:
        training = SimpleNamespace(sources=list(sources))
        self.card = SimpleNamespace(sha256=card, threshold=0.5, training=training, input=None)
        self.reader = SimpleNamespace(identity=IDENTITY)
        self.asked: list[list[str]] = []
        self.marks, self.fails_after = marks, 10**6

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def judge_many(self, examples: Sequence[Example], *, evidence: bool) -> list[SimpleNamespace]:
        if len(self.asked) == self.fails_after:
            raise KeyboardInterrupt
        assert len({example.prompt for example in examples}) == 1
        self.asked.append([example.id for example in examples])
        found = []
        for example in examples:
            response = example.response or ""
            found.append(says(response, next((one for one in WRONG if one in response), None)))
            if not self.marks:
                found[-1].marks = None
        return found


Load = Callable[..., StandIn]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Puts a stand-in in place of every detector that is loaded."""

    def put(**options: Any) -> StandIn:
        detector = StandIn(**options)
        monkeypatch.setattr(Detector, "load", lambda *_, **__: detector)
        return detector

    return put


def judged(detector: StandIn, data: Path, name: str) -> Judged:
    stand_in: Any = detector
    return judge_all(stand_in, read_sets(data)[name], cache_of(None, name, stand_in), name)


# Reading


def test_the_sets_as_examples(data: Path) -> None:
    sets = read_sets(data)
    assert [item.kind for item in sets[PAIRS]][:3] == ["faithful_1", "faithful_2", "number"]
    assert [item.example.hallucinated for item in sets[HALUEVAL]] == [False, True, False, True]
    first = sets[WICE][0]
    words = [first.example.response[start:end] for start, end, _ in first.words]
    assert words == ["Brel", "has", "twelve", "masts"]
    assert [unsupported for *_, unsupported in first.words] == [False, False, True, True]
    assert len({item.example.source for item in sets[WICE]}) == 2  # two pages, of three claims
    assert [len(items) for items in read_sets(data, dict.fromkeys(SETS, 1)).values()] == [5, 2, 2, 1, 2]


def test_summaries_as_examples(data: Path) -> None:
    sets = read_sets(data, {SUMMEDITS: None, BUMP: None})
    edited, copied = sets.values()
    assert [item.kinds for item in edited] == [
        (RIGHT,),
        ("entity changed",),
        ("antonym", "entity changed"),
        (UNNAMED,),
        (RIGHT,),
        ("entity changed",),
    ]
    assert edited[0].example.passages == ("(CNN)Brel has a mast.\n\nIt is 30 metres high.",)
    assert [item.kind for item in copied] == [
        RIGHT,
        "intrinsic entity",
        "intrinsic entity",
        RIGHT,
        "coreference",
    ]
    assert [item.twin for item in copied] == ["", *[copied[0].example.id] * 2, "", copied[3].example.id]
    assert len({item.example.source for item in (*edited, *copied)}) == 2  # two documents


def test_of_each_document_as_many_are_drawn(data: Path) -> None:
    counts = []
    for number in range(1, 7):
        (drawn,) = read_sets(data, {SUMMEDITS: number}).values()
        assert len(drawn) == number
        counts.append(sorted(Counter(item.example.source for item in drawn).values()))
    assert counts[:4] == [[1], [1, 1], [1, 2], [2, 2]]
    (pairs,) = read_sets(data, {BUMP: 2}).values()
    assert [item.kind == RIGHT for item in pairs] == [True, False, True, False]


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        (PAIRS, {"label": 2}, "label"),
        (PAIRS, {"label": 1}, "spans"),
        (PAIRS, {"kind": "faithful"}, "kind"),
        (HALUEVAL, {"right_answer": " "}, "response"),
        (HALUEVAL, {"question": None}, "question"),
        (WICE, {"non_supported_spans": [True]}, "non_supported_spans"),
        (WICE, {"claim": "Another."}, "claim_tokens"),
        (SUMMEDITS, {"label": "c"}, "label"),
        (SUMMEDITS, {"hypothesis": ""}, "response"),
        (BUMP, {"label": "not_e"}, None),
    ],
)
def test_a_malformed_row_is_named(name: str, change: dict[str, Any], field: str, tmp_path: Path) -> None:
    first, *others = MINIATURE[name]
    data = write(tmp_path, {name: [first | change, *others]})
    with pytest.raises(InputError) as caught:
        read_sets(data)
    assert (caught.value.path, caught.value.field) == (data / SETS[name].file, field)
    assert caught.value.line == (None if field == "kind" else 1)


def test_a_folder_without_data(tmp_path: Path, load: Load) -> None:
    load()

    def run(folder: Path) -> Any:
        return CliRunner().invoke(command.main, ["--data", str(folder), "--out", str(tmp_path / "out")])

    for folder, why in ((tmp_path / "none", "no such folder"), (tmp_path, "none of the sets is here")):
        result = run(folder)
        assert result.exit_code == 2
        assert why in result.stderr
    (tmp_path / PAIRS).mkdir()
    (tmp_path / PAIRS / "pairs.jsonl").write_text('{"id": ')
    assert "pairs.jsonl, line 1: invalid JSON" in run(tmp_path).stderr
    assert not (tmp_path / "out").exists()


# Measures, by hand


def test_minimal_pairs_by_hand(data: Path) -> None:
    found = measure_pairs(judged(StandIn(), data, PAIRS))
    assert (found["questions"], found["responses"], found["hallucinated"]) == (3, 15, 9)
    by_kind = {one["kind"]: one for one in found["faults"]}
    assert {kind: one["pairs"] for kind, one in by_kind.items()} == {
        "number": 3,
        "entity": 3,
        "negation": 3,
        ALL: 9,
    }
    near = {kind: {way: one.value for way, one in fault["near"].items()} for kind, fault in by_kind.items()}
    # Of eight words each: a tie, and "Brel lies near Oslo" is shorter; "not" makes nine.
    assert near["number"] == {OURS: 1, LENGTH: 0.5, NOVEL: 1}
    assert near["entity"] == {OURS: 1, LENGTH: 0, NOVEL: 1}
    assert near["negation"] == {OURS: 0.5, LENGTH: 1, NOVEL: 1}
    assert near[ALL][OURS] == pytest.approx(5 / 6)
    flagged = {kind: (one["flagged"].value, one["touched"].value) for kind, one in by_kind.items()}
    assert (flagged["number"], flagged["negation"]) == ((1, 1), (0, 0))
    fine = {kind: (one["count"], one["share"].value) for kind, one in found["flagged"].items()}
    assert fine == {"faithful_1": (3, 0), "faithful_2": (3, 0), ALL: (6, 0)}
    assert found["lines"][OURS]["metrics"]["balanced_accuracy"].value == pytest.approx((6 / 9 + 1) / 2)
    assert "balanced_accuracy" not in found["lines"][LENGTH]["metrics"]
    ours, theirs = (found["lines"][way]["metrics"]["auroc"].value for way in (OURS, LENGTH))
    assert found["lines"][LENGTH]["behind"].value == pytest.approx(ours - theirs)


def test_halueval_by_hand(data: Path) -> None:
    found = measure_halueval(judged(StandIn(), data, HALUEVAL))
    assert found["abstained"].value == 0.5  # of two words: the right answers
    whole, rest = found["parts"][ALL], found["parts"][WITH_VERDICT]
    assert whole["ranked"][OURS].value == whole["lines"][OURS]["metrics"]["auroc"].value == 0.75
    assert whole["lines"][LENGTH]["metrics"]["auroc"].value == 1
    assert (rest["responses"], rest["pairs"], rest["ranked"]) == (2, 0, {})
    assert rest["lines"][OURS]["metrics"]["auroc"].value is None  # all are wrong


def test_wice_by_hand(data: Path) -> None:
    found = measure_wice(judged(StandIn(), data, WICE))
    assert (found["claims"], found["pages"], found["hallucinated"]) == (3, 2, 2)
    assert (found["labelled"], found["unsupported"]) == (14, 3)
    ours, prevalence, novel = (found["words"][way]["metrics"] for way in (OURS, PREVALENCE, NOVEL_WORD))
    assert ours["auroc"].value == pytest.approx(1 / 3 + 2 / 3 * 0.5)  # one of three is found, nothing else
    assert (ours["precision"].value, ours["recall"].value) == (1, pytest.approx(1 / 3))
    assert (prevalence["auprc"].value, prevalence["auroc"].value) == (pytest.approx(3 / 14), 0.5)
    # The pages lack "twelve" and "masts", which are unsupported, and "Its", which is not; they have "Oden".
    assert novel["auroc"].value == pytest.approx((2 * (10 + 0.5) + 10 / 2) / 33)
    assert found["lines"][OURS]["metrics"]["auroc"].value == 0.75


def test_summaries_by_hand(data: Path) -> None:
    found = measure_summaries(judged(StandIn(), data, SUMMEDITS))
    assert (found["documents"], found["responses"], found["unsupported"]) == (2, 6, 4)
    assert (found["unlike"], found["excerpts"], found["flagged"].value) == ({}, 0, 0)
    assert found["lines"][OURS]["metrics"]["balanced_accuracy"].value == pytest.approx((3 / 4 + 1) / 2)
    kinds = {one["kind"]: one for one in found["kinds"]}
    assert {kind: one["responses"] for kind, one in kinds.items()} == {
        "antonym": 1,
        "entity changed": 3,
        UNNAMED: 1,
        ALL: 4,
    }
    assert [kinds[kind]["flagged"][OURS].value for kind in ("entity changed", UNNAMED, ALL)] == [1, 0, 0.75]
    assert kinds["entity changed"]["flagged_by_default"].value == kinds["antonym"]["auroc"][OURS].value == 1
    assert (kinds[ALL]["pairs"], kinds[ALL]["above"]) == (0, {})


def test_copies_are_ranked_above_the_right_summary(data: Path) -> None:
    kinds = {one["kind"]: one for one in measure_summaries(judged(StandIn(), data, BUMP))["kinds"]}
    assert (kinds["intrinsic entity"]["pairs"], kinds[ALL]["pairs"]) == (2, 3)
    assert kinds["intrinsic entity"]["above"][OURS].value == 0.75  # a tie is half
    assert kinds["coreference"]["above"] == {
        OURS: Interval(value=0.5, low=0.5, high=0.5),
        LENGTH: Interval(value=0, low=0, high=0),
        NOVEL: Interval(value=1, low=1, high=1),
    }


def test_a_threshold_is_chosen_on_the_other_half_of_the_documents() -> None:
    values, labels = np.array([0.1, 0.4, 0.4, 0.6]), np.array([False, True, False, True])
    assert best_threshold(values, labels) == 0.4
    documents = np.repeat([f"d{k}" for k in range(20)], 2)
    faulty = np.tile([False, True], 20)
    assert by_other_half(np.where(faulty, 0.3, 0.2), faulty, documents).value == 1
    # What tells the faulty one in a document and not across documents is worth little.
    shifted = np.where(faulty, 0.01, 0.0) + np.repeat(np.arange(20.0), 2)
    found = by_other_half(shifted, faulty, documents)
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert by_other_half(values[:2], labels[:2], documents[:2]).value is None  # one document has no halves


def test_a_detector_without_scores_of_tokens(data: Path) -> None:
    found = measure_wice(judged(StandIn(marks=False), data, WICE))
    assert list(found["words"]) == [NOVEL_WORD, PREVALENCE]
    assert found["words"][NOVEL_WORD]["behind"] is None


# The command


def run(data: Path, out: Path, *options: str) -> Any:
    return CliRunner().invoke(
        command.main, ["--data", str(data), "--out", str(out), *options], catch_exceptions=False
    )


def test_a_page_of_all_sets(data: Path, tmp_path: Path, load: Load) -> None:
    load()
    out = tmp_path / "out"
    found = json.loads(run(data, out, "--json").stdout)
    assert found == json.loads((out / "results.json").read_text())
    assert found["command"] == "python -m benchmarks.elsewhere --data data --out out"
    page = (out / "README.md").read_text()
    assert "| wrong attribution |" not in page
    assert "| entity changed | 3 | 100.0 % [100.0, 100.0] |" in page
    assert "| number | 3 | 100.0 % [100.0, 100.0] | 50.0 % [50.0, 50.0] |" in page
    assert str(tmp_path) not in page + (out / "results.json").read_text()
    for name in ("auroc", "kinds"):
        assert (out / f"{name}.png").stat().st_size
        assert f"({name}.svg)" in page
        assert (out / f"{name}.svg").exists()
    for text in ("mast of", "30 metres"):  # no text of the data
        assert text not in page + (out / "results.json").read_text()


def test_one_set_of_so_many(data: Path, tmp_path: Path, load: Load) -> None:
    load()
    found = json.loads(
        run(
            data, tmp_path / "out", "--json", "--set", "bump:2", "--set", SUMMEDITS, "--dtype", "bfloat16"
        ).stdout
    )
    assert found["command"].endswith("--data data --out out --dtype bfloat16 --set bump:2 --set summedits")
    assert found["limits"] == {BUMP: 2}
    assert {name: one and one["responses"] for name, one in found["sets"].items()} == {
        **dict.fromkeys((PAIRS, HALUEVAL, WICE)),
        SUMMEDITS: 6,
        BUMP: 4,
    }
    for wrong in ("bump:0", "bumps"):
        assert (
            CliRunner().invoke(command.main, ["--data", str(data), "--out", "o", "--set", wrong]).exit_code
            == 2
        )


def test_a_set_that_is_missing_is_told(data: Path, tmp_path: Path, load: Load) -> None:
    load()
    (data / PAIRS / "pairs.jsonl").unlink()
    (data / SETS[WICE].file).write_text(json.dumps(MINIATURE[WICE][0]))
    assert run(data, tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "README.md").read_text()
    assert "`minimal_pairs`" in page
    assert "## Minimal pairs" not in page
    assert not (tmp_path / "out" / "kinds.png").exists()


def test_a_killed_run_resumes_and_another_detector_is_refused(data: Path, tmp_path: Path, load: Load) -> None:
    cache, out = tmp_path / "cache", tmp_path / "out"
    killed = load()
    killed.fails_after = 2
    with pytest.raises(KeyboardInterrupt):
        command.benchmark(data, out, cache=cache)
    assert [ids[0] for ids in killed.asked] == ["b1_faithful_1", "b2_faithful_1"]
    kept = json.loads((cache / f"{PAIRS}.json").read_text())["cells"]
    assert len(kept) == 10
    assert set(next(iter(kept.values()))) == {
        *("probability", "abstained", "unlike", "excerpt", "spans", "tokens", "seconds")
    }
    again = load()
    command.benchmark(data, out, cache=cache)
    assert again.asked[0][0] == "b3_faithful_1"
    assert len(again.asked) == 1 + 2 + 2 + 2 + 2  # prompts: one of the pairs, questions, subjects, documents
    last = load()
    command.benchmark(data, out, cache=cache)
    assert last.asked == []
    load(card="e" * 64)
    result = run(data, out, "--cache", str(cache))
    assert result.exit_code == 2
    assert "measured with detector" in result.stderr


def test_what_the_detector_learned_from_is_refused(data: Path, tmp_path: Path, load: Load) -> None:
    (first, *_) = read_sets(data)[HALUEVAL]
    load(sources=[first.example.content_hash])
    result = run(data, tmp_path / "out")
    assert result.exit_code == 2
    assert not (tmp_path / "out" / "README.md").exists()
