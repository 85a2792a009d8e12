"""The benchmark of the guardrail notices what it is there for."""

from __future__ import annotations

from benchmarks.service.client import Seen
from benchmarks.service.streams import crossed, held, leaked
from benchmarks.service.upstream import Writer

ANSWER = "It is tall. It is old. "
RECORDS = {
    "a": {"kind": "sentence", "action": "serve", "start": 0, "end": 12},
    "b": {"kind": "sentence", "action": "withhold", "start": 12, "end": 23},
}


def seen(*chunks: tuple[str, str]) -> Seen:
    return Seen(0, [(text, 5.0 + k, {"id": id} if id else {}) for k, (text, id) in enumerate(chunks)])


def test_what_is_judged_and_recorded_is_no_leak() -> None:
    notice = "<notice> "
    assert leaked(seen(("It is tall. ", "a"), (notice, "b")), ANSWER, RECORDS) == (0, 0)


def test_every_way_to_leak_is_noticed() -> None:
    assert leaked(seen(("It is tall. ", "a"), ("It is old. ", "b")), ANSWER, RECORDS)[0] > 0, "withheld"
    assert leaked(seen(("It is tall. ", "")), ANSWER, RECORDS)[0] > 0, "no decision"
    assert leaked(seen(("It is tall. It", "a")), ANSWER, RECORDS)[0] > 0, "more than was judged"
    assert leaked(seen(("Of another. ", "a")), ANSWER, RECORDS)[0] > 0, "another client's"


def test_what_the_policy_says_and_markdown_is_no_leak() -> None:
    assert leaked(
        seen(("It is tall.<mark> ", "a"), ("- <notice> ", "b"), ("\n\n<uncertain>", "")), ANSWER, RECORDS
    ) == (0, 0)
    rows = {"a": {"kind": "sentence", "action": "mark", "start": 6, "end": 17}}
    table = "|---|\n| It is old |\n"
    assert leaked(
        seen(("|---|\n", ""), ("| It is old<mark> |\n", "a")),
        table,
        rows | {"a": {**rows["a"], "end": len(table)}},
    ) == (0, 0)
    assert (
        leaked(
            seen(
                ("|---|\nIt", ""),
            ),
            table,
            {},
        )[0]
        == 7
    )


def test_what_is_lost_is_noticed() -> None:
    assert leaked(seen(("It is tall. ", "a")), ANSWER, RECORDS) == (0, 11)


def test_a_sentence_is_held_from_the_first_word_after_it() -> None:
    times = [float(k) / 10 for k in range(len(ANSWER))]
    found = held(seen(("It is tall. ", "a"), ("", "b")), ANSWER, times, RECORDS)
    # "It" ends at character 14, which was written at 1.3; the answer at 2.2.
    assert [round(one, 6) for one in found] == [3.7, 3.8]


def test_an_answer_is_written_whole() -> None:
    import asyncio
    import json

    writer = Writer(["Größe: 3 m. 塔 🗼🏽 ist hoch!"], 0.0)

    async def collect() -> bytes:
        return b"".join([piece async for piece in writer.pieces(0)])

    events = [line for line in asyncio.run(collect()).decode().split("\n\n") if line]
    parts = [json.loads(one.removeprefix("data: ")) for one in events[:-1]]
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in parts) == writer.answers[0]
    assert events[-1] == "data: [DONE]"
    assert len(writer.sent[0]) == len(writer.answers[0])


def test_text_of_another_client_is_noticed() -> None:
    answers = [ANSWER, "The harbour was dug in 1911. It is old. "]
    assert crossed(seen(("It is tall. ", "a"), ("It is old. ", "b")), answers) == 0
    assert crossed(seen(("The harbour was dug in 1911. ", "a")), answers) == len("Theharbourwasdugin1911.")
    assert crossed(seen(("<notice> ", "a")), answers) == 0
