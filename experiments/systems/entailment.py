"""Models of entailment, used alone: as AlignScore (arXiv 2305.16739), MiniCheck (arXiv 2404.10774) and HHEM
are, and as RAGulator's encoder is (arXiv 2411.03920).

A response is split into sentences and the context into windows; a sentence has its best window's support.
RAGulator reads the least support of a sentence; for the others, the mean of the sentences and the least of
them are candidates. The model is published, or trained in the folds on pairs of a chunk and a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders import (
    MINILM,
    MINILM_PACKAGE,
    Embedder,
    Entailment,
    Pair,
    Training,
    chunks_of,
    encoded_pair,
    finetune,
    load_encoder,
    load_entailment,
    seeded,
)
from experiments.systems.facts import SPANS, Facts
from experiments.systems.resources import SEEN, Resources
from experiments.systems.scoring import NO_PARTS, PartScores, split
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences
from lrp4rag.training.rows import Rows
from lrp4rag.util.files import write_atomically
from lrp4rag.util.sentences import sentences_in, sentences_of

TRAINING = Training(epochs=2, rate=1e-4)
RAGULATOR = Training(epochs=3, rate=5e-6, head_rate=2e-5, batch=16, warmup=0.1)
"""Of RAGulator's encoders (arXiv 2411.03920, Table 6), which are 20 to 25 times as large."""
LONGEST = 256  # tokens of a pair in training
CHUNK_WORDS = 100
SHORTEST = 4  # words of a sentence: headings and list numbers are left out
UNRELATED = 0.5  # pairs with another source's chunk, as a part of the supported ones
WINDOW_WORDS = 220  # with a sentence of the response these are fewer than 512 tokens


def entailment_of(rows: Rows, resources: Resources) -> TrainedModel[Entailment]:
    """The published model that was chosen, or MiniLM trained on annotated sentences of the training rows."""
    return _trained(rows, resources, "entailment", TRAINING)


def ragulator_encoder_of(rows: Rows, resources: Resources) -> TrainedModel[Entailment]:
    """Likewise, trained with the settings of RAGulator's encoders; a published one is taken as it is."""
    return _trained(rows, resources, "ragulator-encoder", RAGULATOR)


def _trained(rows: Rows, resources: Resources, kind: str, training: Training) -> TrainedModel[Entailment]:
    settings = {
        "kind": kind,
        "training": asdict(training),
        "words": [CHUNK_WORDS, SHORTEST],
        "unrelated": UNRELATED,
        "tokens": LONGEST,
    }
    load = partial(load_entailment, device=resources.choice.device)

    def train(examples: list[Example], folder: Path) -> None:
        train_entailment(examples, resources, folder, training)

    published = resources.choice.entailment
    return TrainedModel(*resources.trained(rows, settings, train, load, published=published))


def train_entailment(
    examples: Sequence[Example], resources: Resources, folder: Path, training: Training = TRAINING
) -> None:
    """Train MiniLM on labelled examples and save model and tokenizer to a folder."""
    from transformers import AutoModelForSequenceClassification

    model, tokenizer = new_head(AutoModelForSequenceClassification, resources, training)
    items = [
        dict(encoded_pair(tokenizer, *pair, LONGEST)) | {"labels": int(supported)}
        for pair, supported in training_pairs(examples, resources.embedder, resources.seed)
    ]
    finetune(model, tokenizer, items, training).save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    write_atomically(folder / SEEN, json.dumps(sorted({each.content_hash for each in examples})) + "\n")


def new_head(kind: Any, resources: Resources, training: Training) -> tuple[Any, Any]:
    """MiniLM under a new head of two labels, and its tokenizer; `kind` is the class of transformers."""
    with seeded(resources.seed):  # the head is drawn
        options: dict[str, Any] = {
            "num_labels": 2,
            "attention_probs_dropout_prob": training.attention_dropout,
        }
        return load_encoder(MINILM, kind, device=resources.choice.device, **options)


def training_pairs(examples: Sequence[Example], embedder: Embedder, seed: int) -> list[tuple[Pair, bool]]:
    """Each sentence with the chunk of its passages that is most like it, and whether that supports it: not
    where an annotated span touches it. As many supported ones are drawn as there are others; half as many
    again are paired with the chunk of another source, which does not support them (RAGulator's way, arXiv
    2411.03920)."""
    generator = np.random.default_rng(seed)
    every = [(*pair, example) for example in examples for pair in sentences_with_flags(example)]
    sentences, owners = [text for text, _, _ in every], [example for _, _, example in every]
    flagged = np.array([flag for _, flag, _ in every], dtype=bool)
    wrong = np.flatnonzero(flagged)
    right = generator.permutation(np.flatnonzero(~flagged))[: len(wrong)]
    chunks = {example.content_hash: chunks_of(example.passages, CHUNK_WORDS) for example in examples}
    drawn = np.sort(np.concatenate([wrong, right]))
    nearest = nearest_chunks(
        [sentences[k] for k in drawn], [chunks[owners[k].content_hash] for k in drawn], embedder
    )
    pairs = [((chunk, sentences[k]), not flagged[k]) for k, chunk in zip(drawn, nearest, strict=True)]
    of_source = {example.source: chunks[example.content_hash] for example in examples}
    names = sorted(of_source)
    for k in right[: int(UNRELATED * len(right))] if len(names) > 1 else ():
        other = names[(names.index(owners[k].source) + generator.integers(1, len(names))) % len(names)]
        pairs.append(((str(generator.choice(of_source[other])), sentences[k]), False))
    return pairs


def sentences_with_flags(example: Example) -> list[tuple[str, bool]]:
    """The response's sentences, and whether an annotated span touches them; very short ones are left out."""
    text = example.response or ""
    pairs = zip(sentences_in(text), annotated_sentences(example), strict=True)
    return [
        (text[start:end], bool(flag))
        for (start, end), flag in pairs
        if len(text[start:end].split()) >= SHORTEST
    ]


def nearest_chunks(sentences: list[str], chunks: list[list[str]], embedder: Embedder) -> list[str]:
    """For each sentence the one of its chunks with the most similar embedding."""
    every = sorted({chunk for group in chunks for chunk in group})
    place = {chunk: k for k, chunk in enumerate(every)}
    vectors, queries = embedder(every), embedder(sentences)
    nearest = []
    for query, group in zip(queries, chunks, strict=True):
        similarity: NDArray[np.float32] = vectors[[place[chunk] for chunk in group]] @ query
        nearest.append(group[int(similarity.argmax())])
    return nearest


def measure_group(group: Sequence[Example], model: Entailment) -> list[Measurement]:
    """Of responses to one source; all pairs are read together. A sentence's score is the smallest of 1 -
    support over the windows of all passages as one text, a response's the highest of its sentences."""
    windows = chunks_of(["\n".join(group[0].passages)], WINDOW_WORDS)
    texts = [sentences_of(example.response) for example in group]
    support = model([(window, text) for sentences in texts for text in sentences for window in windows])
    doubts = (1 - support.reshape(-1, len(windows))).min(axis=1)
    return [
        Measurement(np.array([part.max()]), PartScores(np.array(sentences_in(example.response or "")), part))
        for example, part in zip(group, split(doubts, texts), strict=True)
    ]


def read_windows(rows: Rows, resources: Resources, model: Entailment) -> list[Measurement]:
    """RAGulator's: one number, the highest score of a sentence."""
    settings = {"entailment": model.name, "words": WINDOW_WORDS}
    group = partial(measure_group, model=model)
    return resources.measured("ragulator-windows", settings, rows.examples, Measurement, group)


def support_of(doubts: np.ndarray) -> np.ndarray:
    """The mean and the least support, from 1 - the best window's support of each sentence (S,)."""
    return np.array([1 - doubts.mean(), 1 - doubts.max()])


def measure_support(rows: Rows, resources: Resources, model: Entailment) -> list[Measurement]:
    """The two numbers of `support_of`, of windows that are read as RAGulator reads them."""
    measurements = read_windows(rows, resources, model)
    return [replace(each, numbers=support_of((each.suspicion or NO_PARTS).scores)) for each in measurements]


def entailment_facts(title: str, paper: str, training: str = SPANS) -> Facts:
    weights = "MiniLM (22M), cross-encoder trained in the folds"
    choices, modules = ("entailment",), (MINILM_PACKAGE,)
    return Facts(title, paper, "text", training, weights, modules=modules, choices=choices)


RAGULATOR_ENCODER = Measured(
    entailment_facts("RAGulator (encoder)", "arXiv 2411.03920"),
    read_windows,
    ("highest probability of being out of context",),
    marks=True,
    model_of=ragulator_encoder_of,
)
ENTAILMENT = Measured(
    entailment_facts("Entailment of sentences (HHEM, MiniCheck, AlignScore)", "arXiv 2305.16739, 2404.10774"),
    measure_support,
    ("mean support of sentences", "least support of a sentence"),
    alternatives=True,
    marks=True,
    model_of=entailment_of,
)
