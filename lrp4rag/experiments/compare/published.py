"""What the compared systems' authors report, to stand beside our rows, marked as published."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.experiments.published import SOURCE, TABLE_2


@dataclass(frozen=True, slots=True)
class Report:
    system: str
    figure: str
    source: str


_OTHERS = (
    Report(
        "LettuceDetect-base, ModernBERT (149M)", "span F1 0.615 on RAGTruth QA (test)", "arXiv 2502.17125"
    ),
    Report(
        "LettuceDetect-large, ModernBERT (395M)", "span F1 0.644 on RAGTruth QA (test)", "arXiv 2502.17125"
    ),
)


def reports() -> list[Report]:
    """Rows of LRP4RAG's Table 2 that are not its own, and of the systems' own papers."""
    table = [
        Report(
            one.classifier,
            f"accuracy {one.accuracy:.4f}, F1 {one.f1:.4f} ({one.generator}, RAGTruth QA, folds not grouped)",
            f"{SOURCE}, Table 2",
        )
        for one in TABLE_2
        if one.kind == "baseline"
    ]
    return [*table, *_OTHERS]
