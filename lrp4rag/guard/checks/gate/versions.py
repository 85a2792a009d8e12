"""Versions as documents have them ("v2.8", "2024-05", "Rev. B", "2nd edition"), and their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from lrp4rag.claims.numerals import ORDINALS
from lrp4rag.source import Source

_LONGEST = 60
_ORDINALS = ORDINALS[:10]
_NUMBER = r"\d{1,9}(?:[.-]\d{1,9}){0,5}"
_STAGE = r"(?:[ ._-]?(?:rc|alpha|beta|dev|draft)\d{0,3}|[a-z]\d{0,3})?"
_NTH = rf"(?P<nth>\d{{1,4}})(?:st|nd|rd|th)|(?P<word>{'|'.join(_ORDINALS)})"
_MARKED = re.compile(
    r"(?<![^\W_])(?:"
    rf"(?:version|ver|v|revision|rev|release|edition)[ .:_-]{{0,2}}(?P<number>{_NUMBER}{_STAGE})"
    rf"|(?:version|revision|rev)[ .:_-]{{1,2}}(?P<letter>[a-z])"
    rf"|(?:{_NTH})[ _-](?:edition|ed|revision)"
    r")(?![^\W_])"
)
_ALPHANUMERIC = r"[^\W_]"
_FIRST_YEAR = 1900
"""A version that begins with at least this is a date."""


@dataclass(frozen=True, slots=True)
class Edition:
    """A version, which can be compared with others of its `scheme`: "number", "date" or "letter"."""

    scheme: str
    number: Version

    @property
    def is_draft(self) -> bool:
        """Say whether it is marked as a draft, an alpha, a beta or a release candidate."""
        return self.number.is_prerelease

    def is_newer(self, other: Edition) -> bool:
        """Say whether it is newer; False also where they cannot be compared: "Rev. B" and "3.1"."""
        return self.scheme == other.scheme and self.number > other.number


def edition_of(source: Source) -> Edition | None:
    """Read a passage's version, or else a version that is marked as such in its title or id."""
    if source.version is not None and source.version.strip():
        return read_version(source.version)
    texts = (source.title or "", source.id or "")
    return next((edition for text in texts for edition in named_versions(text)), None)


def named_versions(text: str) -> Iterator[Edition]:
    """Iterate over the versions that a text marks as such: "v2.8", "version 3", "Rev. B", "2nd edition"."""
    editions = (read_version(_marked(match)) for match in _MARKED.finditer(text.casefold()))
    return (edition for edition in editions if edition is not None)


def read_version(text: str) -> Edition | None:
    """Read a version; None for a version that cannot be ordered."""
    text = " ".join(text[: 2 * _LONGEST].casefold().split())
    if len(text) > _LONGEST:
        return None
    is_draft = "draft" in text
    text = _unmarked(" ".join(re.split(r"[\W_]*draft[\W_]*", text)).strip())
    text = re.sub(r"\A[^\W\d_]+[ .:_-]{1,2}(?=\d)", "", text).strip(" .()")
    is_letter = re.fullmatch("[a-z]", text) is not None
    number = Version(str(ord(text))) if is_letter else _number(text)
    if number is None:
        return None
    if is_draft and not number.is_prerelease:
        number = Version(f"{number.base_version}a0")
    scheme = "letter" if is_letter else "date" if number.release[0] >= _FIRST_YEAR else "number"
    return Edition(scheme, number)


def without_version(text: str, version: str | None) -> str:
    """Return the words of a title or id in small letters, without its version."""
    text = _MARKED.sub(" ", text.casefold())
    if version is not None and read_version(version) is not None:
        words = re.findall(rf"{_ALPHANUMERIC}+", _unmarked(version[:_LONGEST].casefold().strip()))
        pattern = r"[\W_]".join(re.escape(word) for word in words)
        text = re.sub(rf"(?<!{_ALPHANUMERIC})v?{pattern}(?!{_ALPHANUMERIC})", " ", text)
    return " ".join(re.findall(rf"{_ALPHANUMERIC}+", text))


def _unmarked(version: str) -> str:
    """Remove the mark that a version begins with."""
    match = _MARKED.match(version)
    return version if match is None else _marked(match) + version[match.end() :]


def _marked(match: re.Match[str]) -> str:
    """Return the number or letter of a marked version."""
    if match["word"]:
        return str(_ORDINALS.index(match["word"]) + 1)
    return match["number"] or match["letter"] or match["nth"]


def _number(text: str) -> Version | None:
    plain = re.sub(r"\A(\d+)(?:st|nd|rd|th)\Z", r"\1", text)
    plain = re.sub(r"(?<=\d)[-/](?=\d)|(?<=\d)[ -]?q(?=[1-4]\b)", ".", plain)  # "2024-05", "2024-Q3"
    plain = re.sub(r"\A((?:19|20)\d\d)([01]\d)(\d\d)?\Z", r"\1.\2.\3", plain).rstrip(".")  # "20240501"
    # In documents "2.8b" comes after 2.8, where packaging takes it for a beta.
    plain = re.sub(r"\A([\d.]*\d)([a-z])\Z", lambda match: f"{match[1]}.post{ord(match[2])}", plain)
    try:
        return Version(plain)
    except (InvalidVersion, ValueError):  # `ValueError` for more digits than Python reads
        leading = re.match(rf"{_NUMBER}(?![\w.\-/])", text, re.ASCII)
    if leading is None:
        return None
    return Version(leading[0].replace("-", "."))
