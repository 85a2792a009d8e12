"""The ablation over the resampling length; built into a notebook by notebooks/build.py."""

# %% [markdown]
# # The resampling length, and what it gives away
#
# Responses differ in length, classifiers want vectors of one length. LRP4RAG (arXiv 2408.15533, eqs. 7 to
# 9) resamples R_response to a length L_new, tries L_new from 5 to 500, and finds its support vector machine
# best at 220. Most responses are shorter than that. So the question is what to put where there is nothing:
# the paper's code writes **zeros**, and then the number of zeros tells the length of the response.
#
# This notebook repeats the ablation on the small labelled sample that comes with the package, with zeros
# and with interpolation, and beside both with a control that holds nothing but the length. About two
# minutes on two cores.

# %%
import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

sys.path.insert(0, "..")  # research stands beside the package in a clone

from experiments.figures.results import draw_lengths
from lrp4rag import load_examples, load_reader
from lrp4rag.classifiers.calibration import candidates_on
from lrp4rag.lrp.resampling import MODES, resample
from lrp4rag.training.extract import extract
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import cross_validated

plt.rcParams["figure.dpi"] = 72

# %%
READER = "smollm2-135m"  # or a hub id, a folder, a .gguf file
DATA = "../examples/responses.jsonl"
QUESTIONS = 40  # fewer are faster and show less
LENGTHS = (10, 20, 40, 60, 80, 120, 220, 350)
REPEATS = 2  # of cross-validation, each with other folds

# %% [markdown]
# ## Resampling by hand
#
# Bin i of the new vector is the mean of elements i·L_old/L_new to (i+1)·L_old/L_new. Where the vector gets
# shorter, this is all there is to it. Where it gets longer, some bins hold no element, and the modes part:

# %%
short, long = np.array([4.0, 1.0, 3.0]), np.arange(1.0, 9.0)
pd.DataFrame(
    {mode: [resample(short, 6, mode).round(1), resample(long, 4, mode).round(1)] for mode in MODES},
    index=["3 values to 6", "8 values to 4"],
).T

# %% [markdown]
# * `interpolate` draws straight lines between the values: the default.
# * `pad_last` is the paper's text: the vector, then its last value again and again.
# * `zeros` is the paper's code: an empty bin is 0.
#
# Now resample a *constant* vector, which holds nothing but its length:

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 2), sharey=True, layout="constrained")
for ax, mode in zip(axes, MODES, strict=True):
    image = np.stack([resample(np.ones(count), 60, mode) for count in (15, 25, 35, 45, 55)])
    ax.imshow(image, aspect="auto", cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    ax.set(
        title=mode,
        yticks=range(5),
        yticklabels=(15, 25, 35, 45, 55),
        xlabel="position after resampling to 60",
    )
_ = axes[0].set_ylabel("length before")

# %% [markdown]
# Under `zeros` each length is another pattern. Under the other two a constant looks the same whatever its
# length (`pad_last` leaks for real vectors, which end in a run of equal values).
#
# ## The sample
#
# Only R_response is needed: one pushed tangent for each response.

# %%
examples = load_examples(DATA)[: 2 * QUESTIONS]
with tempfile.TemporaryDirectory(prefix="lrp4rag-") as store:
    extract(examples, load_reader(READER, device="cpu"), store, parts=("relevance",))
    rows = Rows.open(store)
    vectors = {
        "relevance": [relevance.response.astype(float) for relevance in rows.relevances],
        "constant": [np.ones(len(relevance.response)) for relevance in rows.relevances],
    }
tokens = np.array([len(vector) for vector in vectors["constant"]])
print(
    f"{len(rows)} responses to {len(set(rows.groups))} questions, "
    f"{tokens.min()} to {tokens.max()} tokens, median {np.median(tokens):.0f}"
)

# %% [markdown]
# ## The protocol
#
# Five-fold cross-validation, stratified by label and *grouped by question*: no model is judged on a
# question whose other response it learned from. The penalty of the support vector machine is chosen inside
# each training fold, by AUROC on inner folds that are grouped as well. `Protocol` says all this, and
# `cross_validated` obeys it; a *contender* is a classifier with its settings and its inputs.


# %%
def judged(kind, mode, lengths, labels=rows.labels):
    """Metrics with 95 % intervals; of several lengths one is chosen inside the training folds."""
    protocol = Protocol("notebook", repeats=REPEATS, mode=mode, lengths=tuple(lengths))
    contenders = [
        contender
        for length in lengths
        for contender in candidates_on(
            "svm", np.stack([resample(vector, length, mode) for vector in vectors[kind]]), f"L={length}"
        )
    ]
    outcome = cross_validated(contenders, labels, rows.groups, protocol)
    return outcome_metrics(outcome, labels, rows.groups, resamples=300), outcome


def told(interval):
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


print(Protocol("notebook", repeats=REPEATS).words)

# %% [markdown]
# ## What can be learned about the length?
#
# First a question with a known answer. Forget hallucination; let the label be *longer than the median*. A
# representation that hides the length should leave a classifier at chance, 0.5.

# %%
longer = tokens > np.median(tokens)
pd.DataFrame(
    {
        mode: {kind: told(judged(kind, mode, [220], longer)[0]["auroc"]) for kind in vectors}
        for mode in ("zeros", "interpolate")
    }
).rename_axis("AUROC for 'longer than the median', L = 220", axis=1)

# %% [markdown]
# With `zeros`, constant vectors are enough to tell long from short responses. With `interpolate` a constant
# tells nothing. Real relevance tells something about the length in either mode: it falls along the
# response, and averages of more tokens are smoother. That part belongs to relevance; the rest is an
# artefact of resampling.
#
# ## The ablation
#
# Now the real label, for every length, with both modes, on relevance and on the constant control.

# %%
curves = {}
for kind in vectors:
    for mode in ("zeros", "interpolate"):
        metrics = [judged(kind, mode, [length])[0] for length in LENGTHS]
        curves[f"{kind}, {mode}"] = dict(zip(LENGTHS, metrics, strict=True))
draw_lengths(curves)

# %%
pd.DataFrame(
    {name: [told(point["auroc"]) for point in curve.values()] for name, curve in curves.items()},
    index=pd.Index(LENGTHS, name="L_new"),
).rename_axis("AUROC", axis=1)

# %% [markdown]
# How to read it:
#
# * The control with `interpolate` is flat at 0.5 by construction. That with `zeros` can leave it, in either
#   direction, from the length at which the first response is too short. Whatever it reaches there, it
#   reaches without any relevance.
# * Compare relevance with the control *of the same mode*. A result with `zeros` may owe as much to the
#   zeros as its control does.
# * The bands are wide: each point rests on a few dozen questions. Ups and downs from one length to the next
#   are mostly noise, and the same noise for all, since the folds are the same.
#
# ## The best of many is too good
#
# The paper reports the best of all lengths, chosen by looking at the results. A maximum over noisy values
# is too high on average. The honest way is to choose inside the training folds, where the test rows cannot
# be seen:

# %%
search = {}
for mode in ("zeros", "interpolate"):
    values = np.array([point["auroc"].value for point in curves[f"relevance, {mode}"].values()])
    honest, outcome = judged("relevance", mode, LENGTHS)
    search[mode] = {
        "best, chosen by looking": f"{values.max():.2f} (L = {LENGTHS[int(values.argmax())]})",
        "mean over lengths": f"{values.mean():.2f}",
        "chosen inside the folds": told(honest["auroc"]),
        "lengths that were chosen": ", ".join(sorted({label.split(",")[0] for label in outcome.chosen})),
    }
pd.DataFrame(search).rename_axis("AUROC of relevance", axis=1)

# %% [markdown]
# Where the last row names many lengths, the folds do not agree on a best one: the sample gives no reason to
# prefer any.
#
# ## What to take away
#
# * Put a constant through the same pipeline. What it scores is what the pipeline gives away.
# * `interpolate` is the default of this package; `zeros` and `pad_last` are there to reproduce others.
# * Group folds by question, choose inside the folds, and show intervals. On a sample like this one they say
#   that no length can be recommended; for that, use your own labelled data (`lrp4rag train --length`).
