import json

import numpy as np
import pytest

from lrp4rag.classifiers import Features, Model
from lrp4rag.classifiers.folder import CARD, ESTIMATOR, load_card
from lrp4rag.features.units import smoothed
from lrp4rag.training.vector_detector import fit_vector_detector, token_threshold
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from tests.classifiers.samples import READER, labelled_rows, relevance_of


@pytest.fixture(scope="module")
def detector():
    rows, labels, flags = labelled_rows()
    return fit_vector_detector(rows, labels, token_flags=flags, features=Features(length=30))


def test_it_tells_hallucinated_from_faithful(detector):
    rows, labels, flags = labelled_rows(seed=1)
    probabilities = detector.predict_proba(rows)
    assert probabilities.shape == (60,)
    assert ((probabilities >= 0.5) == labels).mean() > 0.9
    verdict = detector.predict(rows[1])
    assert verdict.hallucinated
    assert verdict.probability == probabilities[1]
    start = rows[1].encoded.response_offsets[int(flags[1].argmax())][0]
    assert any(span.end > start for span in verdict.spans)
    assert detector.predict_proba([]).shape == (0,)


def test_saved_and_loaded_it_is_the_same(detector, tmp_path):
    rows, _, _ = labelled_rows(seed=2)
    folder = detector.save(tmp_path / "d")
    loaded = Model.load(folder)
    assert np.array_equal(loaded.predict_proba(rows), detector.predict_proba(rows))
    assert loaded.card.model_copy(update={"estimator_sha256": "", "sha256": ""}) == detector.card
    assert sorted(path.name for path in folder.iterdir()) == [CARD, ESTIMATOR]
    detector.save(folder)  # a detector may be replaced
    assert [path.name for path in tmp_path.iterdir()] == ["d"]
    (folder / ESTIMATOR).unlink()
    assert load_card(folder).rows == 60  # without the estimator


@pytest.mark.parametrize("beside_a_detector", [True, False])
def test_it_does_not_write_into_a_folder_of_other_files(detector, tmp_path, beside_a_detector):
    if beside_a_detector:
        detector.save(tmp_path)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="other files"):
        detector.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(InputError, match="this is no folder"):
        detector.save(tmp_path / "thesis.tex")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"reader": {**READER, "digest": "9876", "name": "other"}}, ["tiny", "other", "0123", "9876"]),
        ({"composite": "cp_lrp"}, ["composite attnlrp", "composite cp_lrp"]),
    ],
)
def test_relevance_of_another_reader_or_composite_is_refused_with_both_named(detector, given, names):
    with pytest.raises(InputError) as caught:
        detector.predict(relevance_of([1.0, 2.0], **given))
    assert all(name in str(caught.value) for name in names)


def test_another_dtype_only_warns_and_another_name_does_not(detector):
    with pytest.warns(LRP4RAGWarning, match="float32, this is bfloat16"):
        detector.predict(relevance_of([1.0, 2.0], reader={**READER, "dtype": "bfloat16"}))
    detector.predict(relevance_of([1.0, 2.0], reader={**READER, "name": "a copy"}))


def test_training_on_two_readers_at_once_is_refused():
    rows, labels, _ = labelled_rows(20)
    mixed = [*rows[:-1], relevance_of([1.0] * 20, reader={**READER, "digest": "9876"})]
    with pytest.raises(InputError, match="one reader"):
        fit_vector_detector(mixed, labels)


def test_another_feature_version_is_refused(detector, tmp_path):
    folder = detector.save(tmp_path / "d")
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**card, "feature_version": 99}))
    with pytest.raises(InputError, match="feature version 99, and this lrp4rag reads 7 and 3"):
        Model.load(folder)


def test_threshold_maximises_f1_over_all_tokens():
    rows = [relevance_of([0.0, 1.0, 2.0, 3.0])]
    assert token_threshold(rows, [np.array([True, True, False, False])], window=1) == 2
    assert token_threshold(rows, [np.ones(4, dtype=bool)], window=1) == 3  # strictly below: the last stays
    assert token_threshold(rows, [np.zeros(4, dtype=bool)], window=1) == 0  # none is

    rows, _, flags = labelled_rows()
    scores, truth = np.concatenate([smoothed(row.total) for row in rows]), np.concatenate(flags)
    f1 = {
        cut: 2 * ((scores < cut) & truth).sum() / ((scores < cut).sum() + truth.sum())
        for cut in (token_threshold(rows, flags), *np.linspace(scores.min(), scores.max(), 200))
    }
    assert next(iter(f1.values())) >= max(f1.values()) - 1e-12
