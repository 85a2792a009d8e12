"""What sections measure, against the functions that they are made of and against hand counts."""

from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from experiments.paper import (
    ablations,
    checks,
    distributions,
    findings,
    length,
    table2,
    thresholds,
)
from experiments.paper.data import Subset, estimator_of
from experiments.paper.distributions import position_test
from experiments.paper.methods import Model, control
from experiments.paper.thresholds import row_means, threshold_method
from experiments.published import published
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.lrp.resampling import resample
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import Outcome, cross_validated
from tests.experiments.paper.stores import LARGE, SMALL, examples, store


@pytest.fixture(scope="module")
def full(full_store, context):
    return context(full_store)


@pytest.fixture(scope="module")
def table(full):
    return table2.measure(full)


@pytest.fixture(scope="module")
def varied(full_store, context, tmp_path_factory):
    """With two other stores, of which one has fewer rows."""
    folder = tmp_path_factory.mktemp("variants")
    few = [example for example in examples() if example.generator == SMALL][:24]
    variants = {
        "rules-cp_lrp": store(folder / "v", few, composite="cp_lrp", parts=(), seed=5),
        "raw": store(folder / "raw", chat_template=False, parts=(), seed=7),
    }
    return context(full_store, variants=variants)


def test_table_2_has_every_line_and_the_controls(table):
    assert list(table.generators) == [SMALL, LARGE]
    small = table.generators[SMALL]
    assert (small.rows, small.sources, small.hallucinated) == (30, 30, 15)
    assert list(small.lines) == ["honest", "paper"]
    honest = {line.name: line for line in small.lines["honest"]}
    for vector in ("R_prompt", "R_response"):
        assert {f"{name} on {vector}" for name in ("threshold", "svm", "mlp", "forest")} <= set(honest)
    assert {"threshold on n R_response", "svm on n R_response", "svm on R_response by segment"} <= set(honest)
    assert {"lstm on R* along the response", "lstm on R* along the prompt"} <= set(honest)
    assert honest["svm on n R_response"].kind == "ours"
    controls = {line.name for line in honest.values() if line.kind == "control"}
    assert {"novel words", "hidden state", "constant relevance (zeros)"} <= controls
    assert {"flag everything", table2.MAJORITY} <= controls
    assert table2.BEST not in {line.name for line in small.lines["paper"]}
    assert table2.BEST_OF_ALL not in honest
    assert small.target.best_of_all is None
    assert all(line.leaks == 0 for line in honest.values())
    # Fifteen of thirty: flagging everything is right in half of the rows.
    assert honest["flag everything"].metrics["accuracy"].value == 0.5
    assert sum(honest[table2.BEST].chosen.values()) == 5
    assert table.left_out == ()


def test_the_target_is_the_papers_best_and_says_what_is_near(full, table):
    small = table.generators[SMALL]
    target, lines = small.target, {line.name: line for line in small.lines["honest"]}
    assert (target.published, target.published_by) == (published("svm", SMALL).accuracy, "svm")
    assert target.best == lines[table2.BEST_BY_ACCURACY].accuracy
    baseline = (table2.MAJORITY, "flag everything")
    controls = [line for line in lines.values() if line.kind == "control" and line.name not in baseline]
    assert target.control_accuracy.value == max(line.accuracy.value for line in controls)
    assert target.controls == len(controls)
    rival = control(full.subsets[SMALL], target.control, full.settings.by_accuracy)
    (outcome,) = full.outcomes([rival], "test")
    right = (outcome.flagged == full.subsets[SMALL].labels).mean()
    assert target.over_control.value == pytest.approx(target.best.value - right)
    assert target.prevalence == full.subsets[SMALL].labels.mean()
    paper = [line for line in small.lines["paper"] if line.kind == "paper"]
    assert target.paper_accuracy.value == max(line.accuracy.value for line in paper)


def test_other_rules_and_prompts_are_candidates_where_they_have_all_rows(varied):
    subset, protocol = varied.subsets[SMALL], varied.settings.by_accuracy
    other = Subset.of(varied.stores["raw"], SMALL)
    assert [example.id for example in other.rows.examples] == [example.id for example in subset.rows.examples]
    models = [*table2.on_vectors(subset), *table2.on_matrices(subset)]
    models += [Model(other, name, "response", variant="raw") for name in table2.CLASSIFIERS]
    candidates = [model.candidate(*place) for model in models for place in model.grid]
    assert any(each.label.endswith("(raw), svm, C=1") for each in candidates)
    expected = cross_validated(candidates, subset.labels, subset.groups, protocol)
    method = table2.best_of_all(varied, subset, protocol)
    (found,) = varied.outcomes([method], "test")
    assert Counter(found.chosen) == Counter(expected.chosen)
    assert np.array_equal(found.flagged, expected.flagged)
    made = table2.measure(varied).generators[SMALL]
    line = next(line for line in made.lines["honest"] if line.name == table2.BEST_OF_ALL)
    assert line.chosen == dict(Counter(expected.chosen))
    assert made.target.best_of_all == line.accuracy
    assert made.target.variants == ("raw",)


def test_a_store_with_r_response_only_says_what_would_add_the_rest(bare_store, context):
    result = table2.measure(context(bare_store))
    names = {line.name for line in result.generators[SMALL].lines["honest"]}
    assert "svm on R_response" in names
    assert not any("R_prompt" in name or "R*" in name or "segment" in name for name in names)
    assert "log-probability" not in names
    remedies = {note.remedy for note in result.left_out}
    assert any("--matrix 64x16" in remedy for remedy in remedies)
    assert any("prompt" in remedy for remedy in remedies)
    assert all(SMALL in note.what for note in result.left_out)


def test_thresholds_are_those_of_the_method(full):
    methods = thresholds.measure(full).methods[LARGE]
    assert [(each.vector, each.scaling) for each in methods] == [
        (vector, scaling) for scaling in ("within", "across") for vector in ("prompt", "response")
    ]
    subset = full.subsets[LARGE]
    rows = subset.vectors("response"), subset.labels, subset.groups
    expected = threshold_method("response", *rows, scaling="across", resamples=20)
    assert methods[3].honest == expected.honest
    assert np.allclose(methods[3].sweep.f1, expected.sweep.f1, atol=1e-6)
    gained = expected.honest.metrics["f1"].value - expected.flag_everything
    assert expected.over_everything.value == pytest.approx(gained)
    assert methods[3].over_everything == expected.over_everything


def test_each_length_is_cross_validated_by_itself(full, table):
    curves = {curve.name: curve for curve in length.measure(full).curves[SMALL]}
    curve, subset = curves["svm, R_response, zeros"], full.subsets[SMALL]
    assert curve.lengths == (5, 10, 20, 220)
    rows = np.stack([resample(row, 10, "zeros") for row in subset.vectors("response")])
    candidate = Candidate("", "svm", "", estimator_of("svm", "C=1"), rows)
    outcome = cross_validated([candidate], subset.labels, subset.groups, full.settings.plain)
    expected = outcome_metrics(outcome, subset.labels, subset.groups, resamples=20)
    assert curve.metrics[1] == {name: expected[name] for name in length.METRICS}
    assert curve.at(11) == curve.metrics[1]
    values = [point["accuracy"].value for point in curve.metrics]
    assert curve.best() == curve.lengths[int(np.argmax(values))]
    assert curve.span("accuracy", 10) == pytest.approx(max(values[1:]) - min(values[1:]))
    # Under the paper's protocol, a point is the line of Table 2.
    papers = curves["svm, R_response, zeros (paper protocol)"]
    (line,) = (
        each
        for each in table.generators[SMALL].lines["paper"]
        if (each.classifier, each.vector) == ("svm", "response")
    )
    assert papers.at(220)["accuracy"].value == pytest.approx(line.accuracy.value)
    assert "svm, R_response, interpolate (paper protocol)" not in curves
    constant = curves["svm, constant relevance, interpolate"]
    assert constant.lengths == (10, 20, 220)
    assert all(point["auroc"].value < 0.6 for point in constant.metrics)


def test_distributions_are_tested_by_position(full):
    result, subset = distributions.measure(full), full.subsets[SMALL]
    values = np.stack([resample(row, 100) for row in subset.vectors("prompt")])
    expected = position_test(values, subset.labels, subset.groups, resamples=20)
    assert np.allclose(result.along[SMALL]["prompt"].test.adjusted, expected.adjusted, rtol=1e-6)
    assert result.along[SMALL]["response"].means["hallucinated"].count == 15
    assert result.matrices[SMALL].normal.shape == (64, 16)


def test_a_vector_that_one_generator_lacks_is_shown_of_the_other(context, tmp_path):
    folder = store(tmp_path / "s", parts=("prompt",))
    lacking = context(folder).subsets[LARGE].rows
    for example in lacking.examples:
        lacking.store.path(example, "prompt").unlink()
    result = thresholds.measure(context(folder, tmp_path / "cache"))
    vectors = {name: {each.vector for each in methods} for name, methods in result.methods.items()}
    assert vectors == {SMALL: {"prompt", "response"}, LARGE: {"response"}}
    assert [note.what for note in result.left_out] == [f"R_prompt of {LARGE}"]


def test_ablations_are_paired_with_the_anchor_on_the_same_rows(varied):
    result = ablations.measure(varied)
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
    counted = checks.measure_implicit(full).generators[SMALL]
    # Odd responses are labelled, and numbers 1, 7, 13, 19 and 25 have a span that is true.
    assert (counted.rows, counted.hallucinated, counted.changed) == (30, 15, 5)
    assert counted.strict["accuracy"] != counted.trained["accuracy"]
    subset = full.subsets[SMALL]
    assert checks.relaxed(subset.rows.examples).sum() == 10
    assert not (checks.relaxed(subset.rows.examples) & ~subset.labels).any()


def test_reliability_counts_every_row(full):
    lines = checks.measure_reliability(full).lines[LARGE]
    assert list(lines) == [table2.BEST, "svm on R_response", "novel words", "six lexical features"]
    assert all(line.count.sum() == 30 for line in lines.values())


def test_transfer_trains_on_one_generator_and_tests_on_the_other(full):
    result = checks.measure_transfer(full)
    assert result.trains == result.tests == [SMALL, LARGE]
    subsets = list(full.subsets.values())
    inputs = np.concatenate([subset.inputs("response", 220) for subset in subsets])
    labels, groups = (
        np.concatenate([getattr(subset, name) for subset in subsets]) for name in ("labels", "groups")
    )
    candidates = [Candidate("", "svm", "", estimator_of("svm", "C=1"), inputs)]
    of = np.repeat([0, 1], 30)
    outcome = cross_validated(candidates, labels, groups, full.settings.honest, train=of == 0, test=of == 1)
    expected = outcome_metrics(outcome, labels[of == 1], groups[of == 1], resamples=20)
    assert result.of(SMALL, LARGE)["auroc"].value == pytest.approx(expected["auroc"].value)
    assert result.of(SMALL, SMALL)["auroc"].value > 0.6


def test_findings_follow_their_rule(full):
    result = findings.measure(full)
    first = next(case for case in result.cases["1"] if case.where == SMALL and case.decides)
    subset = full.subsets[SMALL]
    means = [row.mean() for row in subset.vectors("response")]
    assert first.auroc.value == pytest.approx(1 - roc_auc_score(subset.labels, means))
    assert first.verdict == "holds"
    of_prompt = [
        case for case in result.cases["4"] if case.where == SMALL and "less on R_prompt" in case.what
    ]
    # The mean that the paper's Table 1 sweeps, and the SVM; not the mean in logits, nor other classifiers.
    within, across, *learned = of_prompt
    assert [within.decides, across.decides] == [True, False]
    assert [case.what for case in learned if case.decides] == ["svm on R_response, less on R_prompt"]
    for case, scaling in ((within, "within"), (across, "across")):
        ours, theirs = (
            roc_auc_score(subset.labels, -row_means(subset.vectors(vector), scaling))
            for vector in ("response", "prompt")
        )
        assert case.auroc.value == pytest.approx(ours - theirs)
    (step,) = result.cases["3"]
    assert (step.where, step.null) == (f"{SMALL} to {LARGE}", findings.NO_WORSE)
    of_matrix = [case for case in result.cases["4"] if case.what.startswith("lstm")]
    assert [case.what for case in of_matrix if case.where == LARGE] == [
        f"lstm on R* along the {way}, less the best on {vector}"
        for vector in ("R_prompt", "R_response")
        for way in ("response", "prompt")
    ]
    # The paper claims the fourth of its larger generator only.
    deciding = [case for case in of_matrix if case.decides]
    assert {case.where for case in deciding} == {LARGE}
    assert all(case.what.endswith("R_prompt") for case in deciding)
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
    pairs = list(zip(labels, outcomes, strict=True))
    first, second = (np.mean([roc_auc_score(each, row) for row in one.probabilities]) for each, one in pairs)
    assert found["auroc"].value == pytest.approx(first - second)
    first, second = (np.mean([accuracy_score(each, row) for row in one.flagged]) for each, one in pairs)
    assert found["accuracy"].value == pytest.approx(first - second)
    assert found["auroc"].low > 0


def test_what_the_lengths_explain_is_taken_out():
    lengths = np.log(np.arange(10.0, 60.0))[:, None]
    values = 3 - 2 * lengths[:, 0]
    assert np.allclose(findings._residual(values, lengths), 0)
    assert np.allclose(findings._residual(np.sin(values), lengths) @ lengths, 0)
