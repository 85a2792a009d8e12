"""Models of entailment, used alone: as AlignScore (arXiv 2305.16739), MiniCheck (arXiv 2404.10774) and HHEM
are, and as RAGulator's encoder is (arXiv 2411.03920).

A response is split into sentences and the context into windows; a sentence has its best window's support.
RAGulator reads the least support of a sentence; for the others, the mean of the sentences and the least of
them are candidates. The model is published, or trained in the folds on pairs of a chunk and a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.entailment import Entailment, Pair, load_entailment
from experiments.systems.encoders.running import chunks_of, encoded_pair
from experiments.systems.encoders.training import Item, Training
from experiments.systems.encoders.weights import MINILM_PACKAGE
from experiments.systems.facts import SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import NO_PARTS, PartScores, split
from experiments.systems.trained import model_of_fold, train_encoder
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences
from lrp4rag.training.rows import Rows
from lrp4rag.util.sentences import sentences_in, sentences_of

TRAINING = Training(epochs=2, rate=1e-4)
RAGULATOR = Training(epochs=3, rate=5e-6, head_rate=2e-5, batch=16, warmup=0.1)
"""Of RAGulator's encoders (arXiv 2411.03920, Table 6), which are 20 to 25 times as large."""
LONGEST = 256  # tokens of a pair in training
CHUNK_WORDS = 100
SHORTEST = 4  # words of a sentence: headings and list numbers are left out
UNRELATED = 0.5  # pairs with another source's chunk, as a part of the supported ones
LABELS = {0: "not supported", 1: "supported"}
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
    choices = resources.choices
    load = partial(load_entailment, device=choices.device)
    train = partial(train_entailment, training=training)
    return model_of_fold(rows, resources, settings, train, load, published=choices.entailment)


def train_entailment(
    examples: list[Example], resources: Resources, folder: Path, *, training: Training = TRAINING
) -> None:
    """Train on labelled examples and save model and tokenizer to a folder."""
    from transformers import AutoModelForSequenceClassification

    def items_of(_model: Any, tokenizer: Any) -> list[Item]:
        return [
            dict(encoded_pair(tokenizer, *pair, LONGEST)) | {"labels": int(supported)}
            for pair, supported in training_pairs(examples, resources.embedder, resources.seed)
        ]

    kind, label = AutoModelForSequenceClassification, "training entailment"
    names = {"id2label": LABELS, "label2id": {name: k for k, name in LABELS.items()}}
    train_encoder(kind, items_of, examples, resources, folder, training, label, config=names)


def training_pairs(examples: list[Example], embedder: Embedder, seed: int) -> list[tuple[Pair, bool]]:
    """Each sentence with the chunk of its passages that is most like it, and whether that supports it: not
    where an annotated span touches it. As many supported ones are drawn as there are others; half as many
    again are paired with the chunk of another source, which does not support them (RAGulator's way, arXiv
    2411.03920)."""
    generator = np.random.default_rng(seed)
    found = [(*one, example) for example in examples for one in sentences_with_flags(example)]
    sentences, owners = [text for text, _, _ in found], [example for _, _, example in found]
    flagged = np.array([flag for _, flag, _ in found], dtype=bool)
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
    """Of each sentence's chunks the one with the most similar embedding."""
    every = sorted({chunk for own in chunks for chunk in own})
    place = {chunk: k for k, chunk in enumerate(every)}
    vectors, queries = embedder(every), embedder(sentences)
    found = []
    for query, own in zip(queries, chunks, strict=True):
        likeness: NDArray[np.float32] = vectors[[place[chunk] for chunk in own]] @ query
        found.append(own[int(likeness.argmax())])
    return found


def windows_of(example: Example) -> list[str]:
    """Of all passages as one text: a window may begin in one and end in the next."""
    return chunks_of(["\n".join(example.passages)], WINDOW_WORDS)


def measure_group(group: Sequence[Example], model: Entailment) -> list[Measurement]:
    """Of responses to one source; all pairs are read together. A sentence's score is the smallest of 1 -
    support over the windows, a response's the highest of its sentences."""
    windows = windows_of(group[0])
    texts = [sentences_of(example.response) for example in group]
    support = model([(window, text) for own in texts for text in own for window in windows])
    doubts = (1 - support.reshape(-1, len(windows))).min(axis=1)
    made = []
    for example, part in zip(group, split(doubts, texts), strict=True):
        spans = np.array(sentences_in(example.response or ""))
        made.append(Measurement(np.array([part.max()]), PartScores(spans, part)))
    return made


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
    found = read_windows(rows, resources, model)
    return [replace(one, numbers=support_of((one.suspicion or NO_PARTS).scores)) for one in found]


def entailment_facts(title: str, paper: str, training: str = SPANS) -> Facts:
    return Facts(
        title,
        paper,
        "text",
        training,
        "MiniLM (22M), cross-encoder trained in the folds",
        choices=("entailment",),
        modules=(MINILM_PACKAGE,),
    )


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
