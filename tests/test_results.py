"""The figures of the README and of the page of results are those of the files behind them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.folder import load_card
from lrp4rag.report.numbers import difference, with_interval

ROOT = Path(__file__).parent.parent
COMPARED = ROOT / "experiments" / "results" / "compare"

STATE_ALONE = (
    "one hidden state of each token ([study](experiments/results/detector/README.md); forwards: at most)"
)
LIKE = "the same, told the generator, flagging where precision equals recall"
LINES = {
    "**the bundled detector**": (None, "token classifier"),
    "words that no passage has": ("novel words", "novel words"),
    "length only; of tokens, position": ("length only", "position"),
    "flag everything": ("flag everything", "flag everything"),
}
"""What the page of results calls a line of the card: of responses (None: the detector), and of tokens."""


def test_the_readme_is_short_and_its_table_is_that_of_the_card_and_the_comparison() -> None:
    """A reader in a hurry; the figures are those of the bundled card, and of the page of systems."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    costs = json.loads((COMPARED / "costs.json").read_text())["systems"]
    systems = {
        "Lookback Lens, windows": "lookback-lens-windows",
        STATE_ALONE: None,
        "words that no passage has": "novel-words",
    }
    (table,) = re.findall(r"\| \| llama-2-7b-chat .*?\n\n", text, re.DOTALL)
    ours, *lines = (cells_of(line) for line in table.strip().splitlines()[2:])
    card = load_card("default").evidence.generators
    judging = json.loads((ROOT / "docs/results/judging.json").read_text())
    forwards = judging["verdict_over_forward"]
    assert f"ours: {judging['one_over_forward']:.1f} with all the evidence" in text
    generators = (card[name].metrics["auroc"].value for name in ("llama-2-7b-chat", "llama-2-13b-chat"))
    assert ours == ["**lrp4rag**", *(f"{value:.3f}" for value in generators), f"{forwards:.1f}"]
    assert [line[0] for line in lines] == list(systems)
    for name, *cells, forwards in lines:
        system = systems[name]
        if system is None:
            assert cells == [state_alone("7b"), state_alone("13b")]
            page = (ROOT / "experiments/results/detector/README.md").read_text()
            assert f"\n| state alone | {forwards} |" in page
            continue
        for generator, cell in zip(("llama-2-7b-chat", "llama-2-13b-chat"), cells, strict=True):
            assert cell == f"{float(compared()['all', generator, system, 'auroc']['value']):.3f}", name
        assert forwards == f"{costs[system]['forwards']:.1f}", name


def state_alone(generator):
    """The AUROC of responses that the study has of a hidden state alone."""
    study = json.loads((ROOT / "experiments/results/detector/results.json").read_text())
    found = study["ways"]["responses"][f"llama-2-{generator}-chat"]
    return f"{found['state alone']['auroc']['value']:.3f}"


def section(title):
    return (ROOT / "docs/results.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def compared():
    """What the page of systems has, by rows, generator, system and metric."""
    with (COMPARED / "metrics.csv").open() as file:
        return {
            (row["rows"], row["generator"], row["system"], row["metric"]): row for row in csv.DictReader(file)
        }


def test_the_first_table_is_that_of_the_bundled_card():
    generators, generator = load_card("default").evidence.generators, ""
    (table,) = (block for block in section("How good").split("\n\n") if "**the bundled detector**" in block)
    lines = table.splitlines()[2:]
    like = [line for line in lines if LIKE in line]
    assert len(lines) == 2 * (len(LINES) + 1)
    assert len(like) == 2
    for line in lines:
        if line in like:
            continue
        first, name, *cells = cells_of(line)
        generator = first or generator
        card, (control, located) = generators[generator], LINES[name]
        metrics = card.metrics if control is None else card.controls.get(control, {})
        responses = [metrics.get(metric) for metric in ("auroc", "accuracy", "f1", "ece")]
        where = card.located[located]
        tokens = [where.tokens["auroc"], where.tokens["auprc"], where.spans["f1"], where.sentences["f1"]]
        assert cells == ["" if one is None else with_interval(one) for one in (*responses, *tokens)], line


def test_controls_that_decide_as_the_detector_does_have_the_figures_of_the_comparison():
    """The table's own controls flag from 0.5, untold who wrote what: a line says what one of them reaches
    that decides as the detector does, and another page what the detector does by the same rule."""
    text, found = section("How good"), compared()

    def shown(generator, metric, system="novel-words"):
        row = found["all", f"llama-2-{generator}-chat", system, metric]
        return f"{float(row['value']):.3f} [{float(row['low']):.2f}, {float(row['high']):.2f}]"

    assert "Accuracy, F1 and ECE of whole responses cannot" in " ".join(text.split())
    like = [cells_of(line) for line in text.splitlines() if line.startswith(f"| | {LIKE} |")]
    for generator, line in zip(("7b", "13b"), like, strict=True):
        assert line[2:6] == [shown(generator, metric) for metric in ("auroc", "accuracy", "f1", "ece")]
    ours = (shown(generator, "f1", "lrp4rag") for generator in ("7b", "13b"))
    assert f"an F1 of {' and '.join(ours)}." in " ".join(text.split())
    page = " ".join((ROOT / "docs/detector.md").read_text().split())
    card = load_card("default").evidence.generators
    for generator, words in (
        ("7b", "from an F1 of {} to {}, beside the detector's {}"),
        ("13b", "{} to {}, beside {}"),
    ):
        one = card[f"llama-2-{generator}-chat"]
        control = one.controls["novel words"]["f1"].value
        like, ours = (
            float(found["all", f"llama-2-{generator}-chat", system, "f1"]["value"])
            for system in ("novel-words", "lrp4rag")
        )
        assert words.format(f"{control:.3f}", f"{like:.3f}", f"{ours:.3f}") in page


def test_the_cost_of_relevance_is_that_of_its_file():
    measured = json.loads((ROOT / "docs/results/speed/passes.json").read_text())
    lines = [cells_of(line) for line in section("How fast").splitlines() if "make benchmark" in line]
    names = ("push_over_forward", "peak_memory_over_forward")
    assert [line[1] for line in lines] == [f"{measured[name]:.1f}" for name in names]
    words = f"takes {measured['push_over_forward']:.1f} plain forward passes"
    assert words in " ".join((ROOT / "README.md").read_text().split())


def test_what_is_extrapolated_is_called_so():
    peers = json.loads((ROOT / "docs/results/speed/table.json").read_text())["peers"]
    lxt = peers["lxt"]
    assert lxt["response_extrapolated"]
    (line,) = (line for line in section("How fast").splitlines() if "LXT's 240" in line)
    assert f"extrapolated from {lxt['units_timed']} of them" in line
    assert cells_of(line)[1] == f"≈ {lxt['response_over_ours']:.0f}"
    page = " ".join((ROOT / "docs/speed.md").read_text().split())
    assert f"{lxt['units_timed']} of {lxt['units']} of LXT" in page
    for peer in peers.values():
        sign = "≈ " if peer["response_extrapolated"] else ""
        assert f"| {sign}{peer['response_over_ours']:.0f} |" in page


def test_what_relevance_adds_has_the_figures_of_its_page():
    record = json.loads((ROOT / "experiments/results/worth/results.json").read_text())
    added, by_means = (
        {
            (one["base"], one["level"]): difference(Interval(**one["gain"]))
            for one in record["lines"]
            if (one["added"], one["generator"]) == (name, "all")
        }
        for name in ("relevance", "relevance, means only")
    )
    (table,) = (block for block in section("How good").split("\n\n") if block.startswith("| over |"))
    lines = [cells_of(line) for line in table.splitlines()[2:]]
    assert len(lines) == len(added) / 2 == 5
    for base, *cells in lines:
        assert cells == [added[base, "tokens"], added[base, "responses"], by_means[base, "responses"]]
    readme = " ".join((ROOT / "README.md").read_text().split())
    for base in ("hidden state", "all of these"):
        assert added[base, "tokens"] in readme


def test_systems_beside_ours_have_the_figures_of_their_page():
    found = compared()

    def shown(rows, generator, system, metric, style):
        value, low, high = (
            float(found[rows, generator, system, metric][key]) for key in ("value", "low", "high")
        )
        return f"{value:.3f}" if metric == "auroc" else f"{value:{style}} [{low:{style}}, {high:{style}}]"

    costs = json.loads((COMPARED / "costs.json").read_text())["systems"]
    costs["lrp4rag, learned from the sample"] = costs["lrp4rag"]
    text, paired = section("Beside other systems"), "no paired scores"
    tables = [block for block in text.split("\n\n") if block.startswith("| ")]
    for rows, table in zip(("all", "sample"), tables, strict=True):
        for line in table.splitlines()[2:]:
            name, _, *cells = cells_of(line)
            system = re.findall("`(.*?)`", name)[0]
            if system == "state alone":  # of the study, which keeps no scores to pair
                assert cells == [state_alone("7b"), paired, state_alone("13b"), paired, "1.9 at most"]
                continue
            for k, generator in enumerate(("llama-2-7b-chat", "llama-2-13b-chat")):
                assert cells[2 * k] == shown(rows, generator, system, "auroc", ".3f"), line
                behind = "behind: auroc" if rows == "all" else "behind, of the sample: auroc"
                first = ("lrp4rag",) if rows == "all" else ("lrp4rag", "lrp4rag, learned from the sample")
                assert cells[2 * k + 1] == (
                    "" if system in first else shown(rows, generator, system, behind, "+.3f")
                ), line
            assert cells[4] == (f"{costs[system]['forwards']:.1f}" if system in costs else ""), line
    chunks = shown("sample", "llama-2-13b-chat", "redeep-chunk", "behind, of the sample: auroc", "+.3f")
    assert f"({chunks})" in text


def test_suspected_errors_of_labels_are_listed_for_machines_and_read_by_nothing() -> None:
    page = (ROOT / "docs/labels.md").read_text()
    listed = json.loads((ROOT / "docs/labels.json").read_text())["suspected"]
    rows = [cells_of(line) for line in page.splitlines() if re.match(r"\| \d", line)]
    assert [(one["id"], one["generator"]) for one in listed] == [(row[0], row[1]) for row in rows]
    assert all(
        words in row[2] for one, row in zip(listed, rows, strict=True) for words in one["in_no_passage"]
    )
    assert "understated" in page
    read = [path.read_text() for path in (ROOT / "lrp4rag").rglob("*.py")]
    assert not any(re.search(r"\blabels\.json\b", text) for text in read)


def test_where_systems_fail_has_the_figures_of_its_page() -> None:
    """Each figure of the text is in a page that a command writes."""
    pages = ("breakdown", "lettuce")
    page = "".join((ROOT / f"docs/results/{name}/README.md").read_text() for name in pages)
    told = " ".join(section("Where it is good, and where it fails").split())
    found = re.findall(r"[-+]?0\.\d{3} \[[-+]?0\.\d+, [-+]?0\.\d+\]", told)
    assert len(found) > 12
    assert [one for one in found if one not in page] == []
    assert "328 of 3356" in page


def test_data_that_no_detector_learned_from_has_the_figures_of_its_page():
    text = section("On data that no detector learned from")
    sets = json.loads((ROOT / "docs/results/elsewhere/results.json").read_text())["sets"]
    (halueval,) = (part for part in sets["halueval_qa"]["parts"].values() if part["pairs"] == 849)
    lines, words = halueval["lines"], sets["wice"]["words"]
    ranked = {way: Interval.model_validate(one) for way, one in halueval["ranked"].items()}
    for one in (
        *ranked.values(),
        Interval.model_validate(sets["minimal_pairs"]["faults"][-1]["near"]["the detector"]),
    ):
        assert f"{100 * one.value:.0f} % [{100 * one.low:.0f}, {100 * one.high:.0f}]" in text
    balanced = Interval.model_validate(lines["the detector"]["metrics"]["balanced_accuracy"])
    assert f"{balanced.value:.2f} [{balanced.low:.2f}, {balanced.high:.2f}]" in text
    for name in ("the detector", "novel word"):
        assert with_interval(Interval.model_validate(words[name]["metrics"]["auroc"])) in text
    assert difference(Interval.model_validate(words["novel word"]["behind"])) in text
    for name, count in (("halueval_qa", "15 %"), ("wice", "59 %")):
        assert f"{100 * sets[name]['abstained']['value']:.0f} %" == count
        assert count in text
