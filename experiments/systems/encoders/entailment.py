"""`Entailment`: does a premise support a hypothesis? One interface for every model that answers that.

HHEM-2.1-Open and MiniCheck run without their authors' code: both are architectures on Flan-T5 that
transformers knows, and what their code adds is a prompt and where the answer is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from experiments.systems.encoders.running import outputs, tokens_read
from experiments.systems.encoders.weights import identified, load_encoder
from lrp4rag.util.errors import InputError

LONGEST, T5_LONGEST = 512, 2048  # tokens of a pair; T5 counts distances, not places

HHEM, FLAN = "vectara/hallucination_evaluation_model", "google/flan-t5-base"
HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\n"
    "Hypothesis: {hypothesis}"
)
MINICHECK = "lytang/MiniCheck-Flan-T5-Large"
MINICHECK_PROMPT = "predict: {premise}</s>{hypothesis}"
MINICHECK_ANSWERS = (3, 209)
"""Tokens of the first place of the answer: not supported, supported."""

Pair = tuple[str, str]
"""Premise and hypothesis."""

SUPPORT = ("entailment", "entail", "supported", "consistent", "factual", "aligned")
"""What the label of support is called."""
PICKLED = ("alignscore", "yzha/AlignScore")


class Entailment(Protocol):
    """Anything that gives the probability of support."""

    @property
    def name(self) -> str: ...

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """That each premise supports its hypothesis, (pairs,)."""


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A sequence classifier that reads premise and hypothesis together; `support` is the number of the label
    that means support, None for a single logit."""

    name: str
    model: Any
    tokenizer: Any
    support: int | None

    @classmethod
    def load(cls, name: str, device: str | None = None) -> CrossEncoder:
        """A hub id or a folder. Raises `InputError` for a model that needs code of its own, has pickled
        weights only, no trained head, or no label that means support."""
        from transformers import AutoModelForSequenceClassification

        model, tokenizer = load_encoder(name, AutoModelForSequenceClassification, device=device, whole=True)
        return cls(identified(name), model, tokenizer, support_label(model.config, name))

    @property
    def longest(self) -> int:
        """Tokens of a pair that are read."""
        return tokens_read(self.model.config, self.tokenizer, LONGEST)

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """What exceeds `longest` is cut off the longer one of a pair."""
        import torch

        found = np.zeros(len(pairs))
        if not pairs:
            return found
        encoded = self.tokenizer(
            *map(list, zip(*pairs, strict=True)), truncation=True, max_length=self.longest
        )
        for chosen, _, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            logits = output.logits.float()
            one = self.support is None
            shares = torch.sigmoid(logits[:, 0]) if one else torch.softmax(logits, -1)[:, self.support]
            found[chosen] = shares.cpu().numpy()
        return found


@dataclass(frozen=True, slots=True)
class T5Entailment:
    """`prompt` has places for premise and hypothesis. With `answers` the model writes, and the two tokens are
    compared at the first place; else it is a classifier whose second label is read at the first token."""

    name: str
    model: Any
    tokenizer: Any
    prompt: str
    answers: tuple[int, int] | None = None

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """That each premise supports its hypothesis, (pairs,)."""
        import torch

        found = np.zeros(len(pairs))
        if not pairs:
            return found
        texts = [self.prompt.format(premise=premise, hypothesis=text) for premise, text in pairs]
        encoded = self.tokenizer(texts, truncation=True, max_length=T5_LONGEST)
        for chosen, _, logits in outputs(self._logits, encoded, self.tokenizer, self.model.device):
            found[chosen] = torch.softmax(logits.float(), -1)[:, 1].cpu().numpy()
        return found

    def _logits(self, **batch: Any) -> Any:
        """Of "not supported" and "supported", (pairs, 2)."""
        import torch

        if self.answers is None:
            return self.model(**batch).logits[:, 0]
        start = self.model.config.decoder_start_token_id
        first = torch.full((len(batch["input_ids"]), 1), start, device=self.model.device)
        return self.model(**batch, decoder_input_ids=first).logits[:, 0][:, list(self.answers)]


def load_hhem(weights: str = HHEM, foundation: str = FLAN, device: str | None = None) -> T5Entailment:
    """HHEM-2.1-Open: a token classifier on Flan-T5-base, stored under the prefix "t5."."""
    from transformers import AutoConfig, T5ForTokenClassification

    from lrp4rag.reader.weights import pretrained

    config = pretrained(AutoConfig, foundation)
    config.num_labels = 2
    options = {"whole": True, "config": config, "key_mapping": {r"^t5\.": ""}}
    kind = T5ForTokenClassification
    model, tokenizer = load_encoder(weights, kind, tokenizer=foundation, device=device, **options)
    return T5Entailment("hhem", model, tokenizer, HHEM_PROMPT)


def load_minicheck(weights: str = MINICHECK, device: str | None = None) -> T5Entailment:
    """MiniCheck-Flan-T5-Large (arXiv 2404.10774), which writes its answer."""
    from transformers import AutoModelForSeq2SeqLM

    model, tokenizer = load_encoder(weights, AutoModelForSeq2SeqLM, device=device, whole=True)
    return T5Entailment("minicheck", model, tokenizer, MINICHECK_PROMPT, MINICHECK_ANSWERS)


PUBLISHED: dict[str, Callable[..., Entailment]] = {"hhem": load_hhem, "minicheck": load_minicheck}
"""Published models that transformers does not load by itself, by their short names."""


def load_entailment(name: str, device: str | None = None) -> Entailment:
    """A short name of `PUBLISHED`, or what `CrossEncoder.load` takes, and raises."""
    if name in PICKLED:
        raise InputError(
            "AlignScore's checkpoints are pickled, which is not loaded; convert its three-label head to a "
            "folder with safetensors (labels entailment, neutral, contradiction) and name that"
        )
    return PUBLISHED[name](device=device) if name in PUBLISHED else CrossEncoder.load(name, device)


def support_label(config: Any, name: str) -> int | None:
    """The number of the label that means support, None for a model with one logit.

    Raises `InputError` where no label's name says so; two labels without names are "no" and "yes".
    """
    labels = {int(k): str(label).lower() for k, label in config.id2label.items()}
    if len(labels) == 1:
        return None
    for k, label in labels.items():
        if label in SUPPORT:
            return k
    if len(labels) == 2 and all(label == f"label_{k}" for k, label in labels.items()):
        return 1
    raise InputError(f"no label of '{name}' means support: {', '.join(labels.values())}")
