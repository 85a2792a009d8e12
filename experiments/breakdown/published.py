"""Example-level figures on RAGTruth question answering as other papers print them, to stand beside ours."""

from __future__ import annotations

from typing import NamedTuple

LETTUCE, GROUNDED = "arXiv 2502.17125", "arXiv 2504.15771"
ROWS, HALLUCINATED = 900, 160
"""Of the official test split: six generators, of which the folds here have four."""


LETTUCE_ENCODERS = {"ModernBERT-base": 149, "ModernBERT-large": 395}
"""Parameters of LettuceDetect's encoders, in millions."""
LETTUCE_RATE, LETTUCE_DECAY, LETTUCE_BATCH, LETTUCE_EPOCHS, LETTUCE_TOKENS = 1e-5, 0.01, 8, 6, 4096
"""How LettuceDetect was trained, with AdamW; the checkpoint with the best F1 of tokens was taken."""


class Published(NamedTuple):
    """Percent, of responses; `learned` says whether the system was trained on RAGTruth."""

    system: str
    precision: float
    recall: float
    f1: float
    learned: bool
    remark: str = ""


PUBLISHED = (
    Published("fine-tuned Llama-2-13B", 61.6, 76.3, 68.2, True),
    Published("RAG-HAT", 76.5, 73.1, 74.8, True),
    Published("Luna", 37.8, 80.0, 51.3, True),
    Published("lettucedetect-base-v1", 60.64, 71.25, 65.52, True),
    Published("lettucedetect-large-v1", 65.93, 75.00, 70.18, True),
    Published("prompt, gpt-3.5-turbo", 18.8, 84.4, 30.8, False),
    Published("prompt, gpt-4-turbo", 33.2, 90.6, 45.6, False),
    Published("SelfCheckGPT, gpt-3.5-turbo", 35.0, 58.0, 43.7, False),
    Published("LMvLM, gpt-4-turbo", 18.7, 76.9, 30.1, False),
    Published("ChainPoll, gpt-3.5-turbo", 33.5, 51.3, 40.5, False),
    Published("RAGAS faithfulness", 31.2, 41.9, 35.7, False),
    Published("TruLens groundedness", 22.8, 92.5, 36.6, False),
    Published(
        "Grounded in Context",
        88.4,
        91.9,
        90.1,
        False,
        "far from every other system, and from its paper's own text (0.72 with the components described)",
    ),
)
"""Table 1 of Grounded in Context, and Table 2 of LettuceDetect."""

SPANS = (
    Published("fine-tuned Llama-2-13B", 55.8, 60.8, 58.2, True),
    Published("lettucedetect-base-v1", 62.65, 60.40, 61.50, True),
    Published("lettucedetect-large-v1", 66.85, 62.14, 64.41, True),
    Published("prompt, gpt-4-turbo", 23.7, 52.0, 32.6, False),
)
"""Characters of spans: Table 3 of LettuceDetect."""
