"""The faithfulness benchmark: its methods, measures, rows and JSON. What it measures is not judged here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks.faithfulness import __main__ as command
from benchmarks.faithfulness import measures
from benchmarks.faithfulness.cases import MAX_PROMPT, Case, ablation_cases, needle_cases
from benchmarks.faithfulness.measures import area, curves, mass, pointing, spearman, top_recall
from benchmarks.faithfulness.methods import METHODS, OURS, Attributor, sentence_of
from benchmarks.faithfulness.sample import Replay, Sample
from benchmarks.faithfulness.statistics import compare, mean_of
from lrp4rag.reader import Reader
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example

TINY_LIMIT = 400  # the tiny tokenizer needs many tokens


@pytest.fixture
def sample(tiny_reader: Reader) -> Sample:
    return Sample.of(Case("bridge", "year", bridge_example(), "1900", (0,)), tiny_reader, TINY_LIMIT)


# Cases


@pytest.mark.parametrize("make", [needle_cases, ablation_cases])
def test_cases_are_distinct_and_more_extend_fewer(make: Any) -> None:
    cases = make(150, 3)
    assert len({case.example.content_hash for case in cases}) == 150
    assert make(20, 3) == cases[:20] != make(20, 4)


def test_the_answer_stands_in_the_planted_passage_and_in_no_other() -> None:
    cases = needle_cases(300, 0)
    for case in cases:
        holders = [k for k, p in enumerate(case.example.passages) if re.search(rf"\b{case.answer}\b", p)]
        assert holders == list(case.planted)
        assert case.answer in (case.example.response or "")
    assert {case.planted[0] for case in cases} == {0, 1, 2}


def test_prompts_fit_the_default_reader(default_reader: Reader) -> None:
    for case in [*needle_cases(100, 0), *ablation_cases(40, 0)]:
        found = Sample.of(case, default_reader)
        assert len(found.encoded.prompt_ids) <= MAX_PROMPT
        assert found.gold.any()
        assert found.answer.any()


def test_gold_tokens_content_and_row_weights(sample: Sample, tiny_reader: Reader) -> None:
    encoded = sample.encoded
    offsets = [encoded.prompt_offsets[k] for k in np.flatnonzero(sample.gold)]
    assert "".join(encoded.text[a:b] for a, b in offsets).strip() == "1900"
    assert (sample.content == sample.passage(0) | sample.passage(1) | sample.passage(2)).all()
    assert float(sample.answer_mean().sum()) == pytest.approx(1)
    assert sample.first_answer_token().nonzero().tolist() == [[int(sample.answer.argmax())]]
    with pytest.raises(InputError, match="exceed 50"):
        Sample.of(sample.case, tiny_reader, 50)


# Methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_a_finite_value_a_prompt_token(
    name: str, sample: Sample, tiny_reader: Reader
) -> None:
    attributor = Attributor(tiny_reader)
    one = attributor.relevance(name, sample.encoded, sample.first_answer_token())
    assert one.shape == (len(sample.encoded.prompt_ids),)
    assert np.isfinite(one).all()
    assert np.ptp(one[sample.content]) > 0
    assert attributor.relevance(name, sample.encoded, sample.first_answer_token()) is one
    whole = attributor.relevance(name, sample.encoded, sample.response_sum())
    assert (name == "random") == np.array_equal(one, whole)
    assert tiny_reader.model.config._attn_implementation == "sdpa"
    if name == "attention_rollout":  # a share of attention
        assert (one >= 0).all()
        assert 0 < one.sum() <= 1 + 1e-6


@torch.no_grad()
def test_a_replay_is_the_model(sample: Sample, tiny_reader: Reader) -> None:
    n, ids = len(sample.encoded.prompt_ids), [*sample.encoded.prompt_ids, *sample.encoded.response_ids]
    logits = tiny_reader.model(torch.tensor([ids[:-1]])).logits[0, n - 1 :]
    explained = logits.gather(-1, torch.tensor(ids[n:])[:, None])[:, 0]
    for weights in (sample.first_answer_token(), sample.response_sum()):
        replay = Replay.of(tiny_reader.model, sample.encoded, weights)
        same = replay.with_content(replay.embeddings[replay.content][None])
        found = replay(torch.cat([same, torch.zeros_like(same), same]))
        assert replay.start > 0
        assert float(found[0]) == pytest.approx(float(weights.float() @ explained), rel=1e-4)
        assert float(found[2]) == pytest.approx(float(found[0]), rel=1e-5)
        assert abs(float(found[1] - found[0])) > 1e-3


@torch.no_grad()
def test_feature_ablation_is_the_drop_without_a_sentence(sample: Sample, tiny_reader: Reader) -> None:
    weights = sample.first_answer_token()
    relevance = Attributor(tiny_reader).relevance("feature_ablation", sample.encoded, weights)
    replay = Replay.of(tiny_reader.model, sample.encoded, weights)
    kept = torch.ones(2, len(replay.content), 1)
    kept[1, torch.from_numpy(sample.passage(0)[sample.content])] = 0
    whole, without = replay(replay.with_content(replay.embeddings[replay.content] * kept)).tolist()
    assert relevance[sample.passage(0)].sum() == pytest.approx(whole - without, abs=1e-3)
    assert (relevance[~sample.content] == 0).all()
    sentences = sentence_of(sample.encoded).numpy()
    assert ((sentences >= 0) == sample.content).all()
    assert len(np.unique(sentences[sample.content])) == 3


# Measures


def test_needle_measures_by_hand() -> None:
    relevance = np.array([9.0, 1.0, 2.0, -5.0, 3.0])
    inside, among = np.array([0, 0, 1, 1, 0], bool), np.array([0, 1, 1, 1, 1], bool)
    assert mass(relevance, inside, among) == pytest.approx(2 / 6)
    assert mass(-np.abs(relevance), inside, among) == 0
    assert (pointing([1.0, 3.0, -2.0], 1), pointing([1.0, 3.0, -2.0], 0)) == (1, 0)
    assert pointing([2.0, 2.0, 2.0], 0) == pytest.approx(1 / 3)
    gold, among = np.zeros(21, bool), np.arange(21) > 0
    gold[[1, 5]] = True  # 20 tokens count, so 2 places: tokens 1 and 2
    assert top_recall(np.arange(21.0)[::-1].copy(), gold, among) == pytest.approx(1 / 2)
    assert top_recall(np.ones(21), gold, among) == pytest.approx(2 / 20)  # all tied


def toy(coefficients: torch.Tensor) -> Replay:
    """A replay whose value is sum_i c_i e_i, with every embedding 1."""

    def model(inputs_embeds: torch.Tensor, **_: object) -> SimpleNamespace:
        value = (inputs_embeds[..., 0] * coefficients).sum(-1)
        return SimpleNamespace(logits=value[:, None, None])

    content, first = torch.arange(len(coefficients)), torch.tensor([0])
    return Replay(model, (), 0, torch.ones(len(content), 1), content, content[-1:], first, torch.ones(1))


def test_curves_by_hand() -> None:
    replay = toy(torch.tensor([8.0, 0, 0, 0, 0, 0, 0, 0, 1.0]))
    morf, lerf = curves(replay, np.array([9.0, 8, 7, 6, 5, 4, 3, 2, 1]), 9.0, 0.0)
    assert morf.tolist() == [9, *[1.0] * 8, 0]
    assert lerf.tolist() == [9, *[8.0] * 8, 0]
    assert area(morf, lerf) == pytest.approx(7 * 8 / 9)


def test_the_area_of_the_exact_order_exceeds_any_other() -> None:
    coefficients = torch.randn(27, generator=torch.Generator().manual_seed(0))
    replay, whole = toy(coefficients), float(coefficients.sum())
    exact = coefficients.double().numpy()  # Gradient x Input, and leave-one-out, of a linear model
    best, worst = (area(*curves(replay, relevance, whole, 0.0)) for relevance in (exact, -exact))
    assert best == pytest.approx(-worst)
    generator = np.random.default_rng(0)
    others = [area(*curves(replay, generator.permutation(27) * 1.0, whole, 0.0)) for _ in range(50)]
    assert best > max(others)
    assert abs(np.mean(others)) < best / 4


def test_orders_masks_and_rank_correlation() -> None:
    assert measures.descending(np.array([0.1, 3.0, -4.0, 2.0])).tolist() == [1, 3, 0, 2]
    masks = measures.removal_masks(np.arange(20))
    assert masks.sum(1).tolist() == np.round(measures.FRACTIONS * 20).astype(int).tolist()
    assert (masks[1:] >= masks[:-1]).all()
    assert spearman([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0


def test_a_masked_passage_is_not_read(sample: Sample, tiny_reader: Reader) -> None:
    ids = np.array(sample.encoded.prompt_ids)
    ids[sample.passage(1)] = ids[sample.passage(1)][::-1]
    other = replace(sample, encoded=replace(sample.encoded, prompt_ids=tuple(ids.tolist())))
    before, after = (measures.response_log_probabilities(s, tiny_reader) for s in (sample, other))
    assert before[2] == pytest.approx(after[2], rel=1e-6)
    assert before[0] != pytest.approx(after[0], rel=1e-6)
    assert before.shape == (4,)


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "best"), (0.0, "level"), (-1.0, "worse")])
def test_verdicts(gain: float, verdict: str) -> None:
    noise = np.random.default_rng(0).normal(size=(2, 80))
    statistics = {
        "attnlrp": mean_of((noise[0] + gain).tolist()),
        "paper": mean_of((noise[0] - 9).tolist()),
        "other": mean_of((noise[0] + 0.3 * noise[1] - 0.3 * noise[1].mean()).tolist()),
    }
    found = compare(statistics, 80, OURS)
    assert (found.ours, found.other, found.verdict) == ("attnlrp", "other", verdict)
    difference = found.differences["other"]
    assert difference.value == pytest.approx(gain, abs=1e-9)
    assert difference.low < gain < difference.high
    # Paired: the interval knows that both methods saw the same samples.
    single = found.methods["attnlrp"]
    assert difference.high - difference.low < (single.high - single.low) / 2


# Runs

QUICK = ("attnlrp", "gradient_norm", "random")


def run(folder: Path, reader: Path, arguments: str = "") -> Any:
    options = f"--samples 4 --max-prompt {TINY_LIMIT} --methods {','.join(QUICK)} {arguments}"
    return CliRunner().invoke(command.main, [*options.split(), "--reader", str(reader), "--out", str(folder)])


def test_what_a_run_writes(reader_folder: Path, tmp_path: Path) -> None:
    result = run(tmp_path, reader_folder, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert json.loads((tmp_path / "results.json").read_text()) == report
    assert report["samples"] == {"needle": 4, "perturbation": 4, "ablation": 2}
    for found in (found for name in measures.EXPERIMENTS for found in report[name].values()):
        assert set(found) == {"methods", "differences", "ours", "other", "verdict"}
        assert tuple(found["methods"]) == QUICK
        assert found["ours"] == "attnlrp"
        assert all(one["low"] <= one["value"] <= one["high"] for one in found["methods"].values())
    for figure in ("needle", "perturbation", "perturbation-curves", "ablation"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 10_000
    page = run(tmp_path, reader_folder, "--only needle").stdout
    assert page.count("| attnlrp | ") == 3
    refused = run(tmp_path, reader_folder, "--seed 1")
    assert refused.exit_code == 2
    assert "measured with seed 0, not 1; name another output" in refused.stderr
    assert run(tmp_path, reader_folder, "--only nonsense").exit_code == 2


def test_a_killed_run_resumes(reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "--only needle --json"
    whole = run(tmp_path, reader_folder, arguments).stdout
    cells = tmp_path / command.CELLS
    content = json.loads(cells.read_text())
    assert len(content["cells"]) == 12
    cells.write_text(json.dumps(content | {"cells": dict(list(content["cells"].items())[:10])}))
    calls = []
    for name in QUICK:

        def counted(*arguments: Any, name: str = name, method: Any = METHODS[name]) -> Any:
            calls.append(name)
            return method(*arguments)

        monkeypatch.setitem(METHODS, name, counted)
    assert run(tmp_path, reader_folder, arguments).stdout == whole
    assert sorted(calls) == ["gradient_norm", "random"]
    assert json.loads(cells.read_text()) == content
