import pytest

from experiments.published import BEST_THRESHOLDS, LLAMA_7B, LLAMA_13B, TABLE_2, published

# Hallucinated among the 989 question-answering responses of each generator in RAGTruth.
PREVALENCE = {LLAMA_7B: 510 / 989, LLAMA_13B: 399 / 989}


@pytest.mark.parametrize("row", TABLE_2, ids=lambda row: f"{row.classifier}, {row.generator}")
def test_transcription_is_consistent(row):
    # Accuracy, precision and recall together imply how many rows are hallucinated, precision and recall the
    # F1. Both hold only nearly, since the paper averages over folds; a wrong digit breaks them.
    assert row.prevalence == pytest.approx(PREVALENCE[row.generator], abs=0.01)
    harmonic = 2 * row.precision * row.recall / (row.precision + row.recall)
    assert row.f1 == pytest.approx(harmonic, abs=0.0125)


def test_prevalence_by_hand():
    # 10 rows, 4 hallucinated; 3 found with 1 false alarm: accuracy 0.8, precision and recall 3/4.
    row = published("svm", LLAMA_7B)
    by_hand = type(row)("x", "lrp4rag", "g", accuracy=0.8, precision=0.75, recall=0.75, f1=0.75)
    assert by_hand.prevalence == pytest.approx(0.4)


def test_lookup():
    assert published("svm", LLAMA_7B).accuracy == 0.6916
    assert published("lstm", LLAMA_13B).metrics["f1"] == 0.5556
    assert published("svm", "mistral-7B-instruct") is None
    assert BEST_THRESHOLDS["response", LLAMA_13B] == (0.53, 0.587)
    assert [row.kind for row in TABLE_2].count("lrp4rag") == 8
    assert len({(row.classifier, row.generator) for row in TABLE_2}) == 20
