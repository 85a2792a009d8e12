"""What the compared systems' authors report, to stand beside our rows, marked as published."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.experiments.paper.published import SOURCE, TABLE_2


@dataclass(frozen=True, slots=True)
class Report:
    system: str
    figure: str
    source: str


LETTUCE = "arXiv 2502.17125"
_ALL_TASKS = "on RAGTruth, all tasks (test)"
_OTHERS = (
    Report("LettuceDetect-base, ModernBERT (149M)", "span F1 0.615 on RAGTruth QA (test)", LETTUCE),
    Report("LettuceDetect-large, ModernBERT (395M)", "span F1 0.644 on RAGTruth QA (test)", LETTUCE),
    Report("LettuceDetect-large, ModernBERT (395M)", f"response F1 0.792 {_ALL_TASKS}", LETTUCE),
    Report("fine-tuned llama-2-13b", f"response F1 0.787 {_ALL_TASKS}", f"RAGTruth, as cited in {LETTUCE}"),
    Report("prompt gpt-4", f"response F1 0.634 {_ALL_TASKS}", f"RAGTruth, as cited in {LETTUCE}"),
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
