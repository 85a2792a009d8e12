"""Published entailment models on Flan-T5: HHEM-2.1-Open and MiniCheck, without their authors' code.

Both are architectures that transformers knows; what their authors' code adds is a prompt and where the answer
is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.systems.encoders.running import autocast, padded_batches
from lrp4rag.experiments.systems.encoders.weights import load_encoder

HHEM, FLAN = "vectara/hallucination_evaluation_model", "google/flan-t5-base"
HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\n"
    "Hypothesis: {hypothesis}"
)
MINICHECK = "lytang/MiniCheck-Flan-T5-Large"
MINICHECK_PROMPT = "predict: {premise}</s>{hypothesis}"
MINICHECK_ANSWERS = (3, 209)
"""Tokens of the first place of the answer: not supported, supported."""
LONGEST = 2048  # tokens: T5 counts distances, not places


@dataclass(frozen=True, slots=True)
class T5Entailment:
    """`prompt` has places for premise and hypothesis; with `answers` the model writes, and the two tokens are
    compared at the first place; else it is a classifier whose second label is read at the first token."""

    name: str
    model: Any
    tokenizer: Any
    prompt: str
    answers: tuple[int, int] | None = None

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """That each premise supports its hypothesis, (pairs,)."""
        import torch

        found = np.zeros(len(pairs))
        texts = [self.prompt.format(premise=premise, hypothesis=text) for premise, text in pairs]
        encoded = self.tokenizer(texts, truncation=True, max_length=LONGEST) if texts else {"input_ids": []}
        for chosen, padded in padded_batches(encoded, self.tokenizer, self.model.device):
            with torch.no_grad(), autocast(str(self.model.device)):
                logits = self._logits(padded).float()
            found[chosen] = torch.softmax(logits, -1)[:, 1].cpu().numpy()
        return found

    def _logits(self, padded: Any) -> Any:
        """Of "not supported" and "supported", (pairs, 2)."""
        import torch

        if self.answers is None:
            return self.model(**padded).logits[:, 0]
        start = self.model.config.decoder_start_token_id
        first = torch.full((len(padded["input_ids"]), 1), start, device=self.model.device)
        return self.model(**padded, decoder_input_ids=first).logits[:, 0][:, list(self.answers)]


def load_hhem(weights: str = HHEM, foundation: str = FLAN, device: str | None = None) -> T5Entailment:
    """HHEM-2.1-Open: a token classifier on Flan-T5-base, kept under the prefix "t5."."""
    from transformers import AutoConfig, T5ForTokenClassification

    from lrp4rag.reader.pretrained import pretrained

    config = pretrained(AutoConfig, foundation)
    config.num_labels = 2
    model, tokenizer = load_encoder(
        weights,
        T5ForTokenClassification,
        tokenizer=foundation,
        device=device,
        whole=True,
        config=config,
        key_mapping={r"^t5\.": ""},
    )
    return T5Entailment("hhem", model, tokenizer, HHEM_PROMPT)


def load_minicheck(weights: str = MINICHECK, device: str | None = None) -> T5Entailment:
    """MiniCheck-Flan-T5-Large (arXiv 2404.10774), which writes its answer."""
    from transformers import AutoModelForSeq2SeqLM

    model, tokenizer = load_encoder(weights, AutoModelForSeq2SeqLM, device=device, whole=True)
    return T5Entailment("minicheck", model, tokenizer, MINICHECK_PROMPT, MINICHECK_ANSWERS)
