"""LettuceDetect: windows, the highest token, marks from one half on, and training from spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.classifiers.localise import merged_spans
from lrp4rag.errors import InputError
from lrp4rag.example import Example, Label
from lrp4rag.experiments.systems import lettuce, trained
from lrp4rag.experiments.systems.comparison.folds import over_tokens
from lrp4rag.experiments.systems.encoders.embedder import Embedder
from lrp4rag.experiments.systems.encoders.token_classifier import TokenClassifier
from lrp4rag.experiments.systems.encoders.training import IGNORED, Training
from lrp4rag.experiments.systems.kit import Choices, Kit
from lrp4rag.experiments.systems.lettuce import LETTUCE, measure, trained_classifier, windows_of
from lrp4rag.experiments.systems.suspicion import threshold_of
from lrp4rag.experiments.systems.trained import learned_sources, refuse_learned
from lrp4rag.reader import reader
from lrp4rag.training.rows import Rows
from tests.experiments.systems.couples import couples, rows_of, unlabelled
from tests.experiments.systems.encoders.tiny import (
    Marker,
    save_tiny_encoder,
    save_tiny_marker,
    tiny_wordpiece,
)
from tests.experiments.systems.entailed_kit import StandInKit, WordVectors
from tests.tiny import bridge_example


def long_example(**changes: Any) -> Example:
    """Passages and response of several sentences each, on two things."""
    passages = [
        "The old bridge is red. It stands here still. Cats sleep on warm stones.",
        "Dogs bark at night. Cats hunt grey mice. Nobody sees the bridge.",
    ]
    response = "The old bridge is red today.\nCats sleep and hunt mice. Dogs bark.  The end of it is near us."
    return bridge_example(**({"passages": passages, "response": response, "question": "What is?"} | changes))


# Windows.


def test_a_prompt_that_fits_is_read_whole() -> None:
    example, vectors = long_example(), WordVectors()
    (window,) = windows_of(example, 512, vectors)
    assert (window.context, window.piece, window.start) == (example.prompt, example.response, 0)
    assert not vectors.calls
    words = len(f"{example.prompt} {example.response}".split())
    assert len(windows_of(example, int(1.5 * words) + 1, vectors)) == 1
    assert windows_of(example, int(1.5 * words), vectors)[0].context != example.prompt


@pytest.mark.parametrize("words", [1, 3, 6, 9, 14, 100])
def test_windows_cover_every_character_of_the_response_once(
    monkeypatch: pytest.MonkeyPatch, words: int
) -> None:
    monkeypatch.setattr(lettuce, "PIECE_WORDS", words)
    example = long_example()
    covered = np.zeros(len(example.response), dtype=int)
    for window in windows_of(example, 30, WordVectors()):
        end = window.start + len(window.piece)
        assert example.response[window.start : end] == window.piece
        covered[window.start : end] += 1
    assert covered.max() == 1
    blanks = [letter.isspace() for letter in example.response]
    assert np.all(covered + blanks >= 1)  # white space between pieces has no tokens


def test_a_piece_is_read_with_the_question_and_the_chunks_most_like_it_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lettuce, "PIECE_WORDS", 6)
    monkeypatch.setattr(lettuce, "CONTEXT_WORDS", 5)
    example = long_example()
    first, second, *_ = windows_of(example, 27, WordVectors())
    # 27 / 1.5 = 18 words, less 6 of the piece and 2 of the question: chunks of 5 and 4 words fit in 10.
    assert first.piece == "The old bridge is red today."
    assert first.context.split("\n") == [
        "What is?",
        "The old bridge is red.",
        "Nobody sees the bridge.",
    ]
    # Its three words are in the chunk that comes later.
    assert second.piece == "Cats sleep and hunt mice."
    assert second.context.split("\n") == [
        "What is?",
        "Cats sleep on warm stones.",
        "Cats hunt grey mice.",
    ]


def test_at_least_one_chunk_is_read_however_little_room_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lettuce, "PIECE_WORDS", 6)
    monkeypatch.setattr(lettuce, "CONTEXT_WORDS", 5)
    first, second, *_ = windows_of(long_example(), 3, WordVectors())
    assert first.context == "What is?\nThe old bridge is red."
    assert second.context.count("\n") == 1


# What is measured.

TOKENIZER = tiny_wordpiece()
WORTH = {"dragon": 0.9, "burned": 0.5, "red": 0.49}


def marker(**changes: Any) -> TokenClassifier:
    return TokenClassifier("marker", Marker(WORTH, **changes), TOKENIZER)


def measured(example: Example, model: TokenClassifier) -> Any:
    (found,) = measure(Rows(None, (example,)), StandInKit(), model)
    return found


def test_a_response_is_as_suspect_as_its_highest_token() -> None:
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


def test_pieces_are_put_together_in_the_characters_of_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lettuce, "PIECE_WORDS", 4)
    example = bridge_example(response="It was red. It is old.\nA dragon burned it.")
    whole, pieces = measured(example, marker()), measured(example, marker(longest=90))
    assert len(windows_of(example, 90, WordVectors())) == 3
    assert np.array_equal(pieces.suspicion.spans, whole.suspicion.spans)
    assert pieces.suspicion.scores == pytest.approx(whole.suspicion.scores)
    assert pieces.numbers == pytest.approx(whole.numbers)


def test_a_response_without_tokens_has_no_answer() -> None:
    found = measured(bridge_example(response="\u200b"), marker())
    assert np.isnan(found.numbers).all()
    assert len(found.suspicion.scores) == 0


def labelled(count: int) -> list[Example]:
    """Of bridges, in turn red and burned by a dragon."""
    texts = ("It was red. It is old.", "It was red. A dragon burned it.")
    return [
        bridge_example(k, response=texts[k % 2], labels=(Label(7, 10), Label(12, 31)) if k % 2 else ())
        for k in range(count)
    ]


def test_tokens_are_marked_from_one_half_on_whatever_the_rows_say() -> None:
    given, kit = labelled(12), StandInKit()
    scorer = LETTUCE.using(marker()).fit(Rows(None, tuple(given)), kit)
    # Of these rows' tokens, "red" would be marked too: of two responses 3 of 4 rightly, against 2 of 2.
    suspicions = [measured(example, marker()).suspicion for example in given]
    assert threshold_of(suspicions, given) == pytest.approx(0.49)
    assert scorer.threshold == 0.5
    (score,) = scorer.score(Rows(None, (replace(given[1], id="x", labels=None),)), kit)
    assert [part.marked for part in score.suspects] == [False] * 5 + [True, True, False, False]
    assert score.flagged
    (faithful,) = scorer.score(Rows(None, (given[0],)), kit)
    assert not faithful.flagged
    assert not any(part.marked for part in faithful.suspects)


def test_marked_tokens_make_the_spans_that_their_own_offsets_make() -> None:
    given, kit = labelled(12), StandInKit()
    scorer = LETTUCE.using(marker()).fit(Rows(None, tuple(given)), kit)
    text = given[1].response
    (score,) = scorer.score(Rows(None, (given[1],)), kit)
    own = merged_spans(
        np.array([part.marked for part in score.suspects]),
        [(part.start, part.end) for part in score.suspects],
        text,
    )
    assert [text[start:end] for start, end in own] == ["dragon burned"]
    # A reader's tokens: It|was| red|.|A|_drag|on b|urned it|. (the blank belongs to the word after it)
    offsets = [(0, 2), (3, 6), (6, 10), (10, 11), (12, 13), (13, 18), (18, 22), (22, 30), (30, 31)]
    suspicion, marks = over_tokens(score, offsets)
    assert marks.tolist() == [False] * 5 + [True] * 3 + [False]
    assert suspicion == pytest.approx([0.1, 0.1, 0.49, 0.1, 0.1, 0.9, 0.9, 0.5, 0.1])
    # Where tokens end with words, the spans are the same.
    apart = [(0, 2), (3, 6), (6, 10), (10, 11), (12, 13), (13, 18), (18, 20), (20, 27), (27, 30), (30, 31)]
    assert merged_spans(over_tokens(score, apart)[1], apart, text) == own


# Training.

QUICK = Training(epochs=4, rate=5e-3, batch=8)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny encoder for MiniLM, and vectors of words for its embeddings."""
    folder = save_tiny_encoder(tmp_path / "minilm", initializer_range=0.1)
    monkeypatch.setattr(lettuce, "MINILM", folder)
    monkeypatch.setattr(lettuce, "TRAINING", QUICK)
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())
    monkeypatch.setattr(reader, "fastest_dtype", lambda device: "float32")
    return folder


def test_it_learns_annotated_spans_and_judges_by_what_is_fresh_to_it(tmp_path: Path, tiny: str) -> None:
    given = rows_of(couples(25), tmp_path / "s")
    judged = rows_of(couples(4, first=60), tmp_path / "s")
    kit = Kit(tmp_path / "kit")
    scorer = LETTUCE.fit(given, kit)
    fresh = ~np.isin(given.groups, learned_sources(given, 0))
    assert scorer.outside.rows.tolist() == np.flatnonzero(fresh).tolist()
    assert fresh.sum() == 10
    scores = scorer.score(judged, kit)
    assert [one.flagged for one in scores] == [False, True] * 4
    for example, score in zip(judged.examples, scores, strict=True):
        marks = "".join(example.response[part.start : part.end] for part in score.suspects if part.marked)
        assert ("dragonburned" in marks) == bool(example.labels)
        assert "bridge" not in marks
    assert scorer.score(unlabelled(judged), kit) == scores
    # Weights are kept as safetensors, under the name that measurements are kept by.
    (folder,) = (tmp_path / "kit" / "weights").iterdir()
    assert {file.suffix for file in folder.iterdir()} == {".json", ".safetensors"}
    assert folder.name.startswith("lettuce-")
    assert folder.name in next((tmp_path / "kit" / "measured").glob("lettuce-*/settings.json")).read_text()


def items(examples: Sequence[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a model would learn from."""
    given: list[Any] = []

    def stand_in(model: Any, tokenizer: Any, made: Any, training: Training, label: str) -> Any:
        given.extend(made)
        return model

    monkeypatch.setattr(lettuce, "finetune", stand_in)
    lettuce.train_classifier(list(examples), Kit(tmp_path / "kit"), tmp_path / "out")
    return given


@pytest.mark.usefixtures("tiny")
def test_it_learns_from_all_windows_with_the_labels_of_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faithful, made_up = items(couples(1), tmp_path, monkeypatch)
    assert set(faithful["labels"]) == {IGNORED, 0}
    found = np.array(made_up["labels"]) == 1
    words = TOKENIZER.convert_ids_to_tokens(np.array(made_up["input_ids"])[found].tolist())
    assert words == ["a", "dragon", "burned", "it", "."]
    # What does not fit becomes several items, of which each has its own tokens' labels.
    text = " ".join(["It was old."] * 90) + " A dragon burned it."
    example = bridge_example(response=text, labels=(Label(len(text) - 19, len(text)),))
    many = items([example], tmp_path, monkeypatch)
    assert len(many) > 2
    assert [sum(one == 1 for one in item["labels"]) for item in many] == [0] * (len(many) - 1) + [5]
    assert sum(one != IGNORED for item in many for one in item["labels"]) == 4 * 90 + 5


@pytest.mark.usefixtures("tiny")
def test_the_kits_lessons_are_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    def stand_in(examples: Sequence[Example], kit: Kit, folder: Path) -> None:
        seen.append({one.source for one in examples})
        save_tiny_marker(folder)

    monkeypatch.setattr(lettuce, "train_classifier", stand_in)
    lessons = rows_of(couples(10), tmp_path / "s")
    fitted = Rows(lessons.store, (*lessons.examples[6:], *couples(2, first=50)))
    for _ in range(2):
        found = trained_classifier(fitted, Kit(tmp_path / "kit", lessons=lessons))
    known = learned_sources(lessons, 0)
    assert seen == [set(known)]
    assert found.fresh.tolist() == [one.source not in known for one in fitted.examples]
    assert found.model.name.startswith("lettuce-")
    alone = trained_classifier(fitted, Kit(tmp_path / "alone"))
    assert seen[1] == set(learned_sources(fitted, 0))
    assert alone.fresh.sum() == 2 * 2


def test_a_published_model_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "finetune", None)
    folder = save_tiny_marker(tmp_path / "published")
    kit = Kit(tmp_path / "kit", Choices(token_classifier=folder))
    rows = rows_of(couples(3), tmp_path / "s")
    found = trained_classifier(rows, kit)
    assert found.fresh.all()
    assert found.model.name.startswith("published (")
    assert trained_classifier(rows.select([0]), kit).model is found.model
    assert not (tmp_path / "kit" / "weights").exists()


def test_weights_that_learned_from_the_rows_are_refused(tmp_path: Path, tiny: str) -> None:
    rows, kit = rows_of(couples(10), tmp_path / "s"), Kit(tmp_path / "kit")
    trained_classifier(rows, kit)
    (folder,) = (tmp_path / "kit" / "weights").iterdir()
    known = learned_sources(rows, 0)
    learned, fresh = (
        [one for one in rows.examples if (one.source in known) == inside] for inside in (True, False)
    )
    choices = Choices(token_classifier=str(folder))
    refuse_learned(choices, fresh)
    with pytest.raises(InputError, match=rf"from {len(learned)} of the responses .* --token-classifier out"):
        refuse_learned(choices, rows.examples)
