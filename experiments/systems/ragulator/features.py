"""The five features of a response's sentences against its context (arXiv 2411.03920)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from experiments.systems.encoders.entailment import Entailment
from experiments.systems.encoders.running import chunks_of
from experiments.systems.encoders.weights import MINILM
from experiments.systems.entailment import CHUNK_WORDS
from experiments.systems.facts import optional
from experiments.systems.ngrams import NGrams, Words
from experiments.systems.resources import Resources
from experiments.systems.scoring import split
from lrp4rag.example import Example
from lrp4rag.training.store import key_of
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

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Of S sentences, what needs no cross-encoder: their characters `spans` (S, 2), all `FEATURES` but the
    last in `numbers` (S, 4), and the chunks to be given to it in `nearest` (S, at most `RERANKED`)."""

    spans: NDArray[np.intp]
    numbers: Numbers
    nearest: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """The highest of the reranked chunks, (S,), in [0, 1]."""

    values: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """`spans` (S, 2) are a response's sentences, `numbers` (S, 5) their `FEATURES`."""

    spans: NDArray[np.intp]
    numbers: Numbers


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
    relevances = resources.measured("ragulator-relevance", settings, examples, Relevance, chunks)
    return [
        Features(one.spans, np.column_stack([one.numbers, relevance.values]))
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
) -> list[Relevance]:
    """`nearest` has the chunks of each example's sentences by its key; all pairs are read together."""
    chunks = chunks_of(group[0].passages, CHUNK_WORDS)
    chosen = [nearest[key_of(example)] for example in group]
    pairs = [
        (chunks[k], text)
        for example, rows in zip(group, chosen, strict=True)
        for text, row in zip(sentences_of(example.response), rows, strict=True)
        for k in row
    ]
    parts = np.split(model(pairs), np.cumsum([rows.size for rows in chosen])[:-1])
    return [Relevance(part.reshape(rows.shape).max(axis=1)) for part, rows in zip(parts, chosen, strict=True)]
