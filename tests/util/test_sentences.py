# ruff: noqa: RUF001 - the marks of many scripts look like those of ours
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lrp4rag.util.sentences import Piece, SentenceStream, sentences_in, sentences_of


def streamed(text: str, *sizes: int, language: str = "en", longest: int = 600) -> list[Piece]:
    """The pieces of a text that arrives in chunks of these sizes, again and again."""
    stream = SentenceStream(language, longest)
    pieces, start = [], 0
    for size in itertools.cycle(sizes or (1,)):
        if start >= len(text):
            return pieces + stream.end()
        pieces += stream.feed(text[start : start + size])
        start += size
    raise AssertionError


def texts(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces]


def with_kinds(text: str) -> list[str]:
    """Each piece with the first letter of its kind before it."""
    return [f"{piece.kind[0]}: {piece.text}" for piece in streamed(text)]


PROSE = {
    "two sentences": "It rains. |Take a coat.",
    "exclamation and question": "Stop! |Why? |Because.",
    "marks together": "Really?! |Yes!!! |No...",
    "a title": "Dr. Smith met Prof. Jones. |They talked.",
    "initials": "J. R. Smith came. |He stayed.",
    "a country": "He lives in the U.S. |He likes it.",
    "a country within a sentence": "The U.S. economy grew. |Then it fell.",
    "an abbreviation": "Fruit, e.g. apples, is good. |Eat it.",
    "an abbreviation in brackets": "Fruit (e.g. apples) is good. |Eat it.",
    "a decimal": "It is 3.5 metres. |Or 4.0.",
    "a number before the stop": "It took 42. |Then more.",
    "a unit in brackets": "Heat it to 350 °F (180 °C). |Wait.",
    "a time": "It opens at 9 a.m. on Monday. |Come early.",
    "three dots within a sentence": "Well... it depends. |Ask.",
    "an ellipsis": "Perhaps… |Or not.",
    "an ellipsis within a sentence": "Wait…what? |Go.",
    "a quotation": 'He said "Go. Now." |Then he left.',
    "a quotation and who says it": '"Really?" he asked. |"Yes!" she said.',
    "curly quotes": "He said “Go. Now.” |Then he left.",
    "single curly quotes": "He said ‘It’s late. Go.’ |Then he left.",
    "an apostrophe": "The dogs’ tails wag. |It’s true.",
    "a quotation after a sentence": 'He left. |"Go," she said. |"Now."',
    "German quotes": "Er sagte: „Geh. Jetzt.“ |Dann ging er.",
    "German angles": "Er sagte: »Geh. Jetzt.« |Dann ging er.",
    "French quotes": "Il dit : « Oui. Non. » |Puis il part.",
    "brackets within a sentence": "He came (at 9. Or 10.) and left. |Good.",
    "a sentence in brackets": "He came. |(He was late.) |She left.",
    "nested brackets": "A list (of [a. B] and c. D) here. |Next one.",
    "inches": 'A 5" pipe. |A 6" one.',
    "a smiley": "It broke :( and so on. |That is sad.",
    "a quotation that never closes": 'He said "go. |She went. |They stayed.',
    "a bracket that never closes": "One (of them. |The next. |The last.",
    "bold": "**It rains.** |Take a coat.",
    "code in a line": "Call `a. B()` first. |Then `c. D()`.",
    "more backticks": "Use ``a ` b. C`` here. |Then go.",
    "a backtick alone": "Use ` here. |Then go.",
    "a link": "See [the page](https://a.org/b. c) there. |Then go.",
    "an address": "See https://a.org/b.html?c=D.e!f for it. |Go to www.x.com. |Then ask.",
    "a mail address": "Write to a.b@c.org. |Then wait.",
    "a file": "Open report.PDF and Node.js now. |Then close.",
    "a source": "It rains. [1] |Take a coat.[2][13] |Go. [^3] |Home.",
    "a bracket after a sentence": "It rains. |[Sic] it does.",
    "an emoji": "Great!😀 |Nice. |👍🏽 Done.",
    "wide space": "It rains.\u00a0|Take a coat.\u3000|Go.",
    "much space": "It rains.    |Take a coat.\t|Go.",
    "an invisible sign": "It rains.\u200b |Take a coat.\u200f |Go.",
    "numbers within a line": "Do this. |1. Open it. |2. Close it.",
    "a dash": "He came. |— And left.",
}


@pytest.mark.parametrize("marked", PROSE.values(), ids=PROSE)
def test_prose_is_cut_between_sentences(marked):
    expected = [piece for piece in marked.split("|") if piece]
    assert texts(streamed(marked.replace("|", ""))) == expected


SCRIPTS = {
    "Chinese": ("zh", "你好。|今天下雨！|带伞吗？|好的。"),
    "Chinese quotes": ("zh", "他说：“你好。再见。”|然后走了。"),
    "Chinese with Western marks": ("zh", "真的吗?|是的.|版本3.5好。|node.js不错!|好"),
    "Chinese before a number": ("zh", "你好。|3个人来了。"),
    "Chinese, line breaks": ("zh", "你好。\n|再见。"),
    "Chinese citations": ("zh", "下雨了。[1]|带伞。[2]"),
    "Japanese": ("ja", "雨です。|「行く。はい。」|と言った。|終わり！？|はい。"),
    "Japanese, double quotes": ("ja", "『はい。』|次。"),
    "wide decimal": ("ja", "３．５です．|はい．"),
    "Hindi": ("hi", "यह है। |वह है।|क्या? |हाँ।"),
    "Urdu": ("ur", "یہ ہے۔ |کیا یہ ہے؟ |ہاں۔"),
    "Arabic": ("ar", "كيف حالك؟ |بخير. |نعم."),
    "Armenian": ("hy", "Բարեւ։ |Ինչպես ես։"),
    "Amharic": ("am", "ሰላም።|እንዴት ነህ፧|ደህና።"),
    "Burmese": ("my", "မင်္ဂလာပါ။ |ကောင်းပါတယ်။"),
    "German": ("de", "Das sind z. B. Äpfel. |Am 3. Mai kam er."),
    "Russian": ("ru", "Идёт дождь. |Возьми зонт!"),
    "Korean": ("ko", "비가 와요. |우산을 가져가세요."),
    "an unknown language": ("xx", "Hi there. |Bye."),
}


@pytest.mark.parametrize(("language", "marked"), SCRIPTS.values(), ids=SCRIPTS)
def test_each_script_has_its_marks(language, marked):
    assert texts(streamed(marked.replace("|", ""), language=language)) == marked.split("|")


LINES = {
    "a heading": ["s: # Use\n", "s: Open it."],
    "a numbered heading": ["s: ## 1. Use\n", "s: **2.1. Care.** ", "s: Wash it."],
    "bullets": ["s: Steps:\n", "i: - first\n", "i: * second\n", "i: • third"],
    "numbers": ["i: 1. Open it.\n", "i: 2) Close it.\n", "i: (3) Go.\n", "i: a) Stay."],
    "an item of sentences": ["i: 1. Open it. ", "i: Then wait.\n", "s: Done. ", "s: So."],
    "items within items": ["i: - one\n", "i:   - two\n", "i:     1. three"],
    "a bold item": ["i: - **Bed.** ", "i: Soft.\n", "i: **1. Bed** is soft."],
    "no item": ["s: -5 degrees.\n", "s: 3.5 metres.\n", "s: *now*"],
    "blank lines": ["s: One.\n", "b: \n", "b:   \n", "s: Two."],
    "blanks before and behind": ["b: \n", "s:   One.  \n", "b:  "],
    "a line without a stop": ["s: One\n", "s: two\n"],
    "Windows": ["s: One.\r\n", "b: \r\n", "s: Two.\r\n"],
    "old Macs": ["s: One.\r", "b: \r", "s: Two."],
    "rare breaks": ["s: A.\u2028", "s: B\x85", "s: C\u2029", "s: D\v", "s: E\f"],
    "a quotation over lines": ['s: He said "go.\n', 's: Now." ', "s: Then he left."],
    "a table": ["t: | a. B | c |\n", "t: |---|:-:|\r\n", "t:   | 1. X | 2. Y |\n", "s: So. ", "s: It is."],
    "code": ["s: So:\n", "c: ```python\n", "c: a. B = 'c. D'\n", "c: \n", "c: ```\n", "s: Done. ", "s: Go."],
    "code with tildes": ["c: ~~~\n", "c: ```\n", "c: ~~~\n", "s: Done."],
    "code in code": ["c: ````\n", "c: ```\n", "c: ````\n", "s: Done."],
    "code that does not end there": ["c: ```\n", "c: ``` no\n", "c: | a |\n", "c: - b. C"],
    "code in an item": ["i: - So:\n", "c:   ```\n", "c:   a. B\n", "c:   ```\n", "i: - c"],
    "code in a quotation": ["c: > ```\n", "c: > a. B\n", "c: > ```\n", "s: > Yes. ", "s: No."],
    "code that is never closed": ["c: ```\n", "c: a. B"],
    "three backticks in a line": ["s: ```a. B``` is it. ", "s: Yes."],
    "struck out": ["s: ~~No.~~ ", "s: Yes."],
}


@pytest.mark.parametrize("expected", LINES.values(), ids=LINES)
def test_a_line_break_ends_a_piece_and_lines_have_kinds(expected):
    assert with_kinds("".join(text[3:] for text in expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "\ud83d\ude00. \udc00 Yes.", "\x00. \x00\x00 A. B", "\ufeffHi. Yes.", "."]
)
def test_odd_characters_pass(text):
    assert "".join(texts(streamed(text))) == text


@pytest.mark.parametrize(
    ("before", "decides"),
    [
        ("It rains.", " Take "),
        ("It rains. ", "Take "),
        ("It rains. [", "1] Take "),
        ('He said "Go."', " Then "),
        ("It rains.", "\n"),
        ("你好。", "再"),
        ("| a |", "\n"),
        ("It rains.\r", "x"),
        ("It rains. ", "Donaudampfschifffahrtsgesellschaft"),
    ],
)
def test_a_sentence_comes_with_the_first_word_that_follows(before, decides):
    stream = SentenceStream()
    assert not any(stream.feed(char) for char in before)
    assert len([piece for char in decides for piece in stream.feed(char)]) == 1


def test_a_stream_that_has_ended_takes_no_more():
    stream = SentenceStream()
    assert stream.feed("It rains. ") == []
    assert stream.end() == [Piece(0, 10, "It rains. ", "sentence")]
    assert stream.end() == []
    with pytest.raises(ValueError, match="has ended"):
        stream.feed("More.")


def test_longest_is_positive():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        SentenceStream(longest=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four", ["one two ", "three four"]),
        ("one,two;three,four", ["one,two;", "three,four"]),
        ("in 1,000,000,000 years", ["in ", "1,000,000,", "000 years"]),
        ("一二三，四五六七八九十一二", ["一二三，", "四五六七八九十一二"]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        ("a" * 9 + "e\u0301" + "b", ["a" * 9, "e\u0301b"]),
        ("a" * 8 + "👩\u200d🔬b", ["a" * 8, "👩\u200d🔬b"]),
        ("a" * 9 + "👍🏽b", ["a" * 9, "👍🏽b"]),
        ("a" * 9 + "🇩🇪b", ["a" * 9, "🇩🇪b"]),
        ("🇩🇪" * 6, ["🇩🇪" * 5, "🇩🇪"]),
        ("a" * 9 + "\ud83d\ude00b", ["a" * 9, "\ud83d\ude00b"]),
        ("กกกกกกกกกเก", ["ก" * 9, "เก"]),
        ("กกกกกกกกกกำ", ["ก" * 9, "กำ"]),
        ("a" * 9 + "\r\nb", ["a" * 9 + "\r\n", "b"]),
        (" " * 25, [" " * 10, " " * 10, " " * 5]),
        ("\u0301" * 15, ["\u0301" * 10, "\u0301" * 5]),
        ("| one two three", ["| one two ", "three"]),
        ("To (bed. A b", ["To (bed. ", "A b"]),
    ],
)
def test_what_never_ends_is_cut(text, expected):
    assert texts(streamed(text, longest=10)) == expected


def test_thai_is_cut_at_spaces():
    pieces = streamed("สวัสดีครับวันนี้ฝนตก " * 100, longest=100)
    assert len(pieces) == 25
    assert all(piece.text.endswith(" ") for piece in pieces)


def test_a_quotation_that_never_closes_holds_back_no_more_than_the_longest():
    stream = SentenceStream(longest=100)
    pieces = stream.feed('He said "' + "it rains. It " * 20)
    assert texts(pieces)[:2] == ['He said "it rains. ', "It it rains. "]
    assert len(pieces) > 10


@pytest.mark.parametrize("part", ["word ", "x", " ", "(", '"', "`", "e\u0301", "a. ", "\r", "| a "])
def test_a_stream_that_never_ends_takes_no_memory(part):
    stream = SentenceStream()
    length = 0
    for _ in range(40):
        length += sum(len(piece.text) for piece in stream.feed(part * 500))
        assert len(stream._buffer) <= 630
    length += sum(len(piece.text) for piece in stream.end())
    assert length == 20_000 * len(part)


_NASTY = [
    *".!?…。؟।\"'“”„«»‘’「」()[]`~|*_#>-,，: \t\r\n\x85\u2028\u00a0\u200b\u200d\u0301\x00\ud83d\ude00你กเ🏽🇩"
]
_PARTS = [
    *("a", "B", "1", "```", "~~~", "\r\n", "Dr. ", "e.g. ", "U.S. ", "3.5", " [1]", "1. ", "- ", "word "),
    *("The ", "https://a.b/c", ". ", '." ', "😀"),
]
_TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from([*_NASTY, *_PARTS]), max_size=60).map("".join),
    st.lists(st.sampled_from(_NASTY), min_size=2, max_size=4).flatmap(
        lambda few: st.lists(st.sampled_from(few), max_size=60).map("".join)
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    _TEXTS,
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
    st.sampled_from([1, 3, 10, 40, 600]),
    st.sampled_from(["en", "de", "zh", "hi", "xx"]),
)
@example("One. [1", [1], 600, "en")
@example("``` a ` b. C\n", [3], 600, "en")
def test_pieces_are_the_text_however_it_arrives(text, sizes, longest, language):
    pieces = streamed(text, len(text) or 1, language=language, longest=longest)
    assert "".join(texts(pieces)) == text
    assert [(piece.start, piece.end) for piece in pieces] == list(
        itertools.pairwise(itertools.accumulate(map(len, texts(pieces)), initial=0))
    )
    assert all(0 < len(piece.text) <= longest + 1 for piece in pieces)  # with "\r\n"
    assert all(piece.text.isspace() for piece in pieces if piece.kind == "blank")
    assert streamed(text, *sizes, language=language, longest=longest) == pieces
    assert streamed(text, 1, language=language, longest=longest) == pieces


TRICKY = [
    json.loads(line)
    for line in Path(__file__).with_name("tricky_sentences.jsonl").read_text("utf-8").splitlines()
]
"""Texts whose sentences were written down by hand, of many kinds; a few are cut otherwise on purpose: at each
line break, and before an emoji."""
AT_LEAST = 0.95


def test_tricky_texts_are_cut_as_people_cut_them():
    right = {kind: [] for kind in sorted({case["kind"] for case in TRICKY})}
    for case in TRICKY:
        cut = [case["text"][start:end] for start, end in sentences_in(case["text"])]
        right[case["kind"]].append(cut == case["sentences"])
    shares = {kind: sum(some) / len(some) for kind, some in right.items()}
    every = [one for some in right.values() for one in some]
    assert len(every) == 200
    assert sum(every) / len(every) >= AT_LEAST, shares
    assert all(share >= 0.8 for kind, share in shares.items() if kind.startswith("abbrev")), shares


def test_tricky_texts_are_cut_alike_however_they_arrive():
    for case in TRICKY:
        for sizes in ([1], [3, 7, 2]):
            pieces = [piece for piece in streamed(case["text"], *sizes) if piece.text.strip()]
            assert tuple(piece.stripped for piece in pieces) == sentences_in(case["text"])


ABBREVIATED = {
    "a place": "Mark moved to St. Ives in 1975. |He left Ft. Worth.",
    "a street": "He lives on Main St. |It is long.",
    "an approximate amount": "It is 31 m tall, approx. 100 ft. in all. |It is old.",
    "amounts": "Take max. 3, min. 1, avg. 2 a day, incl. tax. |That is all.",
    "a volume": "See vol. 2, no. 3, pp. 4-5. |Then fig. 6.",
    "a capital": "He lives in Washington, D.C. |Guests visit him.",
    "days": "Open Mon.-Fri. from 9 to 5. |Closed on Sun. and Mon. |Ask.",
    "a no": "May I? |No. |Dogs may not. |No. 5 may.",
    "a unit": "It needs 6 mm. |Clean it. |It runs at 5 km/h. |Stop.",
    "half of the day": "It opens at 9 a.m. Monday. |It closes at 9 p.m. |Tickets cost $5.",
    "a roman number": "Friedrich II. regierte lange. |World War II. |Then peace.",
    "an ordinal number": "Der Vertrag endet am 3. M\u00e4rz. |Der 2. Stock ist zu.",
    "an item with a stop": "An adult may take 1. or 2 tablets. |No more.",
    "a brand": "Yahoo! is a brand. |Jeopardy! started.",
    "no space": "It is done.|Next, restart it. |Is it free?|Yes. |It is System.Out here.",
    "an emoji that ends the line": "It is done! \U0001f389\n|So go.",
    "no capitals": "it rains! |take a coat. |go.",
}


@pytest.mark.parametrize("marked", ABBREVIATED.values(), ids=ABBREVIATED)
def test_an_abbreviation_ends_no_sentence_unless_a_new_one_begins(marked):
    assert texts(streamed(marked.replace("|", ""))) == marked.split("|")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!", ["One.", "Two!"]),
        ("Dr. Smith came at 3.14 p.m. today.", ["Dr. Smith came at 3.14 p.m. today."]),
        ("Steps:\n* first\n* second\n\nDone.", ["Steps:", "* first", "* second", "Done."]),
        ("  padded  ", ["padded"]),
        ("東京 🗼 is tall. Zoë left.", ["東京 🗼 is tall.", "Zoë left."]),
        (" \n ", []),
    ],
)
def test_spans_are_the_sentences(text, sentences):
    assert [text[start:end] for start, end in sentences_in(text)] == sentences
    assert sentences_of(text) == sentences
