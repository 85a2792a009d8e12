"""RAGulator (arXiv 2411.03920): is a sentence of the response out of its context? A response's score is the
highest of its sentences.

Classifiers read five features of a sentence. They learn from simulated sentences out of context, annotated
spans, or what a model replies. Simulated ones need no labels: a sentence is read beside another source's
passages. Sources are taken in couples that lend each other their passages. What is learned from a couple
knows both of its sources and no other, so folds that split no couple leak nothing. Replies name the sentences
of the context that support a sentence; the paper labels windows of its contexts so, with a model of 70B
parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from experiments.systems.baseline import NOTHING, Fitted, Reading
from experiments.systems.chat import Chat
from experiments.systems.encoders import MINILM, MINILM_PACKAGE, Entailment, chunks_of, optional
from experiments.systems.entailment import CHUNK_WORDS, entailment_of
from experiments.systems.facts import SPANS, Facts
from experiments.systems.judge import RETRY_TEMPERATURE, TRIES, asked_until_read
from experiments.systems.resources import Resources
from experiments.systems.scoring import Calibration, PartScores, split, threshold_of
from experiments.systems.selfcheck import NGrams, Words
from lrp4rag.classifiers.calibration import (
    CALIBRATION_FOLDS,
    Candidate,
    chosen,
    fit,
    grouped_folds,
    margin_of,
)
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import key_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in, sentences_of
from lrp4rag.util.text import words_of

FEATURES = (
    "precision",
    "unigram perplexity",
    "bigram perplexity",
    "largest similarity to a sentence of the context",
    "largest relevance of a chunk of the context",
)
SMOOTHING = 1.0
RERANKED = 2  # chunks that the cross-encoder is given, those most similar: it costs far more than all else

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Of S sentences, what needs no cross-encoder: their characters `spans` (S, 2), all `FEATURES` but the
    last in `numbers` (S, 4), and the chunks to be given to it in `nearest` (S, at most `RERANKED`)."""

    spans: NDArray[np.intp]
    numbers: Floats
    nearest: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """`spans` (S, 2) are a response's sentences, `numbers` (S, 5) their `FEATURES`."""

    spans: NDArray[np.intp]
    numbers: Floats


@dataclass(frozen=True, slots=True)
class Context:
    """What counting its words says of a context. Words are in lower case, without stop words, stemmed."""

    words: NGrams
    pairs: NGrams

    @classmethod
    def of(cls, sentences: Sequence[str]) -> Context:
        stemmed = [stems(sentence) for sentence in sentences]
        return cls(NGrams.of(stemmed, 1), NGrams.of(stemmed, 2))

    def precision(self, words: Words) -> float:
        """The share of a sentence's words that the context has, in [0, 1]; 1 for a sentence without words."""
        return sum((word,) in self.words.runs for word in words) / len(words) if words else 1.0

    def unigram_perplexity(self, words: Words) -> float:
        """exp of the mean of -log p(w), at least 1, and 1 for a sentence without words.

        p(w) = (n(w) + a) / (n + a (V + 1)): n words in the context, V of them distinct, one place for all
        others, and a = `SMOOTHING`.
        """
        return self._perplexity(self.words, words)

    def bigram_perplexity(self, words: Words) -> float:
        """The same with p(w | v) = (n(v, w) + a) / (n(v) + a (V + 1)); v is `START` for the first word."""
        return self._perplexity(self.pairs, words)

    def _perplexity(self, ngrams: NGrams, words: Words) -> float:
        places = SMOOTHING * (len(self.words.runs) + 1)
        shares = [(run + SMOOTHING) / (before + places) for run, before in ngrams.counts(words)]
        return float(np.exp(-np.mean(np.log(shares)))) if shares else 1.0


def context_sentences(example: Example) -> list[str]:
    """Those of all passages, in their order."""
    return [sentence for text in example.passages for sentence in sentences_of(text)]


def stems(text: str) -> list[str]:
    """Stop words go first: stems would hide them. Raises `InputError` where the stemmer is not installed."""
    return [_stem()(word) for word in words_of(text) if word not in ENGLISH_STOP_WORDS]


@lru_cache(maxsize=1)
def _stem() -> Callable[[str], str]:
    return lru_cache(maxsize=100_000)(optional("snowballstemmer").stemmer("english").stemWord)


def features_of(examples: Sequence[Example], model: Entailment, resources: Resources) -> list[Features]:
    """Of each response. `model`'s probability of support stands for the reranker's relevance."""
    settings = {"embedder": MINILM, "smoothing": SMOOTHING, "chunk": CHUNK_WORDS, "reranked": RERANKED}
    words = partial(compare, resources=resources)
    compared = resources.measured("ragulator-words", settings, examples, Compared, words)
    nearest = {key_of(example): one.nearest for example, one in zip(examples, compared, strict=True)}
    settings |= {"entailment": model.name}
    chunks = partial(rerank, nearest=nearest, model=model)
    relevances = resources.measured("ragulator-relevance", settings, examples, Floats, chunks)
    return [
        Features(one.spans, np.column_stack([one.numbers, relevance]))
        for one, relevance in zip(compared, relevances, strict=True)
    ]


def compare(group: Sequence[Example], resources: Resources) -> list[Compared]:
    """Of responses to one source, whose passages are counted and embedded once."""
    context = context_sentences(group[0])
    chunks = chunks_of(group[0].passages, CHUNK_WORDS)
    counts = Context.of(context)
    texts = [sentences_of(example.response) for example in group]
    vectors = resources.embedder([*context, *chunks, *(text for own in texts for text in own)])
    known, wider, rest = np.split(vectors, [len(context), len(context) + len(chunks)])
    made = []
    for example, own, queries in zip(group, texts, split(rest, texts), strict=True):
        spans = np.array(sentences_in(example.response or ""))
        numbers = [
            (counts.precision(words), counts.unigram_perplexity(words), counts.bigram_perplexity(words))
            for words in map(stems, own)
        ]
        nearest = np.argsort(-(queries @ wider.T), axis=1, kind="stable")[:, :RERANKED]
        similarity = (queries @ known.T).max(axis=1)
        made.append(Compared(spans, np.column_stack([numbers, similarity]), nearest))
    return made


def rerank(
    group: Sequence[Example], nearest: Mapping[str, NDArray[np.intp]], model: Entailment
) -> list[Floats]:
    """The highest relevance (S,) of the chunks of each example's sentences, which `nearest` has by its key;
    all pairs are read together."""
    chunks = chunks_of(group[0].passages, CHUNK_WORDS)
    chosen = [nearest[key_of(example)] for example in group]
    pairs = [
        (chunks[k], text)
        for example, rows in zip(group, chosen, strict=True)
        for text, row in zip(sentences_of(example.response), rows, strict=True)
        for k in row
    ]
    parts = np.split(model(pairs), np.cumsum([rows.size for rows in chosen])[:-1])
    return [part.reshape(rows.shape).max(axis=1) for part, rows in zip(parts, chosen, strict=True)]


# What classifiers learn from.

SENTENCES = 4  # drawn of each response for a simulated one, at most
BREAK = "\n\n"  # between them
CASE = "Numbered sentences:\n{context}\n\nStatement: {sentence}\n\n"
"""The context comes first: what the questions about one source share is read once."""
QUESTION = (
    "Which of the numbered sentences support the statement? Reply with nothing but their numbers, separated "
    'by commas, or with the word "none" if there is none. For example: 2, 5'
)
REPLY_TOKENS = 24
NONE = "none"
_NUMBERS = re.compile(r"\d+(\s*,\s*\d+)*")
Source = Literal["simulated", "annotated", "prompted"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSentences:
    """P sentences beside contexts: `inputs` (P, 5), `labels` (P,), True for out of context, and `groups` (P,)
    that no fold splits. `group_of` (R,) are the groups of the responses that they were made of."""

    inputs: Floats
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    group_of: NDArray[np.str_]


def from_simulated(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """Sentences beside their own context count as in context, be they annotated or not: labels are not
    looked at. Beside another's they are out of it."""
    pairs = simulated(examples, resources.seed)
    far = features_of([pair.elsewhere for pair in pairs], model, resources)
    inputs = [one.numbers[pair.own] for one, pair in zip(features, pairs, strict=True)]
    couples = np.array([pair.couple for pair in pairs])
    return LabelledSentences(
        np.concatenate([*inputs, *(one.numbers for one in far)]),
        np.repeat([False, True], [sum(map(len, inputs)), sum(len(one.numbers) for one in far)]),
        np.repeat(np.tile(couples, 2), [*map(len, inputs), *(len(one.numbers) for one in far)]),
        couples,
    )


def from_spans(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """A sentence that shares a character with an annotated span is out of context."""
    return _labelled(examples, features, [annotated_sentences(example).astype(float) for example in examples])


def from_replies(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """By what a model replied; sentences without a usable reply are left out."""
    return _labelled(examples, features, prompted_labels(examples, resources))


SOURCES = {"simulated": from_simulated, "annotated": from_spans, "prompted": from_replies}


def _labelled(
    examples: Sequence[Example], features: Sequence[Features], out: Sequence[Floats]
) -> LabelledSentences:
    sources = np.array([example.source for example in examples])
    flags = np.concatenate(out)
    known = np.isfinite(flags)
    return LabelledSentences(
        np.concatenate([one.numbers for one in features])[known],
        flags[known] == 1,
        np.repeat(sources, [len(one) for one in out])[known],
        sources,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Sentences of a response: their numbers `own` (at most `SENTENCES`), and `elsewhere`, a response that
    has these sentences and no others, to the question of another source of its `couple`."""

    couple: str
    own: NDArray[np.intp]
    elsewhere: Example


def simulated(examples: Sequence[Example], seed: int) -> list[Simulated]:
    """One of each response. Raises `InputError` unless there are two sources."""
    context = {example.source: example for example in examples}
    couple_of = {source: couple for couple in couples(context, seed) for source in couple}
    generator = np.random.default_rng(seed)
    made = []
    for example in examples:
        couple = couple_of[example.source]
        lender = couple[(couple.index(example.source) + 1) % len(couple)]
        texts = sentences_of(example.response)
        # A line of code is one sentence, and may be two by itself.
        alone = [k for k, text in enumerate(texts) if sentences_of(text) == [text]]
        own = np.sort(generator.permutation(np.array(alone, dtype=np.intp))[:SENTENCES])
        while sentences_of(joined := BREAK.join(texts[k] for k in own)) != [texts[k] for k in own]:
            own = own[:-1]
        if not len(own):  # none can stand by itself: the first one, in its pieces
            own, joined = np.zeros(1, dtype=np.intp), texts[0]
        elsewhere = context[lender].with_response(joined)
        made.append(Simulated(" and ".join(couple), own, elsewhere))
    return made


def couples(sources: Iterable[str], seed: int) -> list[tuple[str, ...]]:
    """Distinct sources drawn two by two; three of them go together where their number is odd.

    Raises `InputError` unless there are two.
    """
    order = np.random.default_rng(seed).permutation(sorted(sources))
    if len(order) < 2:
        raise InputError("sentences out of context need the passages of another source, and there is none")
    return [tuple(part.tolist()) for part in np.array_split(order, len(order) // 2)]


def prompted_labels(examples: Sequence[Example], resources: Resources) -> list[Floats]:
    """Of each response's sentences: 1 where no sentence of the context supports it, 0 where one does, and NaN
    where no reply could be read."""
    chat = resources.chat
    settings = {
        "chat": chat.name,
        "prompts": [CASE, QUESTION],
        "tries": f"{TRIES}, {REPLY_TOKENS}, {RETRY_TEMPERATURE}",
    }
    return resources.measured("ragulator-labels", settings, examples, Floats, lambda group: ask(group, chat))


def ask(group: Sequence[Example], chat: Chat) -> list[Floats]:
    """About responses to one source, all their sentences together."""
    context = context_sentences(group[0])
    numbered = "\n".join(f"{k}. {sentence}" for k, sentence in enumerate(context, start=1))
    texts = [sentences_of(example.response) for example in group]
    messages = [CASE.format(context=numbered, sentence=text) + QUESTION for own in texts for text in own]
    found = asked_until_read(messages, chat, partial(read_indices, count=len(context)), REPLY_TOKENS)
    out = np.array([np.nan if one is None else float(not one) for one in found])
    return split(out, texts)


def read_indices(reply: str, count: int) -> tuple[int, ...] | None:
    """The numbers, each from 1 to `count`; () for "none". None where the reply is anything else."""
    text = reply.strip().removesuffix(".").lower()
    if text == NONE:
        return ()
    if not _NUMBERS.fullmatch(text):
        return None
    numbers = tuple(int(one) for one in text.split(","))
    return numbers if all(1 <= number <= count for number in numbers) else None


# Classifiers of sentences.

Classifier = Literal["random forest", "LightGBM"]

FOREST_TREES, FOREST_DEPTHS = (100, 325, 550, 775, 1000), (1, 2, 3, 4, 5)
BOOSTED_TREES, BOOSTED_DEPTHS, LEAVES, SUBSAMPLES = (60, 100, 200), (2, 4, -1), (4, 10, 31), (0.8, 1.0)
"""Table 5: of LightGBM the depth (-1: no limit), leaves of a tree, and the part of the rows that each learns
from."""


@dataclass(frozen=True, slots=True)
class Ragulator:
    """`classifiers` are candidates on sentences whose labels come from `labels`; calibration and threshold
    come from labelled responses. All learn from rows that the cross-encoder has not seen."""

    facts: Facts
    classifiers: tuple[Classifier, ...]
    labels: Source = "simulated"

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        """Raises `InputError` where there are too few sources, or a library is missing. Where a model was
        asked for labels and too few of its replies can be used, nothing is learned or gets a score."""
        trained = entailment_of(rows, resources)
        encoder, unseen = trained.model, np.flatnonzero(trained.unseen)
        own = rows.select(unseen)
        features = features_of(own.examples, encoder, resources)
        sentences = SOURCES[self.labels](own.examples, features, encoder, resources)
        candidates = candidates_on(self.classifiers, sentences.inputs, resources.seed)
        every = np.arange(len(sentences.labels))
        try:
            best, _ = chosen(candidates, sentences.labels, sentences.groups, every, resources.seed)
        except InputError as error:
            sources = len(set(own.groups))
            if self.labels != "prompted" or sources < CALIBRATION_FOLDS:
                pairs = ", and a simulated pair takes two" if self.labels == "simulated" else ""
                raise InputError(
                    f"{sources} sources are fresh to the cross-encoder{pairs}: {error}; extract more sources"
                ) from error
            unknown = np.full(len(own), np.nan)
            calibration = Calibration.of(unknown, own.labels, own.generators, unseen)

            def silent(rows: Rows, _: Resources) -> Reading:
                return Reading(np.full(len(rows), np.nan))

            return Fitted(NOTHING, silent, calibration, None)
        outside = outside_scores(best.estimator, sentences, [one.numbers for one in features], resources.seed)
        parts = [PartScores(one.spans, scores) for one, scores in zip(features, outside, strict=True)]
        model = fit(best.estimator, sentences.inputs, sentences.labels, sentences.groups)

        def read(rows: Rows, resources: Resources) -> Reading:
            features = features_of(rows.examples, encoder, resources)
            inputs = [one.numbers for one in features]
            scores = split(margin_of(model, np.concatenate(inputs))[0], inputs)
            found = [PartScores(one.spans, own) for one, own in zip(features, scores, strict=True)]
            return Reading(response_scores(found), found)

        return Fitted(
            best.label + (f", {len(every)} sentences labelled" if self.labels == "prompted" else ""),
            read,
            Calibration.of(response_scores(parts), own.labels, own.generators, unseen),
            threshold_of(parts, own.examples),
        )


def candidates_on(classifiers: Sequence[Classifier], inputs: Floats, seed: int) -> list[Candidate]:
    """Every candidate of the grids. Raises `InputError` where LightGBM is wanted and not installed."""
    made = []
    for classifier in classifiers:
        grid = _forests(seed) if classifier == "random forest" else _boosted(seed)
        made += [Candidate("", classifier, settings, model, inputs) for settings, model in grid.items()]
    return made


def outside_scores(
    estimator: Any, sentences: LabelledSentences, inputs: Sequence[Floats], seed: int
) -> list[Floats]:
    """Scores of each response's sentences (S, 5) by a model that learned from no sentence of its group.

    Raises `InputError` where there are too few groups for folds.
    """
    folds = grouped_folds(sentences.labels, sentences.groups, CALIBRATION_FOLDS, seed)
    fold_of = {group: k for k, (_, test) in enumerate(folds) for group in sentences.groups[test]}
    # No fold learned from a group that has no labelled sentence: any will do.
    places = np.array([fold_of.get(group, 0) for group in sentences.group_of])
    owner = np.repeat(places, [len(one) for one in inputs])
    every, scores = np.concatenate(inputs), np.zeros(len(owner))
    for k, (train, _) in enumerate(folds):
        if (own := owner == k).any():
            model = fit(estimator, sentences.inputs[train], sentences.labels[train], sentences.groups[train])
            scores[own] = margin_of(model, every[own])[0]
    return split(scores, inputs)


def _forests(seed: int) -> dict[str, Any]:
    return {
        f"{trees} trees, depth {depth}": RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        for trees, depth in product(FOREST_TREES, FOREST_DEPTHS)
    }


def _boosted(seed: int) -> dict[str, Any]:
    lightgbm = optional("lightgbm")
    return {
        f"{trees} trees, depth {depth}, {leaves} leaves, {part:g} of the rows": lightgbm.LGBMClassifier(
            n_estimators=trees,
            max_depth=depth,
            num_leaves=leaves,
            subsample=part,
            subsample_freq=1,  # without it, all rows are drawn
            random_state=seed,
            deterministic=True,
            n_jobs=1,
            verbose=-1,
        )
        for trees, depth, leaves, part in product(BOOSTED_TREES, BOOSTED_DEPTHS, LEAVES, SUBSAMPLES)
    }


def response_scores(parts: Sequence[PartScores]) -> Floats:
    """The highest score of a sentence of each response, (R,)."""
    return np.array([one.scores.max() for one in parts])


def _facts(which: str, training: str, asks: bool = False) -> Facts:
    return Facts(
        f"RAGulator ({which})",
        "arXiv 2411.03920",
        "text",
        training,
        "MiniLM (22M), cross-encoder trained in the folds" + ("; the judge's" if asks else ""),
        slow=asks,
        modules=("lightgbm", "snowballstemmer", MINILM_PACKAGE),
        choices=("entailment", "judge") if asks else ("entailment",),
    )


SIMULATED = "simulated pairs; cross-encoder: annotated spans"
RAGULATOR_FOREST = Ragulator(_facts("random forest", SIMULATED), ("random forest",))
RAGULATOR_LIGHTGBM = Ragulator(_facts("LightGBM", SIMULATED), ("LightGBM",))
RAGULATOR_ANNOTATED = Ragulator(_facts("annotated", SPANS), ("random forest", "LightGBM"), "annotated")
RAGULATOR_PROMPTED = Ragulator(
    _facts("prompted", "a model's labels; cross-encoder: annotated spans", asks=True),
    ("random forest", "LightGBM"),
    "prompted",
)
