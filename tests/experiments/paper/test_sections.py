"""What sections measure, against the functions that they are made of and against hand counts."""

from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.svm import SVC

from lrp4rag.classifiers.calibration import Contender
from lrp4rag.experiments.paper import ablations, distributions, findings, implicit, length, reliability
from lrp4rag.experiments.paper.bench import Way, control
from lrp4rag.experiments.paper.parts import Part
from lrp4rag.experiments.paper.published import published
from lrp4rag.experiments.paper.settings import GRID, estimator_of, lengths_of
from lrp4rag.experiments.paper.significance import position_test
from lrp4rag.experiments.paper.sweep import threshold_method
from lrp4rag.experiments.paper.table2 import (
    BEST,
    BEST_BY_ACCURACY,
    BEST_OF_ALL,
    CLASSIFIERS,
    MAJORITY,
    on_matrices,
    on_vectors,
    table2,
)
from lrp4rag.experiments.paper.thresholds import thresholds
from lrp4rag.experiments.paper.transfer import transfer
from lrp4rag.lrp.resample import resample
from lrp4rag.training.controls import Setting
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.search import Outcome, cross_validated, transferred
from tests.experiments.paper.stores import LARGE, SMALL, examples, store

pytestmark = pytest.mark.usefixtures("_light")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def full(full_store, context, cache):
    return context(full_store, cache)


@pytest.fixture
def bare(bare_store, context, cache):
    return context(bare_store, cache)


def test_table_2_has_every_line_and_the_controls(full):
    result = table2(full)
    assert list(result.generators) == [SMALL, LARGE]
    table = result.generators[SMALL]
    assert (table.rows, table.sources, table.hallucinated) == (30, 30, 15)
    assert list(table.lines) == ["honest", "paper"]
    honest = {line.name: line for line in table.lines["honest"]}
    for vector in ("R_prompt", "R_response"):
        assert {f"{name} on {vector}" for name in ("threshold", "svm", "mlp", "forest")} <= set(honest)
    assert {"threshold on n R_response", "svm on n R_response", "svm on R_response by segment"} <= set(honest)
    assert {"lstm on R* along the response", "lstm on R* along the prompt"} <= set(honest)
    assert honest["svm on n R_response"].kind == "ours"
    controls = {line.name for line in honest.values() if line.kind == "control"}
    assert {
        "novel words",
        "hidden state",
        "flag everything",
        MAJORITY,
        "constant relevance (zeros)",
    } <= controls
    assert BEST not in {line.name for line in table.lines["paper"]}
    assert BEST_OF_ALL not in honest
    assert table.target.best_of_all is None
    assert all(line.leaks == 0 for line in honest.values())
    # Fifteen of thirty: flagging everything is right in half of the rows.
    assert honest["flag everything"].metrics["accuracy"].value == 0.5
    assert sum(honest[BEST].chosen.values()) == 5
    assert result.left_out == ()


def test_the_target_is_the_papers_best_and_says_what_is_near(full):
    table = table2(full).generators[SMALL]
    target, lines = table.target, {line.name: line for line in table.lines["honest"]}
    assert (target.published, target.published_by) == (published("svm", SMALL).accuracy, "svm")
    assert target.best == lines[BEST_BY_ACCURACY].metrics["accuracy"]
    controls = [
        line
        for line in lines.values()
        if line.kind == "control" and line.name not in (MAJORITY, "flag everything")
    ]
    assert target.control_accuracy.value == max(line.metrics["accuracy"].value for line in controls)
    assert target.controls == len(controls)
    setting = Setting.of(full.settings.by_accuracy, "svm", "response")
    rival = control(full.parts[SMALL], target.control, setting, full.settings.by_accuracy)
    (outcome,) = full.bench.outcomes([rival], "test")
    right = (outcome.flagged == full.parts[SMALL].labels).mean()
    assert target.over_control.value == pytest.approx(target.best.value - right)
    assert target.prevalence == full.parts[SMALL].labels.mean()
    paper = [line for line in table.lines["paper"] if line.kind == "paper"]
    assert target.paper_accuracy.value == max(line.metrics["accuracy"].value for line in paper)


def test_other_rules_and_prompts_contend_where_they_have_all_rows(full_store, context, cache, tmp_path):
    few = [example for example in examples() if example.generator == SMALL][:24]
    variant = store(tmp_path / "v", few, composite="cp_lrp", parts=(), seed=5)
    raw = store(tmp_path / "raw", chat_template=False, parts=(), seed=7)
    made = context(full_store, cache, variants={"rules-cp_lrp": variant, "raw": raw}, protocols=("honest",))
    part, protocol = made.parts[SMALL], made.settings.by_accuracy
    other = Part.of(made.variants["raw"], SMALL)
    assert [example.id for example in other.rows.examples] == [example.id for example in part.rows.examples]
    ways = [*on_vectors(part), *on_matrices(part)]
    ways += [Way(other, name, "response", variant="raw") for name in CLASSIFIERS]
    contenders = [
        way.contender(length, settings)
        for way in ways
        for length in lengths_of(way.classifier, way.vector)
        for settings in GRID[way.classifier].settings
    ]
    expected = cross_validated(contenders, part.labels, part.groups, protocol)
    table = table2(made).generators[SMALL]
    line = next(line for line in table.lines["honest"] if line.name == BEST_OF_ALL)
    assert line.chosen == dict(Counter(expected.chosen))
    assert any(label.endswith("(raw), svm, C=1") for label in (each.label for each in contenders))
    right = (expected.flagged == part.labels).mean()
    assert line.metrics["accuracy"].value == pytest.approx(right)
    assert table.target.best_of_all == line.metrics["accuracy"]
    assert table.target.variants == ("raw",)


def test_a_store_with_r_response_only_says_what_would_add_the_rest(bare):
    result = table2(bare)
    names = {line.name for line in result.generators[SMALL].lines["honest"]}
    assert "svm on R_response" in names
    assert not any("R_prompt" in name or "R*" in name or "segment" in name for name in names)
    assert "log-probability" not in names
    remedies = {note.remedy for note in result.left_out}
    assert any("--matrix 64x16" in remedy for remedy in remedies)
    assert any("prompt" in remedy for remedy in remedies)
    assert all(SMALL in note.what for note in result.left_out)


def test_thresholds_are_those_of_the_method(full):
    methods = thresholds(full).methods[LARGE]
    assert [(each.vector, each.scaling) for each in methods] == [
        (vector, scaling) for scaling in ("within", "across") for vector in ("prompt", "response")
    ]
    part = full.parts[LARGE]
    expected = threshold_method(
        "response", part.vectors("response"), part.labels, part.groups, scaling="across", resamples=20
    )
    assert methods[3].honest == expected.honest
    assert np.allclose(methods[3].sweep.f1, expected.sweep.f1, atol=1e-6)
    gained = expected.honest.metrics["f1"].value - expected.flag_everything
    assert expected.over_everything.value == pytest.approx(gained)
    assert methods[3].over_everything == expected.over_everything


def test_each_length_is_cross_validated_by_itself(full):
    result = length.length(full)
    part = full.parts[SMALL]
    curve = next(each for each in result.curves[SMALL] if each.name == "svm, R_response, zeros")
    assert curve.lengths == (5, 10, 20, 220)
    rows = np.stack([resample(row, 10, "zeros") for row in part.vectors("response")])
    contender = Contender("", "svm", "", estimator_of("svm", "C=1"), rows)
    outcome = cross_validated([contender], part.labels, part.groups, full.settings.plain)
    expected = outcome_metrics(outcome, part.labels, part.groups, resamples=20)
    assert curve.metrics[1] == {name: expected[name] for name in length.KEPT}
    assert curve.at(11) == curve.metrics[1]
    values = [point["accuracy"].value for point in curve.metrics]
    assert curve.best() == curve.lengths[int(np.argmax(values))]
    assert curve.span("accuracy", 10) == pytest.approx(max(values[1:]) - min(values[1:]))
    constant = next(
        each for each in result.curves[SMALL] if each.name == "svm, constant relevance, interpolate"
    )
    assert constant.lengths == (10, 20, 220)
    assert all(point["auroc"].value < 0.6 for point in constant.metrics)


def test_distributions_are_tested_by_position(full):
    result = distributions.distributions(full)
    part = full.parts[SMALL]
    values = np.stack([resample(row, 100) for row in part.vectors("prompt")])
    expected = position_test(values, part.labels, part.groups, resamples=20)
    found = result.along[SMALL]["prompt"].test
    assert np.allclose(found.adjusted, expected.adjusted, rtol=1e-6)
    assert result.along[SMALL]["response"].means["hallucinated"].count == 15
    assert result.matrices[SMALL].normal.shape == (64, 16)
    mean = np.mean(
        [row.mean() for row, label in zip(part.vectors("response"), part.labels, strict=True) if label]
    )
    assert result.spreads[SMALL].logits["response"][part.labels].mean() == pytest.approx(mean)


def test_a_vector_that_one_generator_lacks_is_in_no_figure(context, tmp_path):
    folder = store(tmp_path / "s", parts=("prompt",))
    lacking = context(folder).parts[LARGE].rows
    for example in lacking.examples:
        lacking.store.path(example, "prompt").unlink()
    result = thresholds(context(folder))
    assert {each.vector for methods in result.methods.values() for each in methods} == {"response"}
    assert [note.what for note in result.left_out] == [f"R_prompt of {LARGE}"]


def test_ablations_are_paired_with_the_anchor_on_the_same_rows(full_store, context, cache, tmp_path):
    few = [example for example in examples() if example.generator == SMALL][:24]
    variant = store(tmp_path / "v", few, composite="cp_lrp", parts=(), seed=5)
    raw = store(tmp_path / "raw", chat_template=False, parts=())
    made = context(full_store, cache, variants={"rules-cp_lrp": variant, "raw": raw})
    result = ablations.ablations(made)
    changes = {(change.generator, change.name): change for change in result.changes}
    assert changes[SMALL, "cp_lrp (rules-cp_lrp)"].rows == 24
    assert (LARGE, "cp_lrp (rules-cp_lrp)") not in changes
    assert changes[LARGE, "raw (raw)"].kind == "prompt"
    for change in result.changes:
        gained = change.changed["auroc"].value - change.anchor["auroc"].value
        assert change.difference["auroc"].value == pytest.approx(gained)
    # The synthetic signals have the same relevance under both composites, but for float16.
    assert abs(changes[SMALL, "cp_lrp (signals)"].difference["auroc"].value) < 0.03
    assert result.anchor == "svm on R_response; attnlrp, chat template, response token's logit, float32"
    left_out = {note.what: note.remedy for note in result.left_out}
    assert any("rules-cp_lrp" in what and LARGE in what for what in left_out)
    assert "--composite paper" in left_out["the variant rules-paper"]


def test_implicit_spans_are_counted_both_ways(full):
    counted = implicit.implicit(full).generators[SMALL]
    # Odd responses are labelled, and numbers 1, 7, 13, 19 and 25 have a span that is true.
    assert (counted.rows, counted.hallucinated, counted.changed) == (30, 15, 5)
    assert counted.strict["accuracy"] != counted.trained["accuracy"]
    part = full.parts[SMALL]
    assert implicit.relaxed(part).sum() == 10
    assert not (implicit.relaxed(part) & ~part.labels).any()


def test_reliability_counts_every_row(full):
    lines = reliability.diagrams(full).lines[LARGE]
    assert list(lines) == [BEST, "svm on R_response", "novel words", "six lexical features"]
    assert all(line.count.sum() == 30 for line in lines.values())


def test_transfer_learns_from_one_generator_and_judges_the_other(full):
    result = transfer(full)
    assert result.trains == result.tests == [SMALL, LARGE]
    parts = [full.parts[name] for name in (SMALL, LARGE)]
    inputs = np.concatenate([part.inputs("response", 220) for part in parts])
    labels, groups = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "groups")
    )
    contenders = [Contender("", "svm", "", estimator_of("svm", "C=1"), inputs)]
    of = np.repeat([0, 1], 30)
    outcome = transferred(contenders, labels, groups, full.settings.honest, of == 0, of == 1)
    expected = outcome_metrics(outcome, labels[of == 1], groups[of == 1], resamples=20)
    assert result.of(SMALL, LARGE)["auroc"].value == pytest.approx(expected["auroc"].value)
    assert result.of(SMALL, SMALL)["auroc"].value > 0.6


def test_findings_follow_their_rule(full):
    result = findings.findings(full)
    first = next(case for case in result.cases["1"] if case.where == SMALL and case.decides)
    part = full.parts[SMALL]
    means = [row.mean() for row in part.vectors("response")]
    assert first.auroc.value == pytest.approx(1 - roc_auc_score(part.labels, means))
    assert first.verdict == "holds"
    second = [case for case in result.cases["2"] if case.where == SMALL]
    assert [case.decides for case in second] == [True, False, False, False]
    assert [case.where for case in result.cases["3"]] == [f"{SMALL} to {LARGE}"]
    assert [case.what.split(",")[0] for case in result.cases["4"] if case.where == LARGE] == [
        "lstm on R* along the response",
        "lstm on R* along the prompt",
    ]
    # The paper claims the fourth of its larger generator only.
    assert {case.where for case in result.cases["4"] if case.decides} == {LARGE}
    assert result.left_out == ()


def test_the_step_from_one_generator_to_the_next():
    noise = np.random.default_rng(0)
    labels = [np.arange(40) % 2 == 0, np.arange(30) % 3 == 0]
    groups = [np.array([f"s{k}" for k in range(len(each))]) for each in labels]
    outcomes = []
    for each, shift in zip(labels, (2.0, 0.0), strict=True):
        scores = (noise.normal(size=(2, len(each))) + shift * each) / 10 + 0.5
        outcomes.append(Outcome(scores, scores >= 0.5))
    found = findings.step(labels, groups, outcomes, resamples=50)
    ranked, right = (
        [
            np.mean([measure(each, row) for row in values])
            for each, values in zip(labels, (getattr(outcome, name) for outcome in outcomes), strict=True)
        ]
        for measure, name in ((roc_auc_score, "probabilities"), (accuracy_score, "flagged"))
    )
    assert found["auroc"].value == pytest.approx(ranked[0] - ranked[1])
    assert found["accuracy"].value == pytest.approx(right[0] - right[1])
    assert found["auroc"].low > 0


def test_what_the_lengths_explain_is_taken_out():
    lengths = np.log(np.arange(10.0, 60.0))[:, None]
    values = 3 - 2 * lengths[:, 0]
    assert np.allclose(findings._residual(values, lengths), 0)
    assert np.allclose(findings._residual(np.sin(values), lengths) @ lengths, 0)


def test_the_machine_here_is_scikit_learns():
    assert isinstance(estimator_of("svm", "C=3")[-1], SVC)
