from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from lrp4rag.classifiers.calibration import Contender, contenders_of
from lrp4rag.errors import LRP4RAGError
from lrp4rag.experiments.paper.bench import Way, control, nested, single
from lrp4rag.experiments.paper.settings import DEFAULTS, GRID, estimator_of
from lrp4rag.training.controls import Setting
from lrp4rag.training.folds import PAPER
from lrp4rag.training.metrics import compare, outcome_metrics
from lrp4rag.training.search import cross_validated
from tests.experiments.paper.stores import SMALL

pytestmark = pytest.mark.usefixtures("_light")


@pytest.fixture
def small(full_store, context):
    made = context(full_store, generators=(SMALL,))
    return made, made.parts[SMALL]


def machine(part):
    """What contends for the SVM on R_response, made independently."""
    return [
        contender
        for length in GRID["svm"].lengths
        for contender in contenders_of("svm", part.inputs("response", length), str(length))
        if contender.settings in GRID["svm"].settings
    ]


def test_metrics_and_differences_are_those_of_the_outcomes(small):
    context, part = small
    protocol = context.settings.honest
    first, second = (nested([Way(part, "svm", vector)], protocol) for vector in ("response", "prompt"))
    expected = cross_validated(machine(part), part.labels, part.groups, protocol)
    outcomes = context.bench.outcomes([first, second], "test")
    assert np.allclose(outcomes[0].probabilities, expected.probabilities, atol=1e-6)
    metrics, _ = context.bench.metrics([first, second], "test")
    assert metrics == outcome_metrics(outcomes[0], part.labels, part.groups, resamples=20)
    (gained,) = context.bench.differences([(first, second)], "test")
    assert gained == compare(*outcomes, part.labels, part.groups, resamples=20)


def test_lines_share_their_contenders(small):
    context, part = small
    protocol = context.settings.honest
    ways = [Way(part, "svm", vector) for vector in ("response", "prompt")]
    context.bench.outcomes([nested([way], protocol) for way in ways], "test")
    both = nested(ways, protocol)
    assert all(context.cache.holds(cell) for cell in both.cells)
    by_accuracy = nested(ways, context.settings.by_accuracy)
    assert [cell.name for cell in by_accuracy.cells] == [cell.name for cell in both.cells]
    assert by_accuracy.key != both.key


def test_more_repeats_reuse_the_first(small):
    _, part = small
    once, thrice = (
        nested([Way(part, "svm", "response")], protocol)
        for protocol in (replace(PAPER, nested=True, repeats=n) for n in (1, 3))
    )
    assert [cell.name for cell in thrice.cells[: len(once.cells)]] == [cell.name for cell in once.cells]
    assert len({cell.name for cell in thrice.cells}) == 3 * len(once.cells)


def test_the_papers_protocol_takes_the_default_setting(small):
    context, part = small
    entrant = single(Way(part, "svm", "response", "zeros"), 220, context.settings.paper)
    inputs = part.inputs("response", 220, "zeros")
    plain = Contender("x", "svm", "", estimator_of("svm", "C=1"), inputs)
    expected = cross_validated([plain], part.labels, part.groups, PAPER)
    (found,) = context.bench.outcomes([entrant], "test")
    assert np.array_equal(found.flagged, expected.flagged)
    assert estimator_of("svm", DEFAULTS["svm"])[-1].C == SVC().C


def test_controls_have_the_settings_that_classifiers_on_relevance_have(small):
    context, part = small
    protocol = context.settings.honest
    setting = Setting.of(protocol, "svm", "response")
    lines = [
        control(part, name, setting, protocol) for name in ("constant relevance (zeros)", "hidden state")
    ]
    constant, hidden = context.bench.outcomes(lines, "test")
    assert {label.split(", ")[-1] for label in constant.chosen} <= set(GRID["svm"].settings)
    assert all("hidden state" in label for label in hidden.chosen)
    # The large arrays are not kept with the part.
    assert not any("hidden" in part_name for part_name, _ in part.rows._cache)


def test_under_the_papers_protocol_a_probe_of_states_has_a_fixed_layer_and_penalty(small):
    context, part = small
    protocol = context.settings.paper
    line = control(part, "hidden state", Setting.of(protocol, "svm", "response"), protocol)
    (outcome,) = context.bench.outcomes([line], "test")
    top = len(part.rows.signal("hidden_mean")[0]) - 1
    assert set(outcome.chosen) == {f"hidden state of layer {top}, mean, logistic, C=0.001"}


def test_an_unknown_setting_names_those_there_are():
    with pytest.raises(LRP4RAGError, match=r"svm has no 'C=7' but C=0\.1"):
        estimator_of("svm", "C=7")


@pytest.mark.parametrize("table", [DEFAULTS, {name: grid.settings for name, grid in GRID.items()}])
def test_the_settings_named_here_are_the_classifiers(table):
    for classifier, settings in table.items():
        if classifier != "logistic":
            for name in [settings] if isinstance(settings, str) else settings:
                assert estimator_of(classifier, name) is not None
