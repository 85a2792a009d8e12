"""Learning one network of a comparer: what it is shown, by what it errs, and how it goes on after a stop."""

from __future__ import annotations

import hashlib
import math
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments.comparer.check import HeldOut, check
from lrp4rag.reader.comparer import Comparer, Network, batch_of, encode_pair, new_network
from lrp4rag.training.labelled_pairs import LabelledPair, Told
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.tensors import read_tensors, write_tensors
from lrp4rag.util.terminal import say

KIND = "comparer being learned"
NETWORKS = 2
"""Each learns from half of the sources, by their hash."""
ANNOTATED = "ragtruth"
"""The set whose faults are models' own: of all kinds at once, and few."""
CLAIMS, ANSWERS, WRONG, RIGHT = 10, 18, 1, 3
"""Pairs of a step: claims of others, sentences of answers in twos, wrong and right ones of `ANNOTATED`."""
OFTEN = {"negation": 1.5, "condition": 1.5, "misattributed": 1.5, "refusal": 0.5}
"""How often a kind of fault is shown, beside 1: the first are the hardest."""
ALIKE, LOOKED_AT = 0.7, 12
"""How often the right sentence beside a wrong one is the most like it of so many of its question."""
RATE, WARM, LEAST, DECAY = 2e-4, 150, 0.02, 0.01
"""The rate of learning, the steps in which it rises, the part of it that is left at the end, and by what
matrices decay."""
MATCHED = 5.0
"""How much faster it learns what a match means, of which the encoder knows nothing before."""
WORDS, WRONG_WORD = 0.7, 3.0
"""What words weigh beside the whole claim, and a wrong one beside a right one."""
PARTS, PADDED = 3, 32
"""Parts of a step, by the length of pairs, and what padded lengths are multiples of: little is padding then,
and processors multiply such matrices fastest."""
EVERY, TOLD_EVERY = 200, 50
"""Steps after which a network is kept and measured, and after which the time that is left is told."""


def half_of(source: str) -> int:
    """Return the number of the network that does not learn from a source."""
    return int(hashlib.md5(source.encode(), usedforsecurity=False).hexdigest(), 16) % NETWORKS


class Lessons:
    """What a network is shown at each step. A step's pairs depend on its number alone, so that a run that was
    stopped goes on as it would have."""

    def __init__(self, claims: Sequence[LabelledPair], answers: Sequence[LabelledPair], seed: int) -> None:
        self._claims, self._seed = claims, seed
        self._annotated: dict[bool, list[LabelledPair]] = {True: [], False: []}
        self._faults = defaultdict[tuple[str, str], list[LabelledPair]](list)
        self._right = defaultdict[str, list[LabelledPair]](list)
        for one in answers:
            if one.set == ANNOTATED:
                self._annotated[one.wrong].append(one)
            elif one.wrong:
                self._faults[one.set, one.kind].append(one)
            else:
                self._right[one.source].append(one)
        if not self._faults or not claims:
            raise InputError("there are no claims, or no faults, to learn from")

    def at(self, step: int) -> tuple[list[LabelledPair], list[LabelledPair]]:
        """Return the claims of a step, and the sentences of answers."""
        random, first = Random(f"{self._seed}/{step}"), step * CLAIMS
        claims = [self._claims[number % len(self._claims)] for number in range(first, first + CLAIMS)]
        answers = list[LabelledPair]()
        while len(answers) < ANSWERS:
            answers += self._two(random)
        for wrong, count in ((True, WRONG), (False, RIGHT)):
            answers += random.sample(self._annotated[wrong], min(count, len(self._annotated[wrong])))
        return claims, answers

    def _two(self, random: Random) -> Iterator[LabelledPair]:
        """Yield a fault, and a right sentence of the same question if there is one."""
        kinds = list(self._faults)
        (kind,) = random.choices(kinds, [OFTEN.get(kind, 1.0) for _, kind in kinds])
        fault = random.choice(self._faults[kind])
        yield fault
        if right := self._right.get(fault.source):
            words, near = _words(fault), random.random() < ALIKE
            some = random.sample(right, min(LOOKED_AT if near else 1, len(right)))
            yield max(some, key=lambda one: len(words & _words(one)) / len(words | _words(one)))


def parts_of(pairs: Sequence[LabelledPair]) -> list[list[LabelledPair]]:
    """Return the pairs of a step in parts of like length."""
    ordered = sorted(pairs, key=lambda one: len(one.pair.premise) + len(one.pair.lead) + len(one.pair.claim))
    ends = [len(ordered) * part // PARTS for part in range(PARTS + 1)]
    return [ordered[start:end] for start, end in pairwise(ends) if start < end]


def _words(one: LabelledPair) -> frozenset[str]:
    return frozenset(f"{one.pair.claim} {one.pair.premise}".lower().split())


def loss_of(network: Network, tokenizer: Any, pairs: Sequence[LabelledPair]) -> Tensor:
    """Return how far a network is from what is known of some pairs, and of their words where that is."""
    encoded = [encode_pair(tokenizer, one.pair) for one in pairs]
    device = network.match.weight.device
    batch = batch_of(encoded)
    batch = F.pad(batch, (0, -batch.shape[-1] % PADDED))
    classes, words = network(batch.to(device))
    told = torch.log_softmax(classes, 1)
    unsupported = torch.logsumexp(told[:, 1:], 1, keepdim=True)
    labels = torch.tensor([get_args(Told).index(one.label) for one in pairs], device=device)
    loss = F.nll_loss(torch.cat([told, unsupported], 1), labels)
    targets = np.full(words.shape, -1, dtype=np.float32)
    for row, (one, pair) in enumerate(zip(pairs, encoded, strict=True)):
        if one.spans is not None:
            wrong = np.zeros(len(pair.tokens), dtype=bool)
            for start, end in one.spans:
                wrong |= (pair.spans[:, 0] < end) & (pair.spans[:, 1] > start)
            targets[row, pair.tokens] = wrong
    known = torch.from_numpy(targets).to(device)
    inside = known >= 0
    if not inside.any():
        return loss
    more = torch.tensor(WRONG_WORD, device=device)
    return loss + WORDS * F.binary_cross_entropy_with_logits(words[inside], known[inside], pos_weight=more)


class Learner:
    """A network and its optimiser, which changes copies of the parameters in float32: what a step changes is
    too little for 16 bits."""

    def __init__(self, network: Network, tokenizer: Any) -> None:
        # Without dropout: hardly a pair is shown twice, and on a processor it took half of the time.
        self.network, self.tokenizer, self.step = network.eval(), tokenizer, 0
        network.encoder.embeddings.requires_grad_(False)
        self._shown = network.learned()
        self._copies = {name: value.detach().float().clone() for name, value in self._shown.items()}
        alike = defaultdict[tuple[float, float], list[Tensor]](list)
        for name, copy in self._copies.items():
            match = name.startswith("match.")
            alike[MATCHED if match else 1.0, 0.0 if match or copy.ndim < 2 else DECAY].append(copy)
        groups = [
            {"params": some, "times": times, "weight_decay": decay} for (times, decay), some in alike.items()
        ]
        self._optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98))
        for copy in self._copies.values():
            zeros = {part: torch.zeros_like(copy) for part in ("exp_avg", "exp_avg_sq")}
            self._optimiser.state[copy] = {"step": torch.tensor(0.0), **zeros}

    def learn(self, parts: Sequence[Sequence[LabelledPair]], share: float) -> float:
        """Learn from the parts of a step, after a `share` of the learning; return the loss."""
        rate = RATE * min(self.step / WARM, 1) * max(LEAST, (1 + math.cos(math.pi * min(share, 1))) / 2)
        total = 0.0
        for part in parts:
            loss = loss_of(self.network, self.tokenizer, part) / len(parts)
            loss.backward()
            total += loss.item()
        for name, copy in self._copies.items():
            gradient, self._shown[name].grad = self._shown[name].grad, None
            copy.grad = torch.zeros_like(copy) if gradient is None else gradient.float()
        nn.utils.clip_grad_norm_(self._copies.values(), 1.0)
        for group in self._optimiser.param_groups:
            group["lr"] = rate * group["times"]
        self._optimiser.step()
        self._show()
        self.step += 1
        return total

    def _show(self) -> None:
        with torch.no_grad():
            for name, copy in self._copies.items():
                self._shown[name].copy_(copy)

    def _state(self) -> dict[str, Tensor]:
        state = {f"weights/{name}": copy for name, copy in self._copies.items()}
        for name, copy in self._copies.items():
            state |= {f"{part}/{name}": value for part, value in self._optimiser.state[copy].items()}
        return state

    def keep(self, path: Path, record: Mapping[str, Any]) -> None:
        """Write all that it goes on from."""
        arrays = {name: value.cpu().numpy() for name, value in self._state().items()}
        write_tensors(path, KIND, arrays, {**record, "step": self.step})

    def go_on(self, path: Path, data: str) -> float:
        """Go on from what was kept; return the seconds that it took. Raises `InputError` where it is damaged
        or learned from other pairs."""
        record, arrays = read_tensors(path, KIND)
        if record["data"] != data:
            raise InputError("it learned from other pairs; delete it to begin anew", path=path)
        self.step = int(record["step"])
        for name, value in self._state().items():
            value.copy_(torch.from_numpy(arrays[name]).reshape(value.shape))
        self._show()
        return float(record["seconds"])


@dataclass(frozen=True, slots=True)
class Course:
    """How long a network learns: for `steps`, or for `seconds` if these are over before."""

    steps: int
    seconds: float = math.inf
    device: str = "cpu"

    def share(self, step: int, seconds: float) -> float:
        return max(step / self.steps, seconds / self.seconds)


def learn(
    number: int,
    claims: Sequence[LabelledPair],
    answers: Sequence[LabelledPair],
    measured: Sequence[LabelledPair],
    path: Path,
    course: Course,
    after: Path | None = None,
) -> None:
    """Learn network `number` from all claims and the answers of its sources, and keep it at `path`; what is
    kept there goes on. `measured` are claims by which it is measured as it learns, beside the others'
    answers. It begins with the same network of the comparer `after`, if there is one."""
    if course.device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(number)
    network, tokenizer = new_network(torch.bfloat16)
    for layer, spread in ((network.match, 0.03), (network.whole, 0.02), (network.word, 0.02)):
        nn.init.normal_(layer.weight, std=spread)
    if after is not None:
        learned = Comparer.load(after).networks[number].learned()
        network.load_state_dict(learned, strict=False)
    learner = Learner(network.to(course.device), tokenizer)
    own = [one for one in answers if half_of(one.source) != number]
    data = json_hash([[repr(one) for one in pairs] for pairs in (claims, own)])
    before = learner.go_on(path, data) if path.exists() else 0.0
    # What learned before has seen the first claims, and what its seed draws.
    lessons = Lessons(claims, own, number) if after is None else Lessons(claims[::-1], own, NETWORKS + number)
    held = HeldOut.of(measured, [one for one in answers if half_of(one.source) == number])
    started, losses = time.monotonic(), deque[float](maxlen=2 * TOLD_EVERY)
    begun = share = course.share(learner.step, before)
    while share < 1:
        shown, said = lessons.at(learner.step)
        losses.append(learner.learn(parts_of(shown + said), share))
        spent = time.monotonic() - started
        share = course.share(learner.step, before + spent)
        if learner.step % TOLD_EVERY == 0:
            left = spent * max(1 - share, 0) / (share - begun) / 60
            loss = float(np.mean(losses))
            say(f"network {number}, step {learner.step}: loss {loss:.3f}, {left:.0f} min left", err=True)
        if learner.step % EVERY == 0 or share >= 1:
            learner.keep(path, {"data": data, "seconds": before + spent})
            say(f"network {number}, step {learner.step}: {check(network, tokenizer, held)}", err=True)


def network_at(path: Path) -> Network:
    """Return the network that has been learned and kept."""
    network, _ = new_network()
    _, arrays = read_tensors(path, KIND)
    with torch.no_grad():
        for name, parameter in network.learned().items():
            parameter.copy_(torch.from_numpy(arrays[f"weights/{name}"]))
    return network.eval()
