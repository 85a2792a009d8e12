"""LettuceDetect: windows, the highest token, marks from one half on, and training from spans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.systems import lettuce
from experiments.systems.baseline import TrainedModel
from experiments.systems.encoders import TokenClassifier
from experiments.systems.lettuce import LETTUCE, measure, windows_of
from experiments.systems.scoring import threshold_of
from lrp4rag.example import Label
from tests.experiments.systems.stand_ins import WordVectors, judged, rows_of, stand_in
from tests.experiments.systems.tiny import Marker, tiny_wordpiece
from tests.tiny import bridge_example

LONG = bridge_example(
    question="What is?",
    passages=[
        "The old bridge is red. It stands here still. Cats sleep on warm stones.",
        "Dogs bark at night. Cats hunt grey mice. Nobody sees the bridge.",
    ],
    response="The old bridge is red today.\nCats sleep and hunt mice. Dogs bark.  The end of it is near us.",
)


def test_a_prompt_that_fits_is_read_whole():
    vectors = WordVectors()
    (window,) = windows_of(LONG, 512, vectors)
    assert (window.context, window.text, window.start) == (LONG.prompt, LONG.response, 0)
    assert not vectors.calls
    words = len(f"{LONG.prompt} {LONG.response}".split())
    assert len(windows_of(LONG, int(1.5 * words) + 1, vectors)) == 1
    assert windows_of(LONG, int(1.5 * words), vectors)[0].context != LONG.prompt


@pytest.mark.parametrize("words", [1, 3, 6, 9, 14, 100])
def test_windows_cover_every_character_of_the_response_once(monkeypatch, words):
    monkeypatch.setattr(lettuce, "PIECE_WORDS", words)
    covered = np.zeros(len(LONG.response), dtype=int)
    for window in windows_of(LONG, 30, WordVectors()):
        end = window.start + len(window.text)
        assert LONG.response[window.start : end] == window.text
        covered[window.start : end] += 1
    assert covered.max() == 1
    blanks = [letter.isspace() for letter in LONG.response]
    assert np.all(covered + blanks >= 1)  # white space between pieces has no tokens


def test_a_piece_is_read_with_the_question_and_the_chunks_most_like_it_in_their_order(monkeypatch):
    monkeypatch.setattr(lettuce, "PIECE_WORDS", 6)
    monkeypatch.setattr(lettuce, "CONTEXT_WORDS", 5)
    first, second, *_ = windows_of(LONG, 27, WordVectors())
    # 27 / 1.5 = 18 words, less 6 of the piece and 2 of the question: chunks of 5 and 4 words fit in 10.
    assert first.text == "The old bridge is red today."
    assert first.context == "What is?\nThe old bridge is red.\nNobody sees the bridge."
    # Its three words are in the chunk that comes later.
    assert second.text == "Cats sleep and hunt mice."
    assert second.context == "What is?\nCats sleep on warm stones.\nCats hunt grey mice."
    # However little room there is, one chunk is read.
    first, second, *_ = windows_of(LONG, 3, WordVectors())
    assert first.context == "What is?\nThe old bridge is red."
    assert second.context.count("\n") == 1


TOKENIZER = tiny_wordpiece()
WORTH = {"dragon": 0.9, "burned": 0.5, "red": 0.49}


def marker(**changes):
    return TokenClassifier("marker", Marker(WORTH, **changes), TOKENIZER)


def measured(example, model):
    (found,) = measure(rows_of([example]), stand_in(), model)
    return found


def test_a_response_is_as_suspect_as_its_highest_token():
    model = marker()
    example = bridge_example(response="It was red. A dragon burned it.")
    found = measured(example, model)
    assert found.numbers == pytest.approx([np.log(0.9 / 0.1)])
    assert found.suspicion.scores == pytest.approx([0.1, 0.1, 0.49, 0.1, 0.1, 0.9, 0.5, 0.1, 0.1])
    assert [example.response[start:end] for start, end in found.suspicion.spans[5:7]] == ["dragon", "burned"]
    other = measured(bridge_example(response="It was red."), model)
    assert other.numbers == pytest.approx([np.log(0.49 / 0.51)], abs=1e-6)
    # The prompt was read as it is, before the response.
    ids = TOKENIZER(example.prompt, add_special_tokens=False)["input_ids"]
    assert model.model.seen[0][1 : len(ids) + 1] == ids


def test_pieces_are_put_together_in_the_characters_of_the_response(monkeypatch):
    monkeypatch.setattr(lettuce, "PIECE_WORDS", 4)
    example = bridge_example(response="It was red. It is old.\nA dragon burned it.")
    whole, pieces = measured(example, marker()), measured(example, marker(longest=90))
    assert len(windows_of(example, 90, WordVectors())) == 3
    assert np.array_equal(pieces.suspicion.spans, whole.suspicion.spans)
    assert pieces.suspicion.scores == pytest.approx(whole.suspicion.scores)
    assert pieces.numbers == pytest.approx(whole.numbers)


def test_a_response_without_tokens_has_no_answer():
    found = measured(bridge_example(response="\u200b"), marker())
    assert np.isnan(found.numbers).all()
    assert len(found.suspicion.scores) == 0


def marked(rows, _):
    return TrainedModel(marker(), np.ones(len(rows), dtype=bool))


TEXTS = ("It was red. It is old.", "It was red. A dragon burned it.")
WRONG = ((), (Label(7, 10), Label(12, 31)))
GIVEN = [bridge_example(k, response=TEXTS[k % 2], labels=WRONG[k % 2]) for k in range(12)]


@pytest.fixture(scope="module")
def scorer():
    return replace(LETTUCE, model_of=marked).fit(rows_of(GIVEN), stand_in())


def test_tokens_are_marked_from_one_half_on_whatever_the_rows_say(scorer):
    # Of these rows' tokens, "red" would be marked too: of two responses 3 of 4 rightly, against 2 of 2.
    suspicions = [measured(example, marker()).suspicion for example in GIVEN]
    assert threshold_of(suspicions, GIVEN) == pytest.approx(0.49)
    assert scorer.threshold == 0.5
    (score,) = judged(scorer, rows_of([replace(GIVEN[1], id="x", labels=None)]), stand_in())
    assert [part[3] for part in score.parts] == [False] * 5 + [True, True, False, False]
    assert score.flagged
    (faithful,) = judged(scorer, rows_of(GIVEN[:1]), stand_in())
    assert not faithful.flagged
    assert not any(part[3] for part in faithful.parts)
