"""`PublishedComparer`: a published model in the comparer's place, on the comparer's scale by a file of its
`Calibration`.

A model is a cross-encoder of entailment, a classifier of grounding, or a classifier of tokens. It reads the
premise, then the claim alone: models of entailment learned from claims without a lead, and a question among
the evidence would support what only it supposes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from lrp4rag.reader.comparer import ROOM, EncodedPair, Entailment, EntailmentModel, Pair
from lrp4rag.reader.placement import AUTO
from lrp4rag.reader.reader import check_device
from lrp4rag.reader.weights import (
    file_hash,
    load_whole,
    model_folder,
    pretrained,
    reason,
    require_kernels,
    weights_hash,
)
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.files import absolute_name, write_atomically
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.strict_json import read_record, require_seal, sealed
from lrp4rag.util.text import one_line
from lrp4rag.util.types import Bounded, first_fault

LONGEST = 512
"""Tokens of a pair, at most, whatever the model's own limit."""
CLOSE = 1e-3
"""What log odds of a contradiction are below those of no support, at least."""
Meaning = Literal["supported", "contradicted", "not told", "unsupported"]
"""What an output says of a claim; the last: contradicted or not told."""
NAMES: dict[Meaning, str] = {
    "supported": "entailment entailed entails entail supported supports support consistent grounded factual "
    "faithful correct",
    "contradicted": "contradiction contradicted contradictory contradicts contradict refuted refutes refute",
    "not told": "neutral nei not_enough_info not_enough_information",
    "unsupported": "unsupported not_supported not_entailment not_entailed non_entailment inconsistent "
    "not_consistent hallucinated hallucination hallucinatory ungrounded not_grounded not_factual nonfactual "
    "unfaithful not_faithful incorrect",
}
"""The names that published models give their outputs, by their meanings."""
_MEANINGS: dict[str, Meaning] = {
    name: meaning for meaning, names in NAMES.items() for name in (meaning.replace(" ", "_"), *names.split())
}
_KINDS = ("ForSequenceClassification", "ForTokenClassification")
_TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "spm.model", "tokenizer.model")
_SETTINGS = ("config.json", "tokenizer_config.json", *_TOKENIZERS)
"""Files beside the weights that decide what a model computes, where they are there."""
HOW = "make one with: lrp4rag calibrate MODEL --out FILE"

Text = Annotated[str, Field(max_length=1000)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scale(_Frozen):
    """From a model's log odds to the comparer's: these times `slope`, and `offset`."""

    slope: Annotated[Bounded, Field(gt=0)] = 1.0
    offset: Bounded = 0.0

    def __call__(self, log_odds: Any) -> Any:
        return self.slope * log_odds + self.offset


class Scales(_Frozen):
    """Of what a model gives: log odds that a claim is not supported, that it is contradicted, and that its
    most suspect word is wrong."""

    unsupported: Scale = Scale()
    contradicted: Scale = Scale()
    words: Scale = Scale()


class Calibration(_Frozen):
    """A file of `lrp4rag calibrate`: a model by its name, `revision` and hashes, what its outputs mean, and
    the scales to the `comparer` (its digest). `seen` are hashes of the prompts that they were fitted on, and
    `figures` how well it does there."""

    format: Literal[1] = 1
    model: Text
    revision: Text = ""
    weights: Hash
    settings: Hash
    labels: Annotated[tuple[Meaning, ...], Field(min_length=1, max_length=100)]
    comparer: Hash
    scales: Scales
    seen: tuple[Annotated[str, Field(pattern="^[0-9a-f]{16,64}$")], ...]
    figures: dict[str, Any]
    package: Text
    sha256: str = ""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file; raises `InputError` for any other, and for one that was changed."""
        what = "a comparer's calibration"
        try:
            record = read_record(path, what)
        except OSError as error:
            words = f"cannot read {what} ({error.strerror}), and a model's name is none; {HOW}"
            raise InputError(words, path=path) from error
        except InputError as error:
            raise InputError(f"{error.reason}; {HOW}", path=path) from error
        try:
            calibration = cls.model_validate(record)
        except ValidationError as error:
            fault, field = first_fault(error)
            raise InputError(f"not {what}: {fault}; {HOW}", path=path, field=field) from error
        require_seal(record, path, "the calibration")
        return calibration

    def write(self, path: Path) -> None:
        """Write the file, atomically."""
        record = sealed(self.model_dump(mode="json", exclude={"sha256"}))
        write_atomically(path, json.dumps(record, indent=2, allow_nan=False) + "\n")

    def load(self, device: str | None = None) -> PublishedComparer:
        """Load the model; raises `InputError` where it is not there, or is another than was calibrated."""
        return PublishedComparer.load(self.model, self.labels, device, self)


@dataclass(frozen=True, slots=True)
class Published:
    """Who made a comparer's numbers: a model's name, its revision on the hub, and the hash of its weights."""

    name: str
    revision: str
    weights: str

    def __str__(self) -> str:
        at = f" at {self.revision[:12]}" if self.revision else ""
        return f"{one_line(self.name, 100)}{at} ({self.weights[:12]})"


class PublishedComparer(EntailmentModel):
    """A published model with a tokenizer that says of pairs what its outputs mean (`labels`).

    `place` is its hub id or folder. Without a `calibration` it is on its own scale. A claim is read in pieces
    of `comparer.PIECE` characters, and of a premise as many characters go to the tokenizer as the window can
    hold, each of its tokens the vocabulary's longest.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        labels: Sequence[Meaning],
        published: Published,
        *,
        place: str = "",
        settings: str = "",
        calibration: Calibration | None = None,
    ) -> None:
        self.scales = Scales() if calibration is None else calibration.scales
        digest = json_hash([published.weights, settings, list(labels), self.scales.model_dump()])
        super().__init__(tokenizer, () if calibration is None else calibration.seen, digest)
        self.model, self.labels, self.published = model, tuple(labels), published
        self.place, self.settings = place, settings
        self.of_tokens = type(model).__name__.endswith(_KINDS[1])
        config = model.config
        self._typed = (getattr(config, "type_vocab_size", 0) or 0) > 1
        self._longest = min(tokenizer.model_max_length, LONGEST)
        if positions := getattr(config, "max_position_embeddings", None):
            # RoBERTa counts positions from behind that of its padding.
            before = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
            self._longest = min(self._longest, positions - before)
        self._most_characters = self._longest * max(map(len, tokenizer.get_vocab()))

    @classmethod
    def load(
        cls,
        name: str,
        labels: Sequence[str] = (),
        device: str | None = None,
        calibration: Calibration | None = None,
    ) -> Self:
        """Load a model by its hub id or folder. `labels` name its outputs in their order, by default its
        configuration does. `device` defaults to CUDA where there is one.

        Raises `InputError` for what is no such model or another than was calibrated, needs code of its own,
        has no safetensors, or does not name what its outputs mean.
        """
        import transformers

        shown = f"comparer '{one_line(name, 100)}'"
        if name.endswith(".gguf"):
            words = "a comparer is a classifier in safetensors, by a hub id or a folder, and no GGUF file is"
            raise InputError(f"cannot load {shown}: {words}")
        folder = model_folder(name, "comparer", (calibration and calibration.revision) or None)
        weights, settings = weights_hash(folder), settings_hash(folder)
        if calibration is not None and (weights, settings) != (calibration.weights, calibration.settings):
            raise InputError(
                f"{shown} is another model than was calibrated: its weights, configuration or tokenizer "
                "differ; calibrate it again"
            )
        head, device = _head_of(folder), check_device(None if device == AUTO else device)
        try:
            require_kernels(folder)
            tokenizer = pretrained(transformers.AutoTokenizer, folder)
            kind = getattr(transformers, f"AutoModel{head}")
            model = load_whole(str(folder), kind, use_safetensors=True, dtype=torch.float32)
        except Exception as error:  # transformers raises many kinds for folders it cannot read
            raise InputError(f"cannot load {shown}: {reason(error)}") from error
        if not any((folder / name).is_file() for name in _TOKENIZERS):  # transformers makes an empty one
            raise InputError(f"{shown} has no tokenizer among its files")
        if not tokenizer.is_fast or tokenizer.pad_token_id is None:
            raise InputError(f"the tokenizer of {shown} gives no character offsets, or pads nothing")
        config, place = model.config, absolute_name(name)
        names = labels or [
            str(config.id2label.get(number, f"LABEL_{number}")) for number in range(config.num_labels)
        ]
        revision = folder.name if folder.parent.name == "snapshots" else ""
        return cls(
            model.to(device).eval(),
            tokenizer,
            meanings_of(names, config.num_labels),
            Published(Path(name).name if Path(place).is_absolute() else name, revision, weights),
            place=place,
            settings=settings,
            calibration=calibration,
        )

    def _encode(self, pair: Pair) -> EncodedPair:
        tokenizer, premise = self.tokenizer, pair.premise[: self._most_characters]
        room = self._longest - tokenizer.num_special_tokens_to_add(pair=True)
        long = len(tokenizer(pair.claim, add_special_tokens=False, verbose=False)["input_ids"]) > room - ROOM
        encoding = tokenizer(
            premise,
            pair.claim,
            truncation="longest_first" if long else "only_first",
            max_length=self._longest,
            return_offsets_mapping=True,
            return_token_type_ids=True,
        )
        rows = self.model.get_input_embeddings().weight.shape[0]
        if max(encoding["input_ids"]) >= rows:
            raise InputError(f"the tokenizer of '{self.published}' gives tokens that its model does not have")
        offsets = np.array(encoding["offset_mapping"], dtype=np.intp).reshape(-1, 2)
        of_claim = np.array([text == 1 for text in encoding.sequence_ids()]) & (offsets[:, 1] > offsets[:, 0])
        tokens = np.flatnonzero(of_claim)
        return EncodedPair(encoding["input_ids"], encoding["token_type_ids"], [], tokens, offsets[tokens])

    def _entail(self, pairs: Sequence[EncodedPair], networks: tuple[int, ...]) -> list[Entailment]:
        batch = {"input_ids": [pair.ids for pair in pairs]}
        if self._typed:
            batch["token_type_ids"] = [pair.types for pair in pairs]
        padded = self.tokenizer.pad(batch, return_tensors="pt").to(self.model.device)
        with torch.inference_mode():
            logits = self.model(**padded).logits.cpu().double()
        if not torch.isfinite(logits).all():
            raise RelevanceError(f"no verdict: the comparer '{self.published}' gives NaN or Inf")
        wrong, denied = (array.numpy() for array in self._log_odds(logits))
        if not self.of_tokens:
            spans_of_claims = [np.array([[0, max(pair.spans[:, 1], default=1)]]) for pair in pairs]
            return [
                self._entailment(wrong[row], denied[row], spans, wrong[[row]])
                for row, spans in enumerate(spans_of_claims)
            ]
        return [
            self._entailment(
                max(wrong[row, pair.tokens], default=0.0),
                max(denied[row, pair.tokens], default=0.0),
                pair.spans,
                wrong[row, pair.tokens],
            )
            for row, pair in enumerate(pairs)
        ]

    def _log_odds(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log odds of no support and of a contradiction, of outputs in the last dimension: the
        same where no output is of contradictions alone. A single output is the log odds of its label."""
        if len(self.labels) == 1:
            alone = -logits[..., 0] if self.labels[0] == "supported" else logits[..., 0]
            return alone, alone

        def of(*meanings: Meaning) -> Tensor:
            return torch.logsumexp(logits[..., [label in meanings for label in self.labels]], -1)

        supported = of("supported")
        wrong = of("contradicted", "not told", "unsupported") - supported
        return wrong, of("contradicted") - supported if "contradicted" in self.labels else wrong

    def _entailment(
        self, wrong: float, denied: float, spans: NDArray[np.intp], words: NDArray[np.float64]
    ) -> Entailment:
        """Return what is made of a claim, on the comparer's scale, of log odds on the model's own."""
        wrong = float(self.scales.unsupported(wrong))
        denied = min(float(self.scales.contradicted(denied)), wrong - CLOSE)  # it is part of no support
        supported = -np.logaddexp(0.0, wrong)
        classes = supported + np.array([0.0, denied, wrong + np.log1p(-np.exp(denied - wrong))])
        return Entailment(classes.astype(np.float32), spans, self.scales.words(words).astype(np.float32))


def meanings_of(names: Sequence[str], outputs: int) -> tuple[Meaning, ...]:
    """Return what a model's outputs mean by their names. Raises `InputError` for unknown ones, and where none
    is of support, or all are."""
    how = 'say what its outputs are, in their order: --labels "supported,unsupported"'
    if len(names) != outputs:
        raise InputError(f"the model has {outputs} outputs and {len(names)} are named; {how}", field="labels")
    clean = ["_".join(name.lower().replace("-", " ").replace("_", " ").split()) for name in names]
    if clean == ["label_0"]:
        return ("supported",)
    for name, meaning in zip(names, clean, strict=True):
        if meaning not in _MEANINGS:
            words = f"'{one_line(name, 60)}' does not tell what an output means; {how}"
            raise InputError(f"{words} (known are {', '.join(get_args(Meaning))})", field="labels")
    meanings = tuple(_MEANINGS[name] for name in clean)
    if outputs > 1 and ("supported" not in meanings or set(meanings) == {"supported"}):
        raise InputError(f"one output must be of support and another of none; {how}", field="labels")
    return meanings


def settings_hash(folder: Path) -> str:
    """Hash the files beside the weights that decide what a model computes."""
    return json_hash({name: file_hash(folder / name) for name in _SETTINGS if (folder / name).is_file()})


def _head_of(folder: Path) -> str:
    """Return the kind of a model's head; raises `InputError` for another, and for code among its files."""
    records = [folder / name for name in ("config.json", "tokenizer_config.json")]
    for path in records:
        if path.is_file() and "auto_map" in read_record(path, "a model's configuration"):
            words = "it needs code that comes with its files, and lrp4rag runs none"
            raise InputError(words, path=path, field="auto_map")
    architectures = read_record(records[0], "a model's configuration").get("architectures")
    names: Iterable[Any] = architectures if isinstance(architectures, list) else ()
    for head in _KINDS:
        if any(isinstance(name, str) and name.endswith(head) for name in names):
            return head
    words = f"a comparer is a classifier of pairs or tokens (…{', …'.join(_KINDS)}), and this is none"
    raise InputError(words, path=records[0], field="architectures")
