"""Several threads that use one reader: each gets its own numbers, or is refused."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from lrp4rag import Detector, Example, LRP4RAGError, analyse, attribute, generate, relevance_mode
from lrp4rag.classifiers import Features
from lrp4rag.generation import generating
from lrp4rag.lrp.attribution import segment_weights
from lrp4rag.lrp.streaming import stream
from lrp4rag.reader import Encoded, Reader
from lrp4rag.report.record import record
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.cli.plain_detector import plain_detector
from tests.tiny import bridge_example
from tests.training.labelled import examples

Work = Callable[[Example], Any]


@pytest.fixture(autouse=True)
def threads_that_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def plain(tiny_reader: Reader) -> Detector:
    return Detector(plain_detector(tiny_reader), tiny_reader)


@pytest.fixture(scope="module")
def vector(tiny_reader: Reader) -> Detector:
    rows = examples(12)
    relevances = [attribute(tiny_reader, tiny_reader.encode(one)) for one in rows]
    labels = np.array([bool(one.hallucinated) for one in rows])
    return Detector(fit_vector_detector(relevances, labels, features=Features(length=8)), tiny_reader)


def works(reader: Reader, plain: Detector, vector: Detector) -> dict[str, Work]:
    """What each gives is compared as it is."""

    def judged(detector: Detector) -> Work:
        return lambda example: detector.judge(example).to_dict() | {"seconds": None}

    def attributed(example: Example) -> list[Any]:
        found = attribute(reader, reader.encode(example), segments=True, prompt=True)
        return [found.response.tolist(), found.prompt.tolist(), found.logits.tolist()]

    def written(example: Example) -> str:
        return reader.generate(replace(example, response=None), max_new_tokens=6).response

    def written_with_relevance(example: Example) -> list[Any]:
        found = generate(example, reader, max_new_tokens=4)
        return [found.response, found.by_segment.tolist()]

    def cut(example: Example) -> list[Any]:
        prompt = reader.encode_prompt(example, max_new_tokens=1)
        return [reader.encode(example), prompt, reader.encode_message(example.question)]

    return {
        "judge": judged(plain),
        "judge by relevance": judged(vector),
        "analyse": lambda example: record(analyse(example, reader, plain.model)) | {"seconds": None},
        "attribute": attributed,
        "Reader.generate": written,
        "generate": written_with_relevance,
        "encode": cut,
    }


NAMES = ("judge", "judge by relevance", "analyse", "attribute", "Reader.generate", "generate", "encode")


def given(count: int) -> list[Example]:
    return [
        bridge_example(k, response=f"It was {'long ' * (k % 5)}ago, in {1900 + k % 7}. <|im_end|> is text.")
        for k in range(count)
    ]


def in_threads(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda job: job(), jobs))


@pytest.mark.parametrize("name", NAMES)
def test_each_thread_gets_what_it_gets_alone(
    name: str, tiny_reader: Reader, plain: Detector, vector: Detector
) -> None:
    jobs = [partial(works(tiny_reader, plain, vector)[name], one) for one in given(5)]
    assert in_threads(jobs) == [job() for job in jobs]


def test_different_uses_of_one_reader_do_not_disturb_each_other(
    tiny_reader: Reader, plain: Detector, vector: Detector
) -> None:
    known = works(tiny_reader, plain, vector)
    jobs = [partial(known[NAMES[k % len(NAMES)]], one) for k, one in enumerate(given(len(NAMES)))]
    expected = [job() for job in jobs]
    assert in_threads(jobs) == expected
    with plain:  # which leaves the reader to others between what it judges
        assert in_threads(jobs) == expected
    with vector:
        judging = [partial(known["judge by relevance"], one) for one in given(5)]
        assert in_threads(judging) == [job() for job in judging]


def test_a_detector_may_be_opened_by_several_threads(plain: Detector, vector: Detector) -> None:
    def job(detector: Detector, example: Example) -> float | None:
        with detector:
            return detector.judge(example).probability

    for detector in (plain, vector):
        jobs = [partial(job, detector, one) for one in given(5)]
        assert in_threads(jobs) == [job() for job in jobs]
        assert not detector.is_open


def test_answers_are_judged_along_in_several_threads(plain: Detector) -> None:
    def job(example: Example) -> list[Any]:
        reading = plain.reading(example.question, example.passages)
        pieces = [
            *reading.feed(f"{example.response} It is old. "),
            *reading.feed("It is new"),
            *reading.end(),
        ]
        return [one.so_far for one in pieces]

    with plain:
        jobs = [partial(job, one) for one in given(5)]
        for found, expected in zip(in_threads(jobs), [job() for job in jobs], strict=True):
            assert found == pytest.approx(expected, abs=1e-5)  # a prompt may be read anew in between


def test_streams_of_one_mode_go_on_by_turns(tiny_reader: Reader) -> None:
    prompts = [tiny_reader.encode_prompt(one, max_new_tokens=5) for one in given(5)]
    with relevance_mode(tiny_reader.model) as flow:

        def job(prompt: Encoded) -> list[Any]:
            tokens = stream(flow, prompt.prompt_ids, segment_weights(prompt), max_new_tokens=5)
            return [[one.id, one.relevance.tolist(), one.logit] for one in tokens]

        jobs = [partial(job, one) for one in prompts]
        assert in_threads(jobs) == [job() for job in jobs]


@pytest.mark.parametrize("name", ["judge", "judge by relevance", "analyse", "attribute", "generate"])
def test_what_another_stream_would_change_is_refused(
    name: str, tiny_reader: Reader, plain: Detector, vector: Detector
) -> None:
    work, (one, other) = works(tiny_reader, plain, vector)[name], given(2)
    tokens = generating(one, tiny_reader, max_new_tokens=3)
    first = next(tokens)
    with pytest.raises(LRP4RAGError, match=r"relevance mode already.* Leave, close or end that first"):
        in_threads([partial(work, other)])
    rest = [first, *tokens]
    assert [token.id for token in rest] == [
        token.id for token in generate(one, tiny_reader, max_new_tokens=3).tokens
    ]
    assert in_threads([partial(work, other)]) == [work(other)]


def test_only_the_thread_that_asked_for_it_is_interrupted(plain: Detector) -> None:
    one, other = given(2)

    def end() -> None:
        raise TimeoutError

    with plain.interruptible(end):
        assert in_threads([lambda: plain.judge(one).probability])[0] is not None
        with pytest.raises(TimeoutError):
            plain.judge(other)


def test_readers_and_detectors_are_copied_without_their_lock(plain: Detector) -> None:
    one = given(1)[0]
    expected = plain.judge(one).probability
    with plain.reader.lock:
        copies = [pickle.loads(pickle.dumps(plain)), copy.deepcopy(plain)]
        for each in copies:
            assert in_threads([partial(each.judge, one)])[0].probability == expected
