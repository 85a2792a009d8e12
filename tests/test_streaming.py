"""Reading along: each sentence is judged by what came before it, and by nothing after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

from lrp4rag import Detector, Example, InputError
from lrp4rag.classifiers import model
from lrp4rag.features import contrast, excerpt, record, replay
from lrp4rag.features.plain import ENTAILMENT
from lrp4rag.reader import Reader
from lrp4rag.reader.comparer import EncodedPair, Entailment, EntailmentModel, Pair
from lrp4rag.reader.reading import PromptReading
from lrp4rag.streaming import JudgedPiece, verdict_of
from tests.cli.plain_detector import plain_detector

QUESTION = "How tall is the lighthouse?"
PASSAGES = ["The Marlow lighthouse is 31 metres tall.", "Fish is sold nearby."]
RESPONSE = "It is 31 metres tall. It has 130 steps!\n\n- Fish is sold nearby\n- Bread is not"


@pytest.fixture
def detector(tiny_reader: Reader) -> Detector:
    return Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24)


def read_along(detector: Detector, text: str, size: int, passages=PASSAGES) -> list[JudgedPiece]:
    reading = detector.reading(QUESTION, passages)
    parts = [text[k : k + size] for k in range(0, len(text), size)]
    return [piece for part in parts for piece in reading.feed(part)] + [*reading.end()]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_sentence_is_judged_as_if_the_response_ended_there(detector: Detector, size: int) -> None:
    with detector:
        found = read_along(detector, RESPONSE, size)
    assert "".join(piece.text for piece in found) == RESPONSE
    judged = [piece for piece in found if piece.probability is not None]
    assert len(judged) == 4
    for piece in judged:
        cut = RESPONSE[: piece.end].rstrip()
        verdict = Detector(detector.model, detector.reader).judge(QUESTION, PASSAGES, cut)
        assert piece.so_far == pytest.approx(verdict.probability, abs=1e-4)
        assert piece.probability == pytest.approx(verdict.sentences[-1].probability, abs=1e-4)
        assert piece.abstained == verdict.abstained


def test_each_sentence_tells_where_the_passages_have_its_words(detector: Detector) -> None:
    with detector:
        found = [one for one in read_along(detector, RESPONSE, 9) if one.probability is not None]
    whole = detector.judge(QUESTION, PASSAGES, RESPONSE)
    assert [one.nearest for one in found] == [one.nearest for one in whole.sentences]
    first = found[0].nearest
    assert first is not None
    assert PASSAGES[first.passage][first.start : first.end] == PASSAGES[0]
    assert [PASSAGES[0][a:b] for a, b in first.words] == ["31", "metres", "tall"]


def test_what_follows_changes_nothing(detector: Detector) -> None:
    with detector:
        one = read_along(detector, RESPONSE, 5)
        other = read_along(detector, RESPONSE[:40] + "Nothing of this is true. Nor is this.", 5)
    assert one[0].probability == other[0].probability
    assert one[1].probability == pytest.approx(other[1].probability, abs=1e-6)


@pytest.mark.parametrize("others", [PASSAGES[::-1], PASSAGES])
def test_each_sentence_costs_its_own_tokens(
    detector: Detector, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a prompt is read once, also where two answers are written at a time, even to one prompt."""
    read: list[int] = []
    go_on = PromptReading._go_on

    def counted(self: PromptReading, ids, **options):
        read.append(len(ids))
        return go_on(self, ids, **options)

    monkeypatch.setattr(PromptReading, "_go_on", counted)
    with detector:
        reading, other = detector.reading(QUESTION, PASSAGES), detector.reading(QUESTION, others)
        reading.prepare()
        first = sum(read)
        other.prepare()
        prompts = sum(read)
        assert prompts == (1 if others == PASSAGES else 2) * first
        parts = ("It is 31 metres tall. ", "It has steps. ", "Fish is sold nearby. ", "So it is. ")
        for part, another in zip(parts, parts[::-1], strict=True):
            list(reading.feed(part))
            list(other.feed(another))
        list(reading.end()), list(other.end())
    tokenizer = detector.reader.tokenizer
    tokens = sum(len(tokenizer(one.text.rstrip())["input_ids"]) for one in (reading, other))
    # One more for each sentence and answer where the last token changed.
    assert prompts < sum(read) <= prompts + tokens + 2 * (2 * 4 + 1)


class Counted(EntailmentModel):
    """Doubts all claims alike, and counts them."""

    def __init__(self) -> None:
        super().__init__(None, (), "c" * 64)
        self.count = 0

    def _encode(self, pair: Pair) -> EncodedPair:
        raise NotImplementedError

    def _entail(self, pairs: Sequence[EncodedPair], asked: tuple[int, ...]) -> list[Entailment]:
        raise NotImplementedError

    def _entailments(self, pairs: Sequence[Pair], asked: tuple[int, ...]) -> list[Entailment]:
        self.count += len(pairs)
        classes, word = np.log(np.full(3, 1 / 3, dtype=np.float32)), np.zeros(1, dtype=np.float32)
        return [Entailment(classes, np.array([[0, 1]]), word) for _ in pairs]


def test_what_was_judged_is_not_judged_again(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence is read by the comparer once, and its values are looked for once, whatever else the
    detector judges in between."""
    comparer, done = Counted(), Counter[str]()

    def count(module: ModuleType, name: str) -> None:
        known = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: (done.update([name]), known(*given))[1])

    for module in (record, model):
        monkeypatch.setattr(module, "bundled_comparer", lambda: comparer)
    monkeypatch.setattr("lrp4rag.reader.comparer.KEPT", 2)
    count(contrast, "_values")
    count(excerpt, "Index")
    long = [f"The market of hall {k} sells {k + 200} kinds of cheese." for k in range(40)]
    prompts = PASSAGES, PASSAGES[::-1], [*long, *PASSAGES], [*PASSAGES, *long]
    fitted = plain_detector(tiny_reader, ENTAILMENT, comparer.digest)
    with Detector(fitted, tiny_reader, prompt_bytes=2**26) as detector:
        streams = [detector.reading(f"{QUESTION} ({k})", given) for k, given in enumerate(prompts)]
        for number in range(8):
            for stream in streams:
                list(stream.feed(f"It is {number + 30} metres tall. "))
        for stream in streams:
            list(stream.end())
    sentences = 8 * len(streams)
    assert (comparer.count, done["_values"]) == (sentences, sentences)
    assert done["Index"] == 2, "one for each long prompt"


STATUSES = (
    "# Fees\n\nHello there!\n\nIt is 31 metres tall.\n\n- It has 130 steps\n- Fish is sold nearby\n\nWhy?"
)


@pytest.mark.parametrize(
    "text", [RESPONSE, STATUSES, "Hello! It is 31 metres tall.\n\n[1]", "**Yes**\n\nIt is."]
)
def test_a_stream_says_of_each_sentence_what_is_said_of_the_whole(detector: Detector, text: str) -> None:
    """Its decision is the whole answer's, where what states nothing by itself waits for what comes next."""
    with detector:
        reading = detector.reading(QUESTION, PASSAGES)
        given = [one for k in range(0, len(text), 3) for one in reading.pieces(text[k : k + 3])]
        given += reading.rest()
        last = max(k for k, one in enumerate(given) if one.text.strip())
        pieces = [reading.judge(one, followed=k < last) for k, one in enumerate(given)]
        whole = detector.judge(QUESTION, PASSAGES, text)
    found = verdict_of(pieces, detector.model.card.threshold)
    assert found is not None
    assert [(one.start, one.end, one.text) for one in found.sentences] == [
        (one.start, one.end, one.text) for one in whole.sentences
    ]
    for one, other in zip(found.sentences, whole.sentences, strict=True):
        if one.probability is not None or other.status != "states nothing":
            assert one.probability == pytest.approx(other.probability, abs=1e-4)
    assert [one.status for one in found.sentences] == [one.status for one in whole.sentences]
    assert found.hallucinated == whole.hallucinated


def test_a_heading_waits_for_what_follows_it(detector: Detector) -> None:
    with detector:
        reading = detector.reading(QUESTION, PASSAGES)
        pieces = reading.pieces("# Fees\n\nIt is free. ") + reading.rest()
        assert [reading.waits(one) for one in pieces if one.text.strip()] == [True, False]
        judged = reading.judge(pieces[0], followed=True)
        alone, last = reading.judge(pieces[0]), reading.judge(pieces[-1], followed=True)
    assert (judged.status, judged.probability, judged.so_far) == ("states nothing", None, None)
    # With nothing after it, it may be the answer.
    assert alone.status != "states nothing"
    assert alone.probability is not None
    assert last.probability is not None


def test_the_verdict_of_pieces_is_that_of_the_most_suspect_that_states_something(detector: Detector) -> None:
    with detector:
        pieces = read_along(detector, RESPONSE, 9)
    known = [one.probability for one in pieces if one.probability is not None]
    found = verdict_of(pieces, 0.5)
    assert found is not None
    assert found.probability == max(known)
    assert [one.so_far for one in pieces if one.so_far is not None] == pytest.approx(
        np.maximum.accumulate(known), abs=1e-6
    )
    assert found.hallucinated == any(one.suspect for one in pieces)
    assert verdict_of([], 0.5) is None
    assert verdict_of(pieces[:0], None) is None


def test_white_space_is_not_judged(detector: Detector) -> None:
    with detector:
        found = read_along(detector, "\n\n \nIt is tall.\n\n\n", 1)
    assert "".join(one.text for one in found) == "\n\n \nIt is tall.\n\n\n"
    assert [one.probability is None for one in found if not one.text.strip()] == [True] * (len(found) - 1)


def test_what_cannot_be_read_along_is_refused(detector: Detector) -> None:
    with pytest.raises(InputError, match="open the detector"):
        detector.reading(QUESTION, PASSAGES)
    with detector, pytest.raises(InputError, match="response"):
        detector.reading_of(Example(QUESTION, PASSAGES, "It is."))


def test_along_a_long_prompt_the_sentences_of_each_sentence_are_read(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again only where a sentence states what was not read."""
    others = [
        f"The market of hall {k} sells {k + 200} kinds of cheese. Rain fell all day." for k in range(40)
    ]
    passages, read, reading = [*others, *PASSAGES], [], replay.PromptReading
    monkeypatch.setattr(replay, "PromptReading", lambda *given: read.append(1) or reading(*given))
    response = "It is 31 metres tall. The Marlow lighthouse is tall. Hall 9 sells 209 kinds of cheese."
    with detector:
        along = detector.reading(QUESTION, passages)
        along.prepare()
        assert len(read) == 1
        found = [*along.feed(response), *along.end()]
    assert len(read) == 2
    assert [len(others) in one.read for one in found] == [True, True, True]
    assert [9 in one.read for one in found] == [False, False, True]
    assert [one.nearest.passage for one in found] == [40, 40, 9]
    assert verdict_of(found, 0.5).read == tuple(sorted({*found[0].read, *found[2].read}))
