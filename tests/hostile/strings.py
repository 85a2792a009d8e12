"""What users' data may hold, by accident or on purpose."""

from __future__ import annotations

import unicodedata

CONTROLS = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x9b31m", "\x00nul", "bell\x07"]
CONTROLS += ["back\x08\x08\x08\x08", "over\rwritten", "del\x7f", "\u202egnp.exe", "\u2066isolated\u2069"]
CONTROLS += ["\u2028line", "\x0b\x0c"]
MARKUP = ["[bold]b[/bold]", "[/INST]", "[/]", "[link=http://x]y[/link]", ":smile:", "\\[x]", "[[[", "]"]
TEXTS = [*CONTROLS, *MARKUP]
HTML = ["</text><script>alert(1)</script>", "<img src=x onerror=alert(1)>"]
LINKS = [
    "[click](javascript:alert(1))",
    "![i](https://evil.example/i.png)",
    "[0.1, 0.2](https://evil.example)",
]
BLOCKS = ["\n# heading\n\n<script>", "\n\n---\n\n", "\n| a | b |\n|---|---|\n"]
LINES = """\
<script>alert(1)</script>
<!-- comment
<https://evil.example>
&lt;script&gt; &#x3c;
[0.1, 0.2]: https://evil.example
[a]: https://evil.example 'b'
a ][b](c
# heading
a|b||c
a\\|b
ends in a backslash\\
`code`
`` ` ``
` `` ``` ````
**bold** *italic* __b__ _i_ ~~s~~
* item
- item
+ item
1. item
    indented
\tindented
===
---
***
$$\\frac{1}{0}$$
{{ name }} {% raw %}
[x] task
[^1] note"""
MARKDOWN = [*HTML, *LINKS, *BLOCKS, *LINES.split("\n"), "```\nfence", "> quote", "a\r\nb\u2028c\u2029d\x85e"]
HYPERLINK = '=HYPERLINK("http://evil.example","x")'
FORMULAS = [HYPERLINK, "=1+1", "+1", "-1+1", "@SUM(A1)", "a,=1", "\uff1d1", "-"]
FORMULAS += ["\t=1", "\r=1", "\n=1", " =1", 'a"\n=1']
MATHEMATICS = ["$", "$$", "$a$", "$\\frac{$", "\\frac{1}{2}", "$x_1", "\\$5", "R_1 ^{", "$$$"]
NAMES = [".", "..", "../../etc/passwd", "a/b", "a\\b", "/", "-rf", "CON", "a:b", "items", "all"]
NAMES += ["", " ", "a\x00b", "模型", "\u200b", "_hidden", "e\u0301", "\udc80", "\ufffe\uffff"]
NAMES += ['x d="1.23456', "x" * 300]
HOSTILE = list(dict.fromkeys([*MARKDOWN, *FORMULAS, *MATHEMATICS, *NAMES, *TEXTS]))
IN_PAGES = [*HTML, *LINKS, *BLOCKS, "```\nfence", "> quote", HYPERLINK]
IN_PAGES += ["", "$\\frac{$", *CONTROLS[:2], "x" * 300, "a\r\nb\u2028c"]
"""One of each kind, for pages that take long to make."""


def obeyed(text: str) -> str:
    """The characters of an output that a terminal would obey, or that reorder the text around them."""
    bidi = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    return "".join(
        char
        for char in text
        if char != "\n" and (unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in bidi)
    )
