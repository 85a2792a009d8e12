"""From a response to its heatmap; built into a notebook by notebooks/build.py."""

# %% [markdown]
# # From a response to its heatmap
#
# A language model was given a question and some passages, and answered. Which parts of the answer rest on
# the passages, and which did the model make up?
#
# lrp4rag replays the answer through a model that it can look into (the *reader*) and asks, for every token
# of the response, what its logit is made of. Layer-wise Relevance Propagation (LRP) divides that logit
# among the prompt's tokens. The share of a token is its *relevance*: a number in logits, with either sign.
#
# This notebook takes one response, computes its relevance in every form that the package offers, and draws
# it. You know transformers; nothing about LRP is assumed. On two cores it takes about a minute.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from lrp4rag import Detector, Example, attribute, load_examples, load_reader, relevance_mode
from lrp4rag.lrp.units import grouped, prompt_units, response_units
from lrp4rag.reader.encoding import tokens_in

plt.rcParams.update({"figure.dpi": 72, "figure.constrained_layout.use": True})

# %%
READER = "smollm2-135m"  # or a hub id, a folder, a .gguf file
DATA = "../examples/responses.jsonl"
CHOSEN = "dam-hallucinated"

# %% [markdown]
# ## The example
#
# An `Example` holds the question, the passages, the response, and where it was annotated, the spans that no
# passage supports. `Example` makes one from your own texts and locates them in the prompt:

# %%
own = Example(
    question="How tall is the tower?",
    passages=["The tower is 31 metres tall.", "It stands on an island."],
    response="It is 31 metres tall.",
)
print(own.prompt)

# %% [markdown]
# For the rest of the notebook we take one from the labelled examples that come with the package. They were
# written by hand, so we know what is wrong in them.

# %%
example = next(each for each in load_examples(DATA) if each.id == CHOSEN)
print("Question:", example.question)
for number, passage in enumerate(example.passages, 1):
    print(f"Passage {number}: {passage}")
print("Response:", example.response)
for label in example.labels:
    print(f"  hallucinated ({label.kind}): {example.response[label.start : label.end]!r}")

# %% [markdown]
# ## The verdict
#
# A `Detector` brings its reader and judges the response in one call. A verdict displays itself: the suspect
# words are marked, each sentence has its probability, and a suspect one the passage that it rests on most.
# The bundled detector decides without relevance, and pulls it for suspect sentences only. The rest of the
# notebook computes it for everything.

# %%
detector = Detector.load(device="cpu")
detector.judge(example)

# %% [markdown]
# ## The reader sees tokens
#
# `encode` puts the prompt into the reader's chat template and turns prompt and response into tokens. Every
# token keeps its characters (`offsets`), and every token of the prompt its *segment*: a passage, the
# question, or the template, which is everything else.

# %%
reader = load_reader(READER, device="cpu")
encoded = reader.encode(example)
names = encoded.segment_names
n, t = len(encoded.prompt_ids), len(encoded.response_ids)
print(f"n = {n} prompt tokens, t = {t} response tokens")
pd.Series([names[k] for k in encoded.segments], name="prompt tokens").value_counts()

# %% [markdown]
# ## Push and pull
#
# With *local rules* in place of its non-linear parts (see the notebook `rules`), the network becomes a
# linear map J from the embeddings to the logits. The relevance of prompt token i for response token j is
#
# $$R^*_{ji} = \langle e_i, (J^\top 1_j)_i \rangle$$
#
# a matrix of t rows and n columns. Nobody has to build it to know its sums, because J is linear at both
# ends:
#
# * **push** a *tangent* forward: any weighting of the *prompt's* tokens, for all response tokens at once;
# * **pull** a *cotangent* back: any weighting of the *response's* tokens, for all prompt tokens at once.
#
# Each costs about as much as a few forward passes. `relevance_mode` puts the model into this state and
# restores it at the end of the block. The weights are plain tensors:

# %%
with relevance_mode(reader.model, "attnlrp") as flow:
    r_response = flow.push(encoded, torch.full((1, n), 1 / n), keep=True)[0].numpy()
    r_prompt = flow.pull(encoded, torch.full((1, t), 1 / t))[0].numpy()
print("R_response:", r_response.shape, " R_prompt:", r_prompt.shape)

# %% [markdown]
# Those two vectors are the ones of the paper (LRP4RAG, arXiv 2408.15533):
#
# * `R_response` has one number for each **response** token: the mean of its row. It says how much this
#   token draws on the prompt at all. Where it is low, the model went on from its own words.
# * `R_prompt` has one number for each **prompt** token: the mean of its column. It says how much the
#   response as a whole draws on this token.
#
# For everyday use there is one call that returns all of it. We ask for the sums by segment, for `R_prompt`,
# for the whole matrix, and for the relevance to the response's own earlier tokens (`own`). The matrix is
# the only part that is slow: it takes a cotangent for each response token.

# %%
relevance = attribute(reader, encoded, segments=True, prompt=True, matrix=True, own=True)


def largest_difference(one, other):
    """Relative to the largest value."""
    return np.abs(one - other).max() / np.abs(other).max()


differences = {
    "pushed R_response, and the matrix's row means": largest_difference(r_response, relevance.matrix.mean(1)),
    "pulled R_prompt, and the matrix's column means": largest_difference(r_prompt, relevance.matrix.mean(0)),
}
for what, difference in differences.items():
    print(f"{what}: differ by at most {difference:.0e}")
assert max(differences.values()) < 1e-3

# %% [markdown]
# One pass each gave what the matrix gives in t passes. So the matrix is only for looking at.
#
# ## Sentences and passages
#
# Relevance adds up. The relevance of a sentence is the sum over its tokens, and that of a passage the sum
# over the passage's tokens, so we can look at whole sentences first.

# %%
sentences = response_units(encoded, "sentence")
by_sentence = grouped(relevance.by_segment, sentences).T  # sentences, segments
order = [*range(2, len(names)), 1, 0]


def shortened(text, width=44):
    return text if len(text) <= width else text[: width - 1] + "…"


def heatmap(values, ax, limit, **options):
    """Red against blue, white at 0; stronger values than `limit` (logits) are drawn like it."""
    sns.heatmap(values, ax=ax, cmap="vlag", vmin=-limit, vmax=limit, **options)
    ax.collections[0].colorbar.set_label("relevance (logits)")


fig, ax = plt.subplots(figsize=(9, 1.6 + 0.5 * len(sentences)))
heatmap(
    by_sentence[:, order],
    ax,
    limit=np.abs(by_sentence).max(),
    annot=True,
    fmt=".1f",
    xticklabels=[names[k] for k in order],
    yticklabels=[shortened(unit.label) for unit in sentences],
)
ax.set(title="What each sentence of the response rests on")
ax.tick_params(axis="y", rotation=0)

# %%
flags = tokens_in(encoded.response_offsets, [(label.start, label.end) for label in example.labels])
per_sentence = pd.DataFrame(
    {
        "tokens": [len(unit.tokens) for unit in sentences],
        "labelled (share)": [flags[list(unit.tokens)].mean() for unit in sentences],
        "passages (logits per token)": by_sentence[:, 2:].sum(1) / [len(unit.tokens) for unit in sentences],
        "strongest passage": [1 + int(row.argmax()) for row in by_sentence[:, 2:]],
    },
    index=[shortened(unit.label) for unit in sentences],
)
per_sentence.round(2)

# %% [markdown]
# Two things to read off. The column *strongest passage* says where to look things up: it is the evidence
# that `lrp4rag analyse` prints beside each sentence. And the relevance of the passages *per token* is
# lowest for the sentence that was made up from nothing. A wrong number inside a sentence that follows its
# passage otherwise moves the sum of its sentence little: for that we have to look at tokens.
#
# ## Along the response: R_response
#
# Below is `R_response` token by token, and averaged over neighbours: single tokens jump (a word's second
# half rests on its first half, whatever the passages say), stretches do not. The labelled spans are shaded.

# %%
WINDOW = 9
padded = np.pad(relevance.response, WINDOW // 2, mode="edge")
smooth = np.convolve(padded, np.full(WINDOW, 1 / WINDOW), mode="valid")

fig, ax = plt.subplots(figsize=(13, 3.6))
ax.bar(np.arange(t), relevance.response, color="0.75", label=r"$R_{response}$")
ax.plot(smooth, color="#0072b2", lw=2, label=f"mean of {WINDOW} tokens")
ax.fill_between(
    np.arange(t),
    *(0, 1),
    where=flags,
    step="mid",
    transform=ax.get_xaxis_transform(),
    label="labelled hallucinated",
    color="#d55e00",
    alpha=0.2,
    lw=0,
)
ax.set_xticks(np.arange(t), relevance.response_tokens, rotation=90, fontsize=8)
ax.set(ylabel="relevance (logits)", xlim=(-0.5, t - 0.5))
ax.legend(frameon=False, ncols=3, loc="upper right")
sns.despine(ax=ax)
print(
    f"mean R_response of labelled tokens: {relevance.response[flags].mean():.4f} logits, "
    f"of the others: {relevance.response[~flags].mean():.4f} logits"
)

# %% [markdown]
# This dip is what detectors that read relevance look for. Keep in mind what else makes it: later tokens have
# more of their own text to draw on, so relevance to the prompt falls along *every* response. The notebook
# `hallucinated_vs_normal` looks at many responses at once.
#
# ## Across the prompt: R_prompt
#
# The other vector says what the response as a whole draws on. We add it up over words.

# %%
words = prompt_units(encoded, "word")
by_word = grouped(relevance.prompt * t, words)
top = np.argsort(-np.abs(by_word))[:15]
pd.DataFrame(
    {
        "word": [words[k].label for k in top],
        "segment": [names[encoded.segments[words[k].tokens[0]]] for k in top],
        "relevance for the whole response (logits)": by_word[top].round(1),
    }
)

# %% [markdown]
# Do not be surprised by the control tokens of the chat template (`<|im_start|>` and the like). The first
# tokens of a prompt are where attention heads go when they have nothing to attend to, and much relevance
# ends up there, whatever the text. This is why evidence is told in terms of the passages.
#
# ## Word by word
#
# The whole matrix, as words of the response against words of the passages. Each cell is a sum over the
# tokens of both words.

# %%
response_words = response_units(encoded, "word")
in_passage = [k for k, unit in enumerate(words) if encoded.segments[unit.tokens[0]] >= 2]
cells = grouped(grouped(relevance.matrix, response_words, axis=0), words)[:, in_passage]

fig, ax = plt.subplots(figsize=(13, 1.5 + 0.19 * len(response_words)))
heatmap(
    cells,
    ax,
    limit=np.quantile(np.abs(cells), 0.98),
    xticklabels=[words[k].label for k in in_passage],
    yticklabels=[unit.label for unit in response_words],
)
ax.tick_params(labelsize=8)
ax.set(title="Response words (down) and passage words (across)", ylabel="response", xlabel="passages")
for unit, label in zip(response_words, ax.get_yticklabels(), strict=True):
    if any(span.start <= unit.start < span.end for span in example.labels):
        label.set_color("#d55e00")

# %% [markdown]
# Words that the response took over light up at their place in the passage. Orange words on the left lie
# inside a labelled span. Red is positive: without this word the reader would have given the response's
# token a lower logit; blue is the opposite.
#
# ## Does it add up? A remark on conservation
#
# "LRP divides the logit" is exactly true for one of the composites only. Under `cp_lrp`, on a model without
# biases, the relevance of *all* the inputs (the prompt and the response's own earlier tokens) sums to the
# logit. The default, `attnlrp`, treats the softmax differently, and part of the logit is lost on the way.

# %%
conserving = attribute(reader, encoded, composite="cp_lrp", own=True)
share = {
    each.composite: (each.total.sum() + each.own.sum()) / each.logits.sum()
    for each in (conserving, relevance)
}
for name, value in share.items():
    print(f"{name}: relevance of all inputs / logits = {value:.3f}")
assert abs(share["cp_lrp"] - 1) < 1e-3

# %% [markdown]
# So read relevance as *how much, compared to other tokens*, not as a percentage of the logit. The notebook
# `rules` compares the composites and says why `attnlrp` is the default all the same.
#
# ## captum's plots
#
# `Relevance.to_captum` returns captum's own result type, so its plots work. They are made for short texts:
# captum draws a cell for every pair of tokens. We therefore give it sums: segments against sentences.

# %%
from captum.attr import LLMAttributionResult

captum_result = relevance.to_captum()
print("tokens:", tuple(captum_result.token_attr.shape), " sequence:", tuple(captum_result.seq_attr.shape))

small = LLMAttributionResult(
    input_tokens=[names[k] for k in order],
    output_tokens=[shortened(unit.label, 30) for unit in sentences],
    seq_attr=by_sentence[:, order].sum(0),
    token_attr=by_sentence[:, order],
)
fig, ax = small.plot_token_attr()

# %% [markdown]
# The sequence plot takes `R_prompt`, times t: the sum over the response. Here are the tokens of the
# passages with the largest values, in the prompt's order.

# %%
in_passages = np.flatnonzero(np.array(encoded.segments) >= 2)
strongest = np.sort(in_passages[np.argsort(-captum_result.seq_attr.numpy()[in_passages])[:24]])
fig, ax = LLMAttributionResult(
    input_tokens=[captum_result.input_tokens[k] for k in strongest],
    output_tokens=captum_result.output_tokens,
    seq_attr=captum_result.seq_attr[torch.from_numpy(strongest)],
).plot_seq_attr()

# %% [markdown]
# ## What to take away
#
# * Relevance is in logits, has either sign, and adds up: tokens to words, words to sentences, sentences to
#   responses.
# * `R_response` (pushed, t values) tells *where a response is not grounded*; `R_prompt` (pulled, n values)
#   tells *what it is grounded in*. Each takes one pass; the matrix takes t and is for looking at.
# * A low value is a reason to look, not a proof. One response shows how to read a heatmap, and nothing
#   about how often it is right. For that, go on to `hallucinated_vs_normal`.
