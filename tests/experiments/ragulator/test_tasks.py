"""Which sentences are judged: parts share no source, pairs no label."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.ragulator.tasks import SHARES, annotated, pairs, split_by_source
from experiments.systems.scoring import PartScores
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_of
from tests.experiments.systems.stand_ins import rows_of, towns


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


def test_scores_are_of_the_sentences_that_count() -> None:
    task = annotated(rows_of(towns(2)))
    parts = [PartScores(np.array([(0, 1), (1, 2)]), np.array([k, k + 0.5])) for k in range(2)]
    assert task.scores(parts).tolist() == [0, 0.5, 1, 1.5]
