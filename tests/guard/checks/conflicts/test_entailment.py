"""A model for natural language inference beside the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.conflicts import Conflicts, entailment
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

SOURCES = (Source("The new garage is spacious and bright."), Source("The new garage is cramped and gloomy."))


def test_what_no_value_tells_is_found_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entailment, "scorer", lambda model: lambda one, other: 0.97)
    given = CheckInput("", SOURCES)
    assert Conflicts()(given) == []
    (finding,) = Conflicts(entailment="some/model")(given)
    assert [side["value"] for side in finding.details["sides"]] == [  # type: ignore[union-attr, index, call-overload]
        source.text for source in SOURCES
    ]


def test_both_directions_must_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entailment, "scorer", lambda model: lambda one, other: 0.97 * ("bright" in one))
    assert Conflicts(entailment="some/model")(CheckInput("", SOURCES)) == []


def test_a_model_that_is_missing_or_of_another_task_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model for entailment"):
        entailment.scorer(str(tmp_path / "none"))
    with pytest.raises(InputError, match="has no label 'contradiction'"):
        entailment.scorer(str(tiny(tmp_path, ["yes", "no"])))


def test_a_classifier_gives_the_probability_of_contradiction(tmp_path: Path) -> None:
    score = entailment.scorer(str(tiny(tmp_path, ["entailment", "neutral", "CONTRADICTION"])))
    assert 0 < score("the garage is bright", "the garage is gloomy") < 1


def tiny(folder: Path, labels: list[str]) -> Path:
    """A classifier with random weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "the", "garage", "is", "bright", "gloomy"]
    plain = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]")  # type: ignore[no-untyped-call]
    config = BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
        id2label=dict(enumerate(labels)), label2id={label: k for k, label in enumerate(labels)},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
