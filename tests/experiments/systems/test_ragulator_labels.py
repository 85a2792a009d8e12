"""Where RAGulator's labels come from, on cases worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.ragulator import features, labelling
from lrp4rag.experiments.systems.ragulator.label_by_prompt import RETRY_TEMPERATURE, ask, read_indices
from lrp4rag.experiments.systems.ragulator.simulate import SENTENCES, couples, simulated
from lrp4rag.sentences import sentences_of
from tests.experiments.systems.entailed_kit import StandInKit, towns


def test_couples_have_every_source_once():
    names = [f"s{k}" for k in range(7)]
    made = couples(names, 0)
    assert sorted(map(len, made)) == [2, 2, 3]
    assert sorted(name for couple in made for name in couple) == names
    assert couples(reversed(names), 0) == made != couples(names, 1)
    with pytest.raises(InputError, match="another source"):
        couples(["s"], 0)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_sentences_go_to_other_sources_of_those_given_only(count):
    given = towns(count)
    passages = {one.passages: one.source for one in given}
    for one, example in zip(simulated(given, 0), given, strict=True):
        assert passages[one.elsewhere.passages] == one.elsewhere.source != example.source
        assert {one.elsewhere.source, example.source} <= set(one.couple.split(" and "))
        assert set(sentences_of(one.elsewhere.response)) <= set(sentences_of(example.response))
        assert one.elsewhere.labels is None
        assert len(one.own) == min(SENTENCES, 2)


def test_simulated_lessons_look_at_no_label():
    given, kit = towns(6), StandInKit()
    own = features.features_of(given, kit.model, kit)
    lessons = labelling.from_simulated(given, own, kit.model, kit)
    assert lessons.labels.tolist() == [False] * 12 + [True] * 12
    assert (lessons.inputs[:12] == np.concatenate([one.numbers for one in own])).all()
    assert (lessons.inputs[12:, 0] == 0).all()  # sources share no word
    for group in set(lessons.groups):
        assert lessons.labels[lessons.groups == group].mean() == 0.5
        assert (lessons.group_of == group).sum() == 2
    without = [replace(one, labels=()) for one in given]
    again = labelling.from_simulated(without, own, kit.model, kit)
    assert (again.labels == lessons.labels).all()


def test_annotated_lessons_are_the_sentences_that_a_span_touches():
    given, kit = towns(2), StandInKit()
    lessons = labelling.from_spans(given, features.features_of(given, kit.model, kit), kit.model, kit)
    assert lessons.labels.tolist() == [False, False, False, True]
    assert lessons.groups.tolist() == [given[0].source] * 2 + [given[1].source] * 2


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("2", (2,)),
        (" 1, 3,2. ", (1, 3, 2)),
        ("None.", ()),
        ("none", ()),
        ("0", None),
        ("4", None),
        ("1, 9", None),
        ("", None),
        ("sentence 2", None),
        ("2 and 3", None),
        ("none, 2", None),
        ("-1", None),
    ],
)
def test_only_numbers_in_range_or_none_are_read(reply, expected):
    assert read_indices(reply, 3) == expected


class Scripted:
    """Answers by the statement; an answer that is a list is given one by one."""

    name = "scripted"

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def replies(self, messages, *, max_tokens, temperature, seed):
        self.asked.append((len(messages), temperature))
        return [self._reply(message) for message in messages]

    def _reply(self, message):
        statement = message.partition("Statement: ")[2].partition("\n")[0]
        answer = self.answers[statement]
        return answer.pop(0) if isinstance(answer, list) else answer


def test_replies_become_labels_and_unusable_ones_become_none():
    town = towns(1)[0].with_response("Alpha is. Beta is. Gamma is. Delta is.")
    chat = Scripted(
        {"Alpha is.": "1", "Beta is.": "none", "Gamma is.": ["who knows", "2, 3"], "Delta is.": "7"}
    )
    (asked,) = ask([town], chat)  # the context has three sentences
    assert asked.out.tolist()[:3] == [0, 1, 0]
    assert np.isnan(asked.out[3])
    assert chat.asked == [(4, 0.0), (2, RETRY_TEMPERATURE)]


def test_sentences_without_a_usable_reply_are_no_lessons():
    given = towns(2)
    texts = [text for one in given for text in sentences_of(one.response)]
    kit = StandInKit(speaker=Scripted(dict(zip(texts, ["1", "what?", "2", "none"], strict=True))))
    found = features.features_of(given, kit.model, kit)
    lessons = labelling.from_replies(given, found, kit.model, kit)
    assert lessons.labels.tolist() == [False, False, True]
    assert (lessons.inputs == np.concatenate([one.numbers for one in found])[[0, 2, 3]]).all()
    assert lessons.group_of.tolist() == [one.source for one in given]
