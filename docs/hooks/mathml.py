"""Mathematics without network: `$...$` and `$$...$$` become MathML while the pages are built.

A formula is replaced by a word that Markdown leaves alone (so `|` and `_` are safe inside tables and emphasis) and put
back as MathML once the page is HTML. Fenced code, inline code and HTML comments are left as they are.
"""

import re
from typing import Any

from latex2mathml.converter import convert

_TOKENS = re.compile(
    r"(?P<skip>^[ \t]*(?P<fence>```+|~~~+).*?^[ \t]*(?P=fence)[ \t]*$"
    r"|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)|<!--.*?-->)"
    r"|\$\$(?P<block>.+?)\$\$"
    r"|(?<![\\$])\$(?P<inline>[^\s$](?:[^$]*?[^\s$])?)\$(?!\d)",
    re.DOTALL | re.MULTILINE,
)
_WORD = "angdformula{}x"
_SCROLLING = '<span class="formula">{}</span>'
_LONG = 60  # characters; a formula in a line that is longer scrolls by itself on narrow pages
_LONG_INLINE = '<span class="long formula">{}</span>'

_formulas: dict[str, list[str]] = {}


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Put a word in the place of each formula of the page."""
    found = _formulas[page.file.src_uri] = []

    def replace(match: re.Match[str]) -> str:
        if match["skip"]:
            return match["skip"]
        block = match["block"] is not None
        formula = " ".join((match["block"] if block else match["inline"]).split())
        html = convert(formula, display="block" if block else "inline")
        around = _SCROLLING if block else _LONG_INLINE if len(formula) > _LONG else "{}"
        found.append(around.format(html))
        return _WORD.format(len(found) - 1)

    return _TOKENS.sub(replace, markdown)


def on_page_content(html: str, *, page: Any, **kwargs: Any) -> str:
    """Put the formulas back."""
    found = _formulas.pop(page.file.src_uri, [])
    return re.sub(_WORD.format(r"(\d+)"), lambda match: found[int(match[1])], html)
