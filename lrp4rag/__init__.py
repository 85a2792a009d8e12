"""White-box hallucination detection for retrieval-augmented generation, by relevance propagation.

The names below are imported when they are first used, so that `import lrp4rag` is instant.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

# OpenMP's threads spin while they wait, and on busy cores starve each other: one response took 36 s, not 7.
# OpenMP reads this when torch is imported, and never again.
if "torch" not in sys.modules:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# oneDNN keeps what it made for each shape of a product, and each answer has others: 200 MB after 80 of them.
# It reads this when it first computes a product.
if "DNNL_PRIMITIVE_CACHE_CAPACITY" not in os.environ:
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")

if os.environ.get("LRP4RAG_QUIET"):  # before anything else is imported, see lrp4rag.util.quiet
    from lrp4rag.util.quiet import quiet_libraries

    quiet_libraries()

if TYPE_CHECKING:
    from lrp4rag.classifiers import Verdict
    from lrp4rag.classifiers.analysis import Analysis
    from lrp4rag.classifiers.prevalence import RunningPrevalence
    from lrp4rag.data import load_examples
    from lrp4rag.example import Example, Label
    from lrp4rag.generation import Generation, generate
    from lrp4rag.judge import Detector, ExplainedVerdict, analyse
    from lrp4rag.lrp import Relevance, Target, attribute, check_conservation, relevance_mode, stream
    from lrp4rag.reader import Reader, load_reader
    from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning, RelevanceError

__version__ = "0.2.0"

_HOMES = {
    "Analysis": "classifiers.analysis",
    "Detector": "judge",
    "Example": "example",
    "ExplainedVerdict": "judge",
    "Generation": "generation",
    "InputError": "util.errors",
    "LRP4RAGError": "util.errors",
    "LRP4RAGWarning": "util.errors",
    "Label": "example",
    "Reader": "reader",
    "Relevance": "lrp",
    "RelevanceError": "util.errors",
    "RunningPrevalence": "classifiers.prevalence",
    "Target": "lrp",
    "Verdict": "classifiers",
    "analyse": "judge",
    "attribute": "lrp",
    "check_conservation": "lrp",
    "generate": "generation",
    "load_examples": "data",
    "load_reader": "reader",
    "relevance_mode": "lrp",
    "stream": "lrp",
}

__all__ = [
    "Analysis",
    "Detector",
    "Example",
    "ExplainedVerdict",
    "Generation",
    "InputError",
    "LRP4RAGError",
    "LRP4RAGWarning",
    "Label",
    "Reader",
    "Relevance",
    "RelevanceError",
    "RunningPrevalence",
    "Target",
    "Verdict",
    "analyse",
    "attribute",
    "check_conservation",
    "generate",
    "load_examples",
    "load_reader",
    "relevance_mode",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from lrp4rag.util.garbage import uncollected

        with uncollected():
            home = importlib.import_module(f"lrp4rag.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module 'lrp4rag' has no attribute '{name}'")
