"""Split a text into sentences while it arrives, each as soon as nothing that follows can change it."""

# ruff: noqa: RUF001 - the marks of many scripts look like those of ours

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from lrp4rag.util.text import inside_sign


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DATES = _words("""
january february march april may june july august september october november december januar februar märz
mai juni juli oktober dezember monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun
jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
""")
_NEVER_ENDS = _words("""
mr mrs ms mx messrs mme mmes mlle dr drs prof profs rev fr hr hrn sra srta dra lt sgt cpl capt cmdr maj brig
adm supt insp gov sen rep pres hon amb atty approx incl excl inkl exkl zzgl bzw ggf vgl cf vs viz e.g i.e eg
z.b d.h u.a s.o ca c
""")
_BEFORE_NAMES = _words("st ste ft mt mts sr gen col")
"""Before a name, or the end of a sentence: "St. Ives", "on Main St. It is"."""
_STREETS = _words("ave rd blvd ln hwy")
_MAY_END = _words("""
jr inc ltd co corp bros llc plc gmbh ag dept univ assn inst intl natl al etc usw pl sq bldg apt op ed eds
trans est
""")
_MAY_END |= _BEFORE_NAMES | _STREETS | _DATES
"""The end of a sentence where a word follows that opens sentences."""
_BEFORE_NUMBERS = _words("""
max min avg est no nos nr num vol vols fig figs eq eqs p pp ch chap chs sec sect art arts par para abs tab
app appx ed v ver ref pt tel ext op cl ex ser ann kap bd hs seq st str tr resp temp
""")
_BEFORE_NUMBERS |= _NEVER_ENDS | {word for word in _DATES if len(word) < 6}
_WITHIN = _BEFORE_NUMBERS | _MAY_END | _words("misc orig prev gest geb hist lit mwst ust tax")
"""Words that end in a full stop before a small letter."""
_ORDINAL_BEFORE = _words("der den dem des das im vom zum zur beim jeder jeden")
"""Words of German before an ordinal number, "der 2. Stock", that no English sentence has there."""
_OPENERS = _words("""
he she it they we you i the a an this that these those there here in on at for from by with as if when while
after before but and or so however then also its his her their our your my what who which where why how no
not yes all some many most each every both another such please note see once since until although because
during under over between next finally first second third meanwhile moreover furthermore therefore thus
instead otherwise today now later nobody nothing only use do to er sie es wir ihr der die das ein eine
""")
"""Words that open sentences, and names seldom."""
_ACRONYM = re.compile(r"[^\W\d_]{1,3}(?:\.[^\W\d_]{1,3})+")
_HALF_OF_DAY = _words("a.m p.m")
_UNIT = re.compile(r"[^\W\d_]{1,4}(?:/[^\W\d_]{1,4})?|[ap]\.m")
_ROMAN = re.compile(r"[IVX]{1,6}")


def goes_on(before: str, following: str) -> bool | None:
    """Say whether a sentence goes on behind a full stop, by the text before it and the word after it; None
    where the words do not tell."""
    words = before.split()
    if not words:
        return None
    word = words[-1].lstrip("([\"'\u2018\u201c\u201d*_")
    last = re.split(r"[-\u2013/]", word)[-1].lower()
    measured = len(words) > 1 and words[-2][-1:].isdigit()
    opener = _opener(following)
    first = following.lstrip("$\u20ac\u00a3\u00a5~\u00b1<>\u2264\u2265-+")[:1]
    if first.isdigit():
        return True if last in _BEFORE_NUMBERS or last.endswith((".-", ".\u2013")) else None
    if first.islower():
        return _goes_on_before_small_letter(word, last, opener, measured=measured)
    if not first.isupper():
        return None
    if word.isdecimal():
        dated = len(word) < 3 and opener.rstrip(".") in _DATES
        ordinal = len(word) < 3 and len(words) > 1 and words[-2].lower() in _ORDINAL_BEFORE
        return True if dated or ordinal else None
    return _goes_on_before_capital(words, word, last, opener, measured=measured)


def opens_sentences(word: str) -> bool:
    """Say whether a word is one that sentences begin with, and names seldom."""
    return _opener(word) in _OPENERS


def _opener(word: str) -> str:
    return re.sub(r"[,;:'\u2019].*", "", word).lower()


def _goes_on_before_small_letter(word: str, last: str, opener: str, *, measured: bool) -> bool | None:
    """Say whether a sentence goes on before a small letter, with which some writers open sentences."""
    if word.isdecimal():
        return True if len(word) < 3 and opener not in _OPENERS - {"and", "or"} else None
    short = last.isalpha() and len(last) < 6 and (measured or not set(last) & set("aeiouy"))
    cased = last.isalpha() and any(sign.isupper() for sign in word[1:]) and not word.isupper()
    if last in _WITHIN and not (last == "no" and opener in _OPENERS):
        return True
    return True if short or cased or _ACRONYM.fullmatch(word) or _ROMAN.fullmatch(word) else None


def _goes_on_before_capital(
    words: list[str], word: str, last: str, opener: str, *, measured: bool
) -> bool | None:
    opens = opener in _OPENERS
    if measured and _UNIT.fullmatch(word):
        return last in _HALF_OF_DAY and opener.rstrip(".") in _DATES
    if last in _NEVER_ENDS or (last in _DATES and opener.rstrip(".") in _DATES):
        return True
    if last == "no" or last in _STREETS:
        return False
    if _ACRONYM.fullmatch(word):
        return False if opens or (words[-2:-1] and words[-2].endswith(",")) else None
    if last in _BEFORE_NAMES:
        return not opens
    return False if opens and last in _MAY_END else None


Kind = Literal["sentence", "code", "table row", "item", "blank"]

_BREAKS = "\n\r\v\f\x85\u2028\u2029"
_MARKS = ".!?…‼⁇⁈⁉‽"
"""End a sentence where white space follows, if `sentencex` says so."""
_STOPS = "。｡．！？؟۔։।॥။።፧፨។៕᠃᠉﹒﹖﹗"
"""End a sentence whatever follows: their languages need no space, or use them for nothing else."""
_OPENING, _CLOSING = "([{（［【〔", ")]}）］】〕"
_QUOTES = {"“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "‘": "’", "「": "」", "『": "』", "《": "》"}
_PAIRS = {'"': '"', **_QUOTES, **dict.fromkeys(_OPENING, _CLOSING)}
"""What opens a quotation or a bracket, and what closes it; any bracket closes any, as in "[0, 1)"."""
_UNQUOTED = "\"'”’»›“«」』》"
_DEEPEST = 8

_BRACKETS = re.escape(_OPENING + _CLOSING)
_INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0e\ufe0f\ufeff"
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_GAP = rf"[^\S{_BREAKS}]"

_BREAK = re.compile(f"[{_BREAKS}]")
_EVENT = re.compile(f"[{_BREAKS}{_MARKS}{_STOPS}{''.join(_QUOTES)}{_UNQUOTED}{_BRACKETS}`]")
_ENDING = re.compile(
    rf"(?P<marks>[{_MARKS}]*+(?P<stop>[{_STOPS}][{_MARKS}{_STOPS}]*+)?)"
    rf"(?P<closers>(?:[{_UNQUOTED}{re.escape(_CLOSING)}*_~`{_INVISIBLE}{_EMOJI}]|{_GAP}[»›])*+"
    rf"(?:(?:{_GAP}*+[{_INVISIBLE}{_EMOJI}]++)++(?={_GAP}*+(?:[{_BREAKS}]|\Z)))?)"  # that end the line
    rf"(?:{_GAP}?\[\^?\d{{1,3}}\])*+"  # the number of a source
    rf"(?P<gap>{_GAP}*+)"
)
_HALF_A_SOURCE = re.compile(r"\[\^?\d{0,3}")
_TICKS = re.compile("`+")
_WORD_CHARACTER = re.compile(r"\w")
_LETTER = re.compile(r"[^\W\d_]")
_LONGEST_WORD = 24
_WORD = re.compile(rf"\S{{,{_LONGEST_WORD}}}")
_CONTEXT = 80
_NUMBER = re.compile(r"[\W_]*(?:\d{1,3}(?:\.\d{1,3})*|[^\W\d_]|[ivxlc]{2,5})")
_QUOTED = rf"[{''.join(_QUOTES)}{_UNQUOTED}{_BRACKETS}<>*_`~#|\ud800-\udfff]"
_UNSPACED = re.compile(r"(?:(?<=\s)|\A)[^\W\d_]*[^\W\d_A-Z]{2}\Z")
_MARKUP = re.compile(rf"(?!\b['’]\b){_QUOTED}")
_OPENED = re.compile(rf"(?<!\S)(?:{_QUOTED})+")
_INDENT = re.compile(r"[ \t>]*")
_ITEM = re.compile(r"[\s>]*(?:[-*+•‣◦▪●–—]|[*_]*\(?(?:\d{1,3}(?:\.?\)|\.)|[a-z][.)]|[A-Z]\)))\s")
_FENCE = re.compile(rf"`{{1,2}}(?!`)|`{{3,}}+[^`{_BREAKS}]*+|~++")
_FENCED = re.compile(r"[ \t>]*(?P<fence>`{3,}+|~{3,}+)\s*")
_SOFT = re.compile(r"(?s:.*)(?:\s|[,;，；、،؛](?!\d))")
_CHINESE = re.compile(
    "[\u2e80-\u2fff\u3005-\u3007\u3040-\u30ff\u31f0-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text that can be judged and released.

    `text` has all its white space, so that pieces joined are the text; `start`, `end` are its characters.
    """

    start: int
    end: int
    text: str
    kind: Kind

    @property
    def stripped(self) -> tuple[int, int]:
        """The span (start, end) in the text without the white space around it."""
        text = self.text.strip()
        start = self.start + self.text.index(text)
        return start, start + len(text)


@dataclass(frozen=True, slots=True)
class _Opener:
    closing: str
    within: bool
    """Whether words of the piece come before it."""


def sentences_in(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans (start, end) of a text's sentences without the white space around them."""
    stream = SentenceStream()
    pieces = (*stream.feed(text), *stream.end())
    return tuple(piece.stripped for piece in pieces if piece.text.strip())


def sentences_of(text: str | None) -> list[str]:
    """Return the sentences of a text; an empty list for None."""
    return [(text or "")[start:end] for start, end in sentences_in(text or "")]


class _MoreNeeded(Exception):  # noqa: N818 - no error: the next text decides
    """The text so far does not decide yet."""


class SentenceStream:
    """Cuts a text into `Piece`s while it arrives; they depend on the text only, not on how it arrives.

    Prose is cut where the splitter cuts it, but what closes behind a full stop stays with its sentence,
    and the number of an item with the item. A sentence that never ends is cut after `longest` characters. A
    quotation or a bracket that does not close before this or before the end of its line is read as none.
    """

    def __init__(self, language: str = "en", longest: int = 600) -> None:
        if longest < 1:
            raise ValueError(f"longest must be at least 1, not {longest}")
        self._language = language
        self._longest = longest
        self._ended = False
        self._buffer = ""
        self._offset = 0  # of the buffer in the text
        self._start = 0  # of the piece, in the buffer
        self._at = 0  # up to here the piece is read
        self._open: list[_Opener] = []
        self._deaf = 0  # what opens before does not close
        self._begins = True  # the piece begins a line
        self._line: Kind | None = None  # None: too little of the line has come
        self._fence = ""  # of the block of code around

    def feed(self, text: str) -> list[Piece]:
        """Add text; return the pieces that are complete."""
        if self._ended:
            raise ValueError("the text has ended")
        self._buffer += text
        return self._pieces()

    def end(self) -> list[Piece]:
        """End the text; return the remaining pieces."""
        self._ended = True
        return self._pieces()

    def _pieces(self) -> list[Piece]:
        pieces = []
        with suppress(_MoreNeeded):
            while self._start < len(self._buffer):
                pieces.append(self._piece())
        if self._start:
            self._buffer = self._buffer[self._start :]
            self._offset += self._start
            self._at -= self._start
            self._deaf -= self._start
            self._start = 0
        return pieces

    def _piece(self) -> Piece:
        line = self._line = self._line or self._line_kind()
        undivided = line in ("code", "table row")
        start, end = self._start, self._border(_BREAK if undivided else _EVENT)
        text = self._buffer[start:end]
        if self._begins and line == "code":
            self._pass_fence(text)
        if self._begins and line == "sentence" and _ITEM.match(text):
            line = self._line = "item"
        if text[-1] in _BREAKS:
            self._line = None
        self._begins = self._line is None
        self._start = self._at = end
        self._open.clear()
        kind = line if undivided or text.strip() else "blank"
        return Piece(self._offset + start, self._offset + end, text, kind)

    def _require_beyond(self, end: int) -> None:
        """Raise `_MoreNeeded` where the next text can still change what is read up to `end`."""
        if end >= len(self._buffer) and not self._ended:
            raise _MoreNeeded

    def _end_of(self, pattern: re.Pattern[str], at: int) -> int:
        """Return the end of a match at a position; the position itself without a match."""
        match = pattern.match(self._buffer, at, self._limit)
        return match.end() if match else at

    @property
    def _limit(self) -> int:
        return min(self._start + self._longest, len(self._buffer))

    def _line_kind(self) -> Kind:
        if self._fence:
            return "code"
        content = self._end_of(_INDENT, self._start)
        self._require_beyond(content)
        if self._buffer.startswith("|", content):
            return "table row"
        fence = self._end_of(_FENCE, content)
        if fence == content:
            return "sentence"
        self._require_beyond(fence)
        # With more backticks behind, it is code within a line of prose.
        return "code" if fence - content > 2 and not self._buffer.startswith("`", fence) else "sentence"

    def _pass_fence(self, line: str) -> None:
        fenced = _FENCED.match(line)
        if fenced and not self._fence:
            self._fence = fenced["fence"]
        elif fenced and fenced["fence"].startswith(self._fence) and fenced.end() == len(line):
            self._fence = ""

    def _border(self, events: re.Pattern[str]) -> int:
        """Return the end of the piece."""
        limit = self._limit
        while True:
            if event := events.search(self._buffer, self._at, limit):
                self._at = event.start()
                if (end := self._read(event[0])) is not None:
                    return end
                continue
            self._at = limit
            self._require_beyond(limit)
            if not self._open:
                return limit if limit == len(self._buffer) else self._cut(limit)
            self._read_again(limit)

    def _read_again(self, deaf: int) -> None:
        """Read the piece from its start, with nothing opening before `deaf`."""
        self._deaf = deaf
        self._at = self._start
        self._open.clear()

    def _read(self, char: str) -> int | None:
        """Return the end of the piece, if it ends at this character; pass the character otherwise."""
        if char in _MARKS or char in _STOPS:
            return self._read_marks()
        if char not in _BREAKS:
            self._at = self._open_or_close(self._open, self._at)
            return None
        if self._open:
            self._read_again(self._at)
            return None
        end = self._at + 1
        if char == "\r":
            self._require_beyond(end)
            end += self._buffer.startswith("\n", end)
        return end

    def _read_marks(self) -> int | None:
        ending = _ENDING.match(self._buffer, self._at, self._limit)
        assert ending is not None
        self._require_beyond(ending.end())
        if half := _HALF_A_SOURCE.match(self._buffer, ending.end(), self._limit):
            self._require_beyond(half.end())
        if ending.end() < len(self._buffer) and self._is_border(ending):
            return ending.end()
        self._at = ending.end("marks")
        return None

    def _is_border(self, ending: re.Match[str]) -> bool:
        opened, at = self._open.copy(), ending.start("closers")
        while at < ending.end("closers"):
            at = self._open_or_close(opened, at)
        # A bracket ends with its sentence only if it holds all of it.
        if opened or any(opener.within and opener.closing == _CLOSING for opener in self._open):
            return False
        begin = ending.start()
        following = self._buffer[ending.end()]
        if following in _BREAKS or not _WORD_CHARACTER.search(self._buffer, self._start, begin):
            return False
        if ending["stop"]:
            return not (ending["stop"] in "．﹒" and following.isdecimal())
        if ending["gap"]:
            numbered = ending["marks"] == "." and _NUMBER.fullmatch(self._buffer, self._start, begin)
            return not numbered and self._is_border_before_word(ending)
        # "真的吗?是的", but "node.js" and "1.5"
        is_chinese = _CHINESE.match(self._buffer, max(self._start, begin - 1), begin)
        if (is_chinese or ending["marks"][-1] in "!?") and _CHINESE.match(following):
            return True
        return following.isupper() and not ending["closers"] and self._is_border_without_space(ending)

    def _is_border_without_space(self, ending: re.Match[str]) -> bool:
        """Say whether a sentence ends: in "It is done.Next, restart it.", not in "System.Out" and
        "https://a.org/b?C"."""
        before = self._buffer[max(self._start, ending.start() - _LONGEST_WORD) : ending.start()]
        if not _UNSPACED.search(before):
            return False
        word = self._word_at(ending.end())
        return word[1:2].islower() and (ending["marks"][-1] in "!?" or opens_sentences(word))

    def _is_border_before_word(self, ending: re.Match[str]) -> bool:
        from sentencex import get_sentence_boundaries

        following = _MARKUP.sub(" ", self._word_at(ending.end())).strip() or "-"
        # '"Really?" he asked.'
        if (following[0].islower() or following[0].isdecimal()) and not set(_UNQUOTED).isdisjoint(
            ending["closers"]
        ):
            return False
        # No quotation and no bracket is open: only words decide. Without what opens, "(e.g." is known; with
        # a sign for what closes, "(24 g)." is none.
        context = self._buffer[max(self._start, ending.start() - _CONTEXT) : ending.start()]
        head = _MARKUP.sub("”", _OPENED.sub(" ", context))
        if set(ending["closers"]) <= set("*_~"):
            if ending["marks"] == "." and (abbreviated := goes_on(head, following)) is not None:
                return not abbreviated
            # "Yahoo! is", but not of those who write without capitals
            if ending["marks"] in "!?" and following.islower() and self._begins_with_capital():
                return False
        marks = ending["marks"].replace("…", "...")
        boundaries = get_sentence_boundaries(self._language, f"{head}{marks} {following} ")
        return any(len(head) < boundary["start_index"] <= len(head + marks) + 1 for boundary in boundaries)

    def _word_at(self, at: int) -> str:
        """Return the first characters of a word, all of them where it is no longer than any that decides."""
        word = _WORD.match(self._buffer, at)
        assert word is not None
        if len(word[0]) < _LONGEST_WORD:
            self._require_beyond(word.end())
        return word[0]

    def _begins_with_capital(self) -> bool:
        letter = _LETTER.search(self._buffer, self._start, self._at)
        return letter is not None and letter[0].isupper()

    def _open_or_close(self, opened: list[_Opener], at: int) -> int:
        """Open or close what the character at `at` opens or closes; return where to read on."""
        char = self._buffer[at]
        in_code = bool(opened) and opened[-1].closing.startswith("`")
        if char == "`":
            end = self._end_of(_TICKS, at)
            self._require_beyond(end)
            ticks = self._buffer[at:end]
            if in_code and opened[-1].closing == ticks:
                opened.pop()
            elif not in_code and at >= self._deaf:
                opened.append(_Opener(ticks, within=True))
            return end
        if in_code:
            return at + 1
        for depth, opener in enumerate(opened):
            if char in opener.closing:
                if not (char == "’" and self._within_word(at)):
                    del opened[depth:]
                return at + 1
        if char in _PAIRS and at >= self._deaf and len(opened) < _DEEPEST and self._opens(char, at):
            within = _WORD_CHARACTER.search(self._buffer, self._start, at) is not None
            opened.append(_Opener(_PAIRS[char], within))
        return at + 1

    def _within_word(self, at: int) -> bool:
        self._require_beyond(at + 1)
        return self._buffer[at + 1 : at + 2].isalnum()

    def _opens(self, char: str, at: int) -> bool:
        before = self._buffer[at - 1] if at > self._start else " "
        if char in '"‘':  # not 5", nor what closes unopened
            return not (before.isalnum() and not _CHINESE.match(before)) and before not in ".,;!?…%)"
        if char in "»›":
            return before.isspace() and self._within_word(at)
        return not (char in "([" and before in ":;")  # no smiley

    def _cut(self, limit: int) -> int:
        """Return where to cut a piece that does not end: behind white space or a comma, if there is any."""
        soft = _SOFT.match(self._buffer, self._start, limit)
        cut = soft.end() if soft else limit
        while cut > self._start and inside_sign(self._buffer, cut, self._start):
            cut -= 1
        return cut if cut > self._start else limit
