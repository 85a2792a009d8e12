"""The composites compared; built into a notebook by notebooks/build.py."""

# %% [markdown]
# # Three sets of rules, one response
#
# Relevance divides a logit among the prompt's tokens. A logit is no sum of contributions from tokens, so
# there is no single right way to divide it. LRP makes the choice explicit: a *local rule* for every kind of
# operation in the network says how what arrives at its output is shared out among its inputs. A *composite*
# is one rule for each kind. lrp4rag has three:
#
# * `paper`: the equations of LRP4RAG (arXiv 2408.15533) as they are written;
# * `attnlrp`: AttnLRP (Achtibat et al., arXiv 2402.05602), which is what the paper's own code ran. The
#   default;
# * `cp_lrp`: CP-LRP (Ali et al., ICML 2022).
#
# This notebook puts them side by side on one response: what they choose, what they show, whether it adds
# up, and which of them knows best what the logit depends on. Some minutes on two cores.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from lrp4rag import attribute, check_conservation, load_examples, load_reader, relevance_mode
from lrp4rag.lrp import COMPOSITES
from lrp4rag.lrp.attribution import span_weights
from lrp4rag.lrp.units import grouped, prompt_units, response_units

plt.rcParams.update({"figure.dpi": 72, "figure.constrained_layout.use": True})
COLOURS = {"paper": "#d55e00", "attnlrp": "#0072b2", "cp_lrp": "#009e73"}

# %%
READER = "smollm2-135m"  # or a hub id, a folder, a .gguf file
DATA = "../examples/responses.jsonl"
CHOSEN = "wind-farm-hallucinated"

# %% [markdown]
# ## What they choose
#
# Linear layers are treated alike by all: a weight passes on what it multiplied. The composites differ in
# the four things that are not linear:

# %%
pd.DataFrame([composite.as_dict() for composite in COMPOSITES.values()]).set_index("name")

# %% [markdown]
# * **share**: in a product a·b (attention weights times values, gate times up-projection) each factor gets
#   the whole relevance (1) or half of it (1/2).
# * **norm**: RMS normalisation divides by the size of the vector. `jacobian` differentiates through that
#   size, `frozen` takes it as a constant.
# * **activation**: the gate's non-linearity f(x). `jacobian` uses its slope f'(x), `ratio` uses f(x)/x, so
#   that f(x) is passed on whole, `frozen` takes the gate as a constant.
# * **softmax**: attention weights. `jacobian` asks how they would change, `frozen` takes them as given:
#   only what was attended to gets relevance, not why.

# %%
reader = load_reader(READER, device="cpu")
example = next(each for each in load_examples(DATA) if each.id == CHOSEN)
encoded = reader.encode(example)
names = encoded.segment_names
sentences = response_units(encoded, "sentence")
for k, passage in enumerate(example.passages, 1):
    print(f"Passage {k}: {passage}")
for k, unit in enumerate(sentences, 1):
    print(f"Sentence {k}: {unit.label}")

# %% [markdown]
# ## What they show
#
# For each composite: the relevance of every segment for every response token (pushed), and the relevance of
# every prompt token for every sentence (pulled, one cotangent for each sentence; it gives the mean over the
# sentence's tokens). `attribute` does the first; the second uses the same open `flow`.

# %%
relevances, sentence_rows = {}, {}
spans = [(unit.start, unit.end) for unit in sentences]
for name in COMPOSITES:
    with relevance_mode(reader.model, name) as flow:
        relevances[name] = attribute(reader, encoded, segments=True, own=True, flow=flow, keep=True)
        sentence_rows[name] = flow.pull(encoded, span_weights(encoded, spans)).numpy()
print("by segment:", relevances["attnlrp"].by_segment.shape, " by sentence:", sentence_rows["attnlrp"].shape)


# %%
def shortened(text, width=34):
    return text if len(text) <= width else text[: width - 1] + "…"


def heatmap(values, ax, limit, **options):
    """Red against blue, white at 0; stronger values than `limit` (logits) are drawn like it."""
    sns.heatmap(values, ax=ax, cmap="vlag", vmin=-limit, vmax=limit, **options)
    ax.collections[0].colorbar.set_label("logits")


order = [*range(2, len(names)), 1, 0]
fig, axes = plt.subplots(1, 3, figsize=(14, 1.8 + 0.5 * len(sentences)), sharey=True)
for ax, (name, relevance) in zip(axes, relevances.items(), strict=True):
    values = grouped(relevance.by_segment, sentences).T[:, order]
    heatmap(
        values,
        ax,
        limit=np.abs(values).max(),
        annot=True,
        fmt=".0f",
        xticklabels=[names[k] for k in order],
        yticklabels=[shortened(unit.label) for unit in sentences],
    )
    ax.set_title(name)
    ax.tick_params(axis="x", rotation=40)

# %% [markdown]
# Each panel has its own colour scale. Look at the signs: `cp_lrp` and `attnlrp` mostly agree on which
# passage supports which sentence. The numbers of `paper` are small, and their sign changes from cell to
# cell.
#
# The same by words of the passages:

# %%
words = prompt_units(encoded, "word")
in_passage = [k for k, unit in enumerate(words) if encoded.segments[unit.tokens[0]] >= 2]
fig, axes = plt.subplots(3, 1, figsize=(14, 1.6 + 3 * (0.5 + 0.22 * len(sentences))), sharex=True)
for ax, (name, rows) in zip(axes, sentence_rows.items(), strict=True):
    values = grouped(rows, words)[:, in_passage]
    heatmap(
        values,
        ax,
        limit=np.quantile(np.abs(values), 0.98),
        xticklabels=[words[k].label for k in in_passage],
        yticklabels=range(1, len(sentences) + 1),
    )
    ax.set(title=name, ylabel="sentence")
    ax.tick_params(axis="y", rotation=0)
axes[-1].tick_params(axis="x", labelsize=8)

# %%
by_token = pd.DataFrame({name: rows.mean(0) for name, rows in sentence_rows.items()})
agreement = by_token.corr(method="spearman")
agreement.round(2)

# %% [markdown]
# The table holds rank correlations over all tokens of the prompt, averaged over sentences. The two
# composites that freeze the norm resemble each other; `paper` goes its own way.
#
# ## Does it add up?
#
# If a rule conserves, what arrives at an operation's output is what leaves at its inputs. If all rules do,
# the relevance of all inputs (prompt, and the response's own earlier tokens) sums to the logit.

# %%
totals = pd.DataFrame(
    {
        name: {
            "mean logit": relevance.logits.mean(),
            "from the passages": relevance.by_segment[2:].sum(0).mean(),
            "from question and template": relevance.by_segment[:2].sum(0).mean(),
            "from the response's own tokens": relevance.own.mean(),
            "share of the logit": (relevance.total + relevance.own).sum() / relevance.logits.sum(),
        }
        for name, relevance in relevances.items()
    }
)
totals.round(2)

# %% [markdown]
# The logit is the same for all three: rules change how it is divided, never what the model computes. Only
# `cp_lrp` divides all of it. Where do the others lose it? `check_conservation` follows the mean logit of
# the response back through the layers:

# %%
followed = {name: check_conservation(reader.model, name, tokens=encoded) for name in COMPOSITES}

fig, ax = plt.subplots(figsize=(10, 3.6))
for name, found in followed.items():
    ax.plot(
        [step.layer for step in found.steps],
        [step.leaving for step in found.steps],
        color=COLOURS[name],
        label=name,
    )
ax.axhline(found.logit, color="0.4", ls=":", label="mean logit")
ax.invert_xaxis()
ax.set(
    xlabel="layer, from the logit (left) back to the embeddings (right)",
    ylabel="relevance that has arrived (logits)",
)
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.15))
sns.despine(ax=ax)

# %%
lost = {
    name: {
        part: sum(step.lost for step in found.steps if step.part == part)
        for part in ("readout", "mlp", "attention")
    }
    for name, found in followed.items()
}
pd.DataFrame(lost).round(2)

# %% [markdown]
# The table adds up the losses over layers, in logits (negative: relevance was made). `cp_lrp` loses nothing
# anywhere. `attnlrp` loses in attention only, in the Jacobian of the softmax: raising all attention scores
# together changes nothing, so their relevance cancels. `paper` loses nearly the whole logit at its first
# step: the output does not change when the vector before the final norm is scaled, so its Jacobian passes
# on nothing of the vector itself.
#
# ## `paper` is Gradient × Input
#
# With relevance divided by a layer's output and multiplied by its input, layer after layer, outputs cancel
# against the next layer's inputs, and what is left is the gradient times the embedding (the paper's small
# epsilon aside). So plain autograd on the untouched model must give the same numbers:


# %%
n, t = len(encoded.prompt_ids), len(encoded.response_ids)
ids = torch.tensor([*encoded.prompt_ids, *encoded.response_ids[:-1]])
targets = torch.tensor(encoded.response_ids)


def mean_logit(embeddings):
    """Of the response's tokens; each is read at the position before it."""
    logits = reader.model(inputs_embeds=embeddings[None]).logits[0, -t:]
    return logits.gather(1, targets[:, None]).mean()


embeddings = reader.model.get_input_embeddings()(ids).detach().requires_grad_()
(gradient,) = torch.autograd.grad(mean_logit(embeddings), embeddings)
reference = (gradient * embeddings).sum(-1)[:n].detach().numpy()

r_prompt = {}
for name in COMPOSITES:
    with relevance_mode(reader.model, name) as flow:
        r_prompt[name] = flow.pull(encoded, torch.full((1, t), 1 / t))[0].numpy()

difference = np.abs(r_prompt["paper"] - reference).max() / np.abs(reference).max()
print(f"paper and Gradient × Input differ by at most {difference:.0e} of the largest value")
for name, values in r_prompt.items():
    print(f"{name}: correlation with Gradient × Input {np.corrcoef(values, reference)[0, 1]:+.3f}")
assert difference < 1e-3

# %% [markdown]
# ## Which of them knows what the logit depends on?
#
# Agreement with each other proves nothing. A test that knows nothing of LRP: remove the passages' tokens
# (set their embeddings to zero), the most relevant first, and watch the mean logit of the response. If
# relevance tells what the logit depends on, it falls fast; and if we remove the least relevant first, it
# falls late. The area between the two curves is a measure of *faithfulness*.

# %%
FRACTIONS = np.linspace(0, 1, 6)


@torch.no_grad()
def removal_curve(ranked):
    values = []
    for part in FRACTIONS:
        left = embeddings.detach().clone()
        left[ranked[: round(part * len(ranked))].copy()] = 0
        values.append(float(mean_logit(left)))
    return np.array(values)


content = np.flatnonzero(np.array(encoded.segments) >= 2)
most_first, least_first = {}, {}
for name, values in r_prompt.items():
    ranked = content[np.argsort(-values[content])]
    most_first[name], least_first[name] = removal_curve(ranked), removal_curve(ranked[::-1])

# %%
fig, axes = plt.subplots(1, 3, figsize=(12, 3.2), sharey=True)
area = {}
for ax, name in zip(axes, COMPOSITES, strict=True):
    area[name] = np.trapezoid(least_first[name] - most_first[name], FRACTIONS)
    ax.plot(FRACTIONS * 100, most_first[name], color=COLOURS[name], label="most relevant first")
    ax.plot(FRACTIONS * 100, least_first[name], color=COLOURS[name], ls="--", label="least relevant first")
    ax.set(title=f"{name}: area {area[name]:+.2f} logits", xlabel="passage tokens removed (%)")
    ax.legend(frameon=False, fontsize=8)
axes[0].set_ylabel("mean logit")
sns.despine()
print("largest area:", max(area, key=area.get))

# %% [markdown]
# One response is an illustration, not a measurement. [docs/faithfulness.md](../docs/faithfulness.md) has
# the same test, and two others, on a hundred prompts, with intervals and against other methods; there
# `attnlrp` is ahead of the other two composites in every measure.
#
# ## Why `attnlrp` is the default
#
# * `paper`, taken literally, is Gradient × Input. It is local: it tells what an infinitesimal change of an
#   embedding would do, and in a network of norms and gates that says little about what a token contributed.
# * `cp_lrp` adds up exactly, which makes it the right tool for bookkeeping (and for checking that a model
#   is supported: `lrp4rag check`). The price is that it is blind to *why* the model attended where it did.
# * `attnlrp` keeps the softmax's say, loses part of the sum there, and ranks tokens best. It is also what
#   the published results were really computed with.
#
# To use another: `attribute(..., composite="cp_lrp")`, `lrp4rag train --composite cp_lrp`. A detector
# belongs to the composite it was trained with; any other is refused.
