"""The paper's Figures 2 to 5 on a small sample; built into a notebook by notebooks/build.py."""

# %% [markdown]
# # Hallucinated against normal responses
#
# Do hallucinated responses draw less on their prompt than others? LRP4RAG (arXiv 2408.15533) answers with
# four figures: box plots, curves along the text, heatmaps, and a test by position. This notebook makes the
# same four from the labelled examples that come with the package, and then asks what else could have made
# them.
#
# The examples are few and were written by hand. So the notebook teaches how to look; what holds for real
# generators is told by the same figures on RAGTruth's responses (`python -m experiments reproduce`). On two
# cores it takes some minutes, nearly all of them for extracting relevance.

# %%
import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

sys.path.insert(0, "..")  # research stands beside the package in a clone

from experiments.paper import distributions
from experiments.paper.distributions import draw_tests, position_test
from experiments.tokens.candidates import lexical_features
from lrp4rag import load_examples, load_reader
from lrp4rag.features.units import smoothed
from lrp4rag.lrp import resample
from lrp4rag.training.extract import extract
from lrp4rag.training.metrics import intervals
from lrp4rag.training.rows import Rows

# %matplotlib inline
plt.rcParams["figure.dpi"] = 72

# %%
READER = "smollm2-135m"  # or a hub id, a folder, a .gguf file
DATA = "../examples/responses.jsonl"
QUESTIONS = 30  # of 40; fewer are faster and show less

# %% [markdown]
# ## The data
#
# Every question has two responses to one prompt, a faithful one and a hallucinated one.

# %%
examples = load_examples(DATA)[: 2 * QUESTIONS]
print("Passages:", *examples[0].passages, sep="\n  ")
for example in examples[:2]:
    print("Hallucinated:" if example.hallucinated else "Faithful:", example.response, sep="\n  ")
print(f"{len(examples)} responses, {sum(example.hallucinated for example in examples)} of them hallucinated")

# %% [markdown]
# ## Relevance, once
#
# Relevance is expensive, everything after it is cheap. So it is extracted into a *store*, a folder that can
# be read again and again (and an extraction that was killed goes on where it stopped). We ask for
# `relevance` (R_response, pushed), `prompt` (R_prompt) and `matrix-16x16` (R*, resampled to 16 response
# bins and 16 prompt bins). `Rows` reads what the store holds.

# %%
store = tempfile.TemporaryDirectory(prefix="lrp4rag-")
extraction = extract(
    examples, load_reader(READER, device="cpu"), store.name, parts=("relevance", "prompt", "matrix-16x16")
)
rows = Rows.open(store.name)
print(f"{extraction.computed} responses extracted, {len(extraction.failures)} failed")

# %%
lengths = np.array([len(relevance.response) for relevance in rows.relevances])
pd.DataFrame({"class": np.where(rows.labels, "hallucinated", "normal"), "response tokens": lengths}).groupby(
    "class"
).describe().round(1)

# %% [markdown]
# ## Figure 2: the mean
#
# One number for each response: its mean relevance. The means of R_prompt and of R_response are one and the
# same number (both are the mean of the whole matrix), so the upper boxes agree. The paper scales every row
# to (0, 1) by its own smallest and largest value first. Then the mean no longer says how much relevance
# there is, but how peaked the row is, and the two vectors differ.

# %%
vectors = {
    "prompt": [relevance.prompt for relevance in rows.relevances],
    "response": [relevance.response for relevance in rows.relevances],
}
spreads = {"all examples": distributions.spread(vectors, rows.labels)}
distributions.draw_spreads(spreads)

# %%
columns = ["scale", "vector", "class", "count", "median", "q1", "q3", "auroc"]
distributions.spreads_table(spreads)[columns].round(4)

# %% [markdown]
# `auroc` is how often, of a hallucinated and a normal response, the hallucinated one has the *lower* mean;
# 0.5 is chance. How sure is it, with so few responses? The bootstrap draws the questions again and again,
# both responses of a question together:

# %%
means = np.array([relevance.response.mean() for relevance in rows.relevances])


def auroc_of(scores, labels=rows.labels, groups=rows.groups):
    """AUROC with its 95 % interval; a high score should mean hallucinated."""
    return intervals(labels, scores, groups, threshold=np.inf, resamples=500)["auroc"]


def told(interval):
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


print("mean relevance, low is hallucinated: AUROC", told(auroc_of(-means)))

# %% [markdown]
# ## Figure 3: along the text
#
# Every vector is resampled to 100 positions and averaged over its class. The bands are 95 % bootstrap
# intervals over questions.

# %%
resampled = {name: np.stack([resample(row, 100) for row in values]) for name, values in vectors.items()}
curves = {
    name: distributions.class_curves(values, rows.labels, rows.groups) for name, values in resampled.items()
}
distributions.draw_curves({"all examples": curves})

# %% [markdown]
# Two shapes belong to the method and not to hallucination, since both classes have them. Along the prompt,
# the peaks are its fixed parts: control tokens, the question, the instruction at the end. Along the
# response, relevance to the prompt falls, because later tokens can rest on the response itself. Only a
# *gap* between the curves says something about hallucination, and only where the bands are apart.
#
# ## Figure 4: the matrix
#
# R* of both classes, response down and prompt across, and their difference.

# %%
distributions.draw_matrices({"all examples": distributions.mean_matrices(rows.matrices, rows.labels)})

# %% [markdown]
# What all responses share, a diagonal, is larger than what divides them. The difference, on the same scale,
# is fainter, and here it lies at the end: late parts of a normal response still rest on late parts of the
# passages. A heatmap of one response (the notebook `relevance_heatmap`) is a picture of that response;
# averages of heatmaps show mostly the prompt's layout.
#
# ## Figure 5: a test at every position
#
# The paper tests every position with Mann-Whitney U, on 200 random draws of 200 samples, and shows the
# median p. A p-value depends on the number of samples, and theirs was a choice. The same relevance, at one
# position after the other, with smaller and larger draws:

# %%
sizes = [size for size in (8, 16, 32) if size < rows.labels.sum()]
pd.DataFrame(
    [
        {
            "samples a class": size,
            "median p, median over positions": np.median(test.median_p),
            "positions with median p < 0.05 (%)": 100 * (test.median_p < 0.05).mean(),
        }
        for size in sizes
        for test in [
            position_test(resampled["response"], rows.labels, rows.groups, samples=size, resamples=2)
        ]
    ]
).round(3)

# %% [markdown]
# Nothing about the responses changed from line to line. What does not depend on the number is the effect:
# the AUROC at each position (bottom). And with 100 positions tested, some p will be small by chance, so the
# middle panel corrects for their number.

# %%
tests = {name: position_test(values, rows.labels, rows.groups) for name, values in resampled.items()}
draw_tests({"all examples": tests})

# %% [markdown]
# ## What else could it be?
#
# Whatever differs between the classes can make these figures. Two simple things that need no model: the
# length of the response, and how many of its words no passage has.

# %%
novel = np.array([lexical_features(example)[1] for example in rows.examples])
scores = {
    "mean relevance (low)": -means,
    "lowest stretch of 17 tokens (low)": -np.array(
        [smoothed(relevance.response).min() for relevance in rows.relevances]
    ),
    "length": lengths.astype(float),
    "words that no passage has": novel,
}
pd.DataFrame({"AUROC [95 % interval]": {name: told(auroc_of(values)) for name, values in scores.items()}})

# %% [markdown]
# If these rows overlap, then the sample cannot tell whether relevance sees more than length or new words.
# It says that *this sample is too small to decide*, not that they are equal. On larger data every result of
# this package stands beside such controls.
#
# The data have one advantage: the prompt is the same within a pair. Comparing each hallucinated response
# with the faithful one to the same question takes away everything that comes from the prompt:

# %%
order = np.argsort(rows.groups, kind="stable")
pairs = order.reshape(-1, 2)
hallucinated = np.where(rows.labels[pairs[:, 0]], pairs[:, 0], pairs[:, 1])
faithful = pairs.sum(1) - hallucinated
lower = means[hallucinated] < means[faithful]
print(f"the hallucinated response has less relevance in {lower.sum()} of {len(lower)} pairs")
print(f"Wilcoxon signed-rank test: p = {wilcoxon(means[hallucinated], means[faithful]).pvalue:.3f}")

# %% [markdown]
# ## Where, rather than whether
#
# A response is called hallucinated for a few words. Its mean is diluted by all the others. The labelled
# spans let us look at tokens: is relevance, averaged over 17 neighbours, lower inside them?

# %%
responses = [k for k in range(len(rows)) if rows.labels[k]]
flags = [rows.token_flags[k] for k in responses]
relevance_of_tokens = [smoothed(rows.relevances[k].response) for k in responses]
places = [np.linspace(0, 1, len(flag)) for flag in flags]
source = np.repeat(rows.groups[responses], [len(flag) for flag in flags])
inside = np.concatenate(flags)
pd.DataFrame(
    {
        "AUROC for labelled tokens": {
            "low relevance": told(auroc_of(-np.concatenate(relevance_of_tokens), inside, source)),
            "position in the response": told(auroc_of(np.concatenate(places), inside, source)),
        }
    }
)

# %% [markdown]
# Position is the control here: hallucinations tend to come late, where relevance is low for everybody. How
# much of it is left at the same place? We take away what position explains, by a straight line through all
# tokens:

# %%
place, value = np.concatenate(places), np.concatenate(relevance_of_tokens)
residual = value - np.polyval(np.polyfit(place, value, 1), place)
print("low relevance, less its trend along the response:", told(auroc_of(-residual, inside, source)))

# %% [markdown]
# And by kind of hallucination: an addition from nothing against a fact that was changed.

# %%
by_kind = {"baseless": [], "contradiction": [], "not labelled": []}
for k, values in zip(responses, relevance_of_tokens, strict=True):
    starts = np.array(rows.relevances[k].encoded.response_offsets)[:, 0]
    kinds = np.full(len(values), "not labelled", dtype=object)
    for label in rows.examples[k].labels:
        kinds[(starts >= label.start - 1) & (starts < label.end)] = label.kind
    for kind, found in by_kind.items():
        found.extend(values[kinds == kind])
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.boxplot(
    list(by_kind.values()),
    tick_labels=list(by_kind),
    orientation="horizontal",
    showfliers=False,
    widths=0.6,
)
ax.set(xlabel="relevance averaged over 17 tokens (logits)")
ax.spines[["top", "right"]].set_visible(False)

# %%
pd.DataFrame(
    {
        kind: {"tokens": len(found), "median (logits)": np.median(found)}
        for kind, found in by_kind.items()
        if found
    }
).T.round(4)

# %% [markdown]
# Whole sentences made from nothing draw little on the prompt. A wrong number in an otherwise faithful
# sentence is different: the sentence around it rests on its passage, and so, usually, does the wrong
# number. Low relevance means *not from the prompt*; it does not mean *wrong*.
#
# ## What to take away
#
# * Look at an effect (AUROC, with its interval) before a p-value, and at the controls before either.
# * Draw the bootstrap over questions, not over responses: responses to one prompt are not independent.
# * Fixed parts of the prompt and the fall along the response are in every figure; the question is the gap.
# * Relevance is stronger at telling *where* than *whether*.

# %%
store.cleanup()
