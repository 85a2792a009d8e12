"""RAGulator's evaluation on planted sentences, with stand-ins that need no weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import ragulator
from experiments.pages import RESULTS, write_results
from experiments.ragulator import (
    CONTROLS,
    SHARES,
    SYSTEMS,
    WORDS,
    Evaluation,
    annotated,
    evaluate,
    kappa,
    pairs,
    split_by_source,
)
from experiments.systems import ragulator as grids
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_of
from lrp4rag.util.strict_json import read_record
from tests.experiments.systems.stand_ins import ScriptedChat, no_training, rows_of, stand_in, towns

COUNT = 60


@pytest.fixture(scope="module")
def found() -> Evaluation:
    with pytest.MonkeyPatch.context() as patch:
        no_training(patch)
        patch.setattr(grids, "FOREST_TREES", (10,))
        patch.setattr(grids, "FOREST_DEPTHS", (3,))
        for name, value in (
            ("BOOSTED_TREES", 20),
            ("BOOSTED_DEPTHS", -1),
            ("LEAVES", 7),
            ("SUBSAMPLES", 1.0),
        ):
            patch.setattr(grids, name, (value,))
        chat = ScriptedChat(lambda message, _: "none" if "Statement: Dragon" in message else "1")
        return evaluate(rows_of(towns(COUNT)), stand_in(speaker=chat), 20)


def test_every_system_and_control_is_judged_on_both_tasks(found: Evaluation) -> None:
    assert [line.name for line in found.lines] == [*SYSTEMS, *CONTROLS]
    assert found.sources == {"learn": 36, "tune": 9, "test": 15}
    assert found.sentences == {"annotated": 30, "simulated": 60}
    by_name = {line.name: line for line in found.lines}
    # What is planted is in no passage, so words tell it, as they tell another source's passages.
    for name in ("the better of both, annotated sentences", "words that no passage has"):
        assert by_name[name].tasks["annotated"]["auroc"].value == 1
        assert by_name[name].tasks["annotated"]["f1"].value == 1
    everything = by_name["flag everything"].tasks["annotated"]
    assert everything["auroc"].value == 0.5
    assert everything["recall"].value == 1
    assert everything["precision"].value == pytest.approx(found.out["annotated"] / 30)
    assert by_name["words that no passage has"].chosen == ""
    assert by_name["LightGBM, simulated pairs"].chosen


def test_every_line_is_set_beside_words_that_no_passage_has(found: Evaluation) -> None:
    words = next(line for line in found.lines if line.name == WORDS)
    for line in found.lines:
        for task, less in line.over_words.items():
            for name in ("auroc", "f1"):
                apart = line.tasks[task][name].value - words.tasks[task][name].value
                assert less[name].value == pytest.approx(apart, abs=1e-12)


def test_a_stream_lets_out_what_is_not_marked(found: Evaluation) -> None:
    words, everything = found.streams["words that no passage has"], found.streams["flag everything"]
    assert (words.held_faithful.value, words.held_hallucinated.value) == (0, 1)
    assert (words.whole_faithful.value, words.whole_hallucinated.value) == (1, 0)
    assert (everything.held_faithful.value, everything.whole_faithful.value) == (1, 0)


def test_speeds_and_agreement_are_of_every_system(found: Evaluation) -> None:
    assert set(found.speeds) == set(SYSTEMS)
    assert all(one.together > 0 and 0 < one.median_ms <= one.p95_ms for one in found.speeds.values())
    asked = found.agreement["scripted"]
    assert found.labelled == 15
    assert found.conditions.startswith("cpu, ")
    assert (asked.asked, asked.read, asked.kappa.value) == (30, 30, 1)
    assert found.agreement["flag everything"].kappa.value == 0
    nothing = found.agreement[ragulator.NOTHING]
    assert nothing.accuracy.value == pytest.approx(1 - found.agreement["flag everything"].accuracy.value)
    assert nothing.kappa.value == 0
    # The stand-in for a model answers all.
    assert found.agreement_read == found.agreement


def test_replies_that_cannot_be_read_are_counted_and_not_judged() -> None:
    task = annotated(rows_of(towns(2)))
    out = [np.array([0.0, np.nan]), np.array([np.nan, 1.0])]
    found = ragulator._agreement(out, task, 10)
    assert (found.asked, found.read, found.accuracy.value) == (4, 2, 1)
    nothing = ragulator._agreement([np.full(2, np.nan)] * 2, task, 10)
    assert (nothing.read, nothing.kappa.value) == (0, None)


def test_no_source_is_in_two_parts_and_all_are_in_one() -> None:
    rows = rows_of(towns(40))
    split = split_by_source(rows, 0)
    sources = [set(part.groups) for part in split]
    assert set().union(*sources) == set(rows.groups)
    assert sum(map(len, sources)) == 40
    assert [len(one) for one in sources] == [round(40 * share) for share in SHARES.values()]
    assert [set(part.groups) for part in split_by_source(rows, 0)] == sources
    assert [set(part.groups) for part in split_by_source(rows, 1)] != sources


def test_parts_of_one_kind_only_are_refused() -> None:
    faithful = rows_of([town for town in towns(40) if not town.labels])
    with pytest.raises(InputError, match="those to learn have only one kind of response; extract more"):
        split_by_source(faithful, 0)


def test_annotated_sentences_are_those_that_a_span_touches() -> None:
    task = annotated(rows_of(towns(2)))
    assert task.labels.tolist() == [False, False, False, True]
    assert task.sentence_groups.tolist() == [one.source for one in task.examples for _ in range(2)]


def test_held_out_pairs_have_each_sentence_once_in_context_and_once_out_of_it() -> None:
    rows = rows_of(towns(6))
    task = pairs(rows, 0)
    assert task.labels.tolist() == [False] * 12 + [True] * 12
    passages = {one.source: one.passages for one in rows.examples}
    for example, kept, group in list(zip(task.examples, task.kept, task.groups, strict=True))[6:]:
        assert example.passages in passages.values()
        assert example.source in group.split(" and ")
        assert len(kept) == len(sentences_of(example.response))
    # A couple is drawn whole: both sides of its pairs have its name.
    assert set(task.sentence_groups[:12]) == set(task.sentence_groups[12:])


def test_kappa_is_cohen_s() -> None:
    first = np.array([True, True, False, False])
    assert kappa(first, first) == 1
    # Half agree, as chance would have it.
    assert kappa(first, np.array([True, False, True, False])) == 0
    assert np.isnan(kappa(first & False, first & False))


def test_the_page_has_every_line_and_the_published_rows(found: Evaluation, tmp_path) -> None:
    odd = replace(found.lines[0], name="forest | <b>")
    changed = replace(found, lines=(odd, *found.lines[1:]))
    files = write_results(tmp_path / "out", "ragulator", changed, "lrp4rag x", resamples=20)
    page = files[0].read_text()
    assert "deberta-v3-large, published" in page
    assert "`lrp4rag x`" in page
    assert "<b>" not in page
    assert "forest \\| " in page
    for name in (*list(SYSTEMS)[1:], *CONTROLS):
        assert name in page
    record = read_record(tmp_path / "out" / RESULTS, "results")
    assert record["sentences"]["annotated"] == 30
    assert {file.suffix for file in files} == {".md", ".json", ".png", ".svg"}
