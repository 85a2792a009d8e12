"""SelfCheckGPT (Manakul et al., arXiv 2303.08896): a sentence is hallucinated as far as other answers to the
same prompt do not support it.

Four ways to tell whether they do, those of section 5 but for the one by questions: embeddings in place of
BERTScore, n-grams, entailment, and asking a model. The answers are the reader's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.baseline import Measured, Measurement
from experiments.systems.chat import Chat
from experiments.systems.encoders import MINILM, MINILM_PACKAGE, Embedder, Entailment
from experiments.systems.entailment import entailment_of
from experiments.systems.facts import SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores, split
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import key_of
from lrp4rag.util.sentences import sentences_in, sentences_of
from lrp4rag.util.text import words_of

Pair = tuple[str, str]
"""A sample and a sentence."""
Values = NDArray[np.float64]
Doubt = Callable[[list[Pair]], Values]
"""How little each sample supports its sentence, (pairs,), about 0 to 1; NaN for no answer."""

Samples = tuple[str, ...]
"""Answers to a prompt that are not empty: `COUNT` of them, or fewer."""
Words = Sequence[str]
START = ""  # comes before each sentence's first word, and is no word

ANSWERS = ("Yes", "No")
PROMPT = (
    "Text:\n{sample}\n\nStatement: {sentence}\n\n"
    "Does the text above support the statement? Reply with one word, Yes or No."
)
"""The sample comes first: it is read once for all sentences."""
NO_ANSWER = 0.5

COUNT, MAX_NEW_TOKENS, TEMPERATURE = 5, 192, 1.0  # of samples
ORDERS = (1, 2)
NGRAM_NAMES = ("unigram average", "unigram maximum", "bigram average", "bigram maximum")
MARKING = NGRAM_NAMES.index("unigram maximum")


def samples_of(examples: Sequence[Example], resources: Resources) -> list[Samples]:
    """Of each example's prompt, whose responses share them. Raises `InputError` for a prompt that leaves no
    room in the reader's window."""
    prompts = [replace(example, response=None, labels=None) for example in examples]
    return resources.measured(
        "samples", sample_settings(resources), prompts, Samples, lambda group: _drawn(group, resources)
    )


def sample_settings(resources: Resources) -> dict[str, Any]:
    """What samples depend on beside the prompt."""
    identity = resources.reader.identity
    return {
        "reader": [identity.digest, identity.dtype],
        "samples": [COUNT, MAX_NEW_TOKENS, TEMPERATURE],
        "seed": resources.seed,
    }


def _drawn(prompts: list[Example], resources: Resources) -> list[Samples]:
    from experiments.systems.prompted import Prompted

    samples = []
    for example in prompts:
        prompt = Prompted(resources.reader, resources.reader.encode_message(example.prompt))
        texts = prompt.sample(
            [[]] * COUNT, max_new_tokens=MAX_NEW_TOKENS, temperature=TEMPERATURE, seed=resources.seed
        )
        samples.append(tuple(text for text in texts if text))
    return samples


def checked(examples: Sequence[Example], samples: Sequence[Samples], doubt: Doubt) -> list[Measurement]:
    """A sentence's score is the mean doubt over samples, a response's the mean over its sentences. All pairs
    are judged together."""
    spans = [sentences_in(example.response or "") for example in examples]
    pairs = [
        [(text, sentence) for sentence in sentences_of(example.response) for text in texts]
        for example, texts in zip(examples, samples, strict=True)
    ]
    doubts = doubt([pair for own in pairs for pair in own])
    return [_measurement(*one) for one in zip(spans, split(doubts, pairs), strict=True)]


def _measurement(spans: Sequence[tuple[int, int]], doubts: Values) -> Measurement:
    unanswered = int(np.isnan(doubts).sum())
    if unanswered == len(doubts):
        return Measurement(np.array([np.nan]), asked=len(doubts), unanswered=unanswered)
    scores = np.nan_to_num(doubts, nan=NO_ANSWER).reshape(len(spans), -1).mean(axis=1)
    parts = PartScores(np.array(spans, dtype=np.intp), scores)
    return Measurement(np.array([scores.mean()]), parts, len(doubts), unanswered)


def unlike(pairs: list[Pair], embedder: Embedder) -> Values:
    """1 - the highest cosine of the sentence and a sentence of the sample (section 5.1)."""
    parts = {sample: sentences_of(sample) for sample, _ in pairs}
    texts = sorted({sentence for _, sentence in pairs}.union(*parts.values()))
    vectors = dict(zip(texts, embedder(texts), strict=True))
    return np.array(
        [1 - max(vectors[part] @ vectors[sentence] for part in parts[sample]) for sample, sentence in pairs],
        dtype=np.float64,
    )


def denied(pairs: list[Pair], chat: Chat) -> Values:
    """Whether the model denies that the sample supports the sentence, 0 or 1 (section 5.5)."""
    found = np.full(len(pairs), np.nan)
    for sample in dict.fromkeys(sample for sample, _ in pairs):
        own = [k for k, pair in enumerate(pairs) if pair[0] == sample]
        messages = [PROMPT.format(sample=sample, sentence=pairs[k][1]) for k in own]
        answers = chat.choose(messages, ANSWERS)
        found[own] = [np.nan if yes is None else float(yes <= 0.5) for yes in answers]
    return found


@dataclass(frozen=True, slots=True)
class NGrams:
    """Counts of runs of `order` words, and of the `order` - 1 words that runs begin with."""

    order: int
    runs: Counter[tuple[str, ...]]
    beginnings: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, sentences: Iterable[Words], order: int) -> NGrams:
        runs = Counter(run for words in sentences for run in _runs(words, order))
        beginnings: Counter[tuple[str, ...]] = Counter()
        for run, count in runs.items():
            beginnings[run[:-1]] += count
        return cls(order, runs, beginnings)

    def counts(self, words: Words) -> list[tuple[int, int]]:
        """Of each word of a sentence: how often its run occurs, and how often the run's beginning does."""
        return [(self.runs[run], self.beginnings[run[:-1]]) for run in _runs(words, self.order)]


def _runs(words: Words, order: int) -> Iterator[tuple[str, ...]]:
    padded = [START] * (order - 1) + list(words)
    return (tuple(padded[k : k + order]) for k in range(len(words)))


def surprising(example: Example, samples: Samples) -> Measurement:
    """Four numbers: the average and the maximum of words' -log p in a sentence, by n-grams of the samples and
    the response itself (section 5.3), averaged over sentences. Sentences are scored by the
    unigrams' maximum, the best of the four in the paper."""
    if not samples:
        return Measurement(np.full(len(NGRAM_NAMES), np.nan))
    response = example.response or ""
    sentences = [words_of(sentence) for sentence in sentences_of(response)]
    others = [words_of(sentence) for text in samples for sentence in sentences_of(text)]
    models = [NGrams.of([*sentences, *others], order) for order in ORDERS]
    scores = np.array([_statistics(words, models) for words in sentences])
    spans = np.array(sentences_in(response), dtype=np.intp)
    return Measurement(scores.mean(axis=0), PartScores(spans, scores[:, MARKING]))


def _statistics(words: list[str], models: list[NGrams]) -> list[float]:
    """Of a sentence without words, nothing is surprising."""
    # -log p of each word, in nats, without smoothing.
    surprises = [np.array([np.log(before / run) for run, before in model.counts(words)]) for model in models]
    return [float(of(one)) if len(one) else 0.0 for one in surprises for of in (np.mean, np.max)]


def _measure(
    rows: Rows, resources: Resources, name: str, settings: dict[str, Any], doubt: Doubt
) -> list[Measurement]:
    drawn = samples_of(rows.examples, resources)
    known = {key_of(example): own for example, own in zip(rows.examples, drawn, strict=True)}

    def measure(group: list[Example]) -> list[Measurement]:
        return checked(group, [known[key_of(example)] for example in group], doubt)

    settings = {"samples": sample_settings(resources), **settings}
    return resources.measured(name, settings, rows.examples, Measurement, measure)


def _by_embedding(rows: Rows, resources: Resources) -> list[Measurement]:
    doubt = partial(unlike, embedder=resources.embedder)
    return _measure(rows, resources, "selfcheck-embedding", {"embedder": MINILM}, doubt)


def _by_entailment(rows: Rows, resources: Resources, model: Entailment) -> list[Measurement]:
    """1 - the probability that the sample supports the sentence (section 5.4)."""
    settings = {"entailment": model.name}
    return _measure(rows, resources, "selfcheck-nli", settings, lambda pairs: 1 - model(pairs))


def _by_asking(rows: Rows, resources: Resources) -> list[Measurement]:
    chat = resources.chat
    settings = {"chat": chat.name, "prompt": PROMPT, "answers": ANSWERS}
    return _measure(rows, resources, "selfcheck-prompt", settings, partial(denied, chat=chat))


def _facts(
    way: str,
    weights: str,
    training: str = f"a sigmoid; marks: {SPANS}",
    modules: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
) -> Facts:
    return Facts(
        f"SelfCheckGPT, {way}",
        "arXiv 2303.08896",
        "text and samples",
        training,
        f"the reader's samples{weights}",
        slow=True,
        modules=modules,
        choices=choices,
    )


def _by_ngrams(rows: Rows, resources: Resources) -> list[Measurement]:
    return list(map(surprising, rows.examples, samples_of(rows.examples, resources)))


SELFCHECK_EMBEDDING = Measured(
    _facts("embeddings", ", all-MiniLM-L6-v2", modules=(MINILM_PACKAGE,)),
    _by_embedding,
    ("mean distance",),
    marks=True,
)
SELFCHECK_NGRAM = Measured(_facts("n-gram", ""), _by_ngrams, NGRAM_NAMES, alternatives=True, marks=True)
SELFCHECK_NLI = Measured(
    _facts("NLI", ", the cross-encoder of the folds", SPANS, (MINILM_PACKAGE,), ("entailment",)),
    _by_entailment,
    ("mean doubt",),
    marks=True,
    model_of=entailment_of,
)
SELFCHECK_PROMPT = Measured(
    _facts("prompt", ", the judge's", choices=("judge",)), _by_asking, ("mean denial",), marks=True
)
