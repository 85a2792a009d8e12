from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lrp4rag.errors import InputError
from lrp4rag.experiments.figures.paper import EXHIBITS, by_generator, figure_4, vectors_of
from tests.experiments.figures.samples import GENERATORS, fake_rows, panels


@pytest.fixture(scope="module")
def exhibits():
    rows = fake_rows()
    return {name: make(rows) for name, make in EXHIBITS.items()}


@pytest.mark.parametrize("name", EXHIBITS)
def test_each_exhibit_is_written_with_its_numbers(name, exhibits, tmp_path):
    written = exhibits[name].write(tmp_path / "out", name)
    assert {path.name for path in written} >= {f"{name}.png", f"{name}.svg", f"{name}.csv"}
    assert all(5000 < path.stat().st_size < 150_000 for path in written if path.suffix != ".csv")
    table = pd.read_csv(tmp_path / "out" / f"{name}.csv")
    assert list(dict.fromkeys(table["generator"])) == list(GENERATORS)
    assert len(table) == len(exhibits[name].tables[name])


def test_generators_keep_their_rows_apart():
    rows = fake_rows()
    found = by_generator(rows, lambda part: (len(part), float(part.relevances[0].response[0])))
    assert list(found) == list(GENERATORS)
    assert found[GENERATORS[1]] == (48, float(rows.relevances[1].response[0]))


def test_what_the_store_lacks_is_left_out_or_refused():
    rows = fake_rows(prompt=False, matrix=False)
    assert list(vectors_of(rows)) == ["response"]
    with pytest.raises(InputError, match="no R"):
        figure_4(rows)


def test_threshold_panels_do_not_say_the_same_twice(exhibits):
    exhibit = exhibits["tables-1-and-5"]
    assert len(panels(exhibit.figure)) == 3 * len(GENERATORS)
    # Across rows both vectors have the same mean, so the table says the same of both.
    table = exhibit.tables["tables-1-and-5"].query("scaling == 'across' and chosen_on == 'reported rows'")
    by_vector = {name: part["auroc"].to_numpy() for name, part in table.groupby("vector")}
    np.testing.assert_allclose(by_vector["prompt"], by_vector["response"], atol=0.02)
