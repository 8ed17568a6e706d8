"""Numbers in README and docs come from results/*.json; `--write` puts them in, without it they are checked.

A page shows them in blocks, `<!-- from: NAME -->…<!-- end -->`: what stands between is docs/templates/NAME.md with its
expressions evaluated, so that prose which quotes a number is written in the template. A template knows

- `n("file.part.part")`, a number of results/file.json as it should be shown, `short(…)`, the same to two digits, and
  `v(…)`, the value itself;
- `row(cell, …)`, a line of a table; `shown(value)`, a value as it should be shown;
- `code("examples/front.py")`, a fenced block with a file.

A single number may also stand in a page by itself, between `<!--n:file.part.part-->…<!--/n-->`.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from wrapping import wrapped

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "docs" / "templates"
MARKER = re.compile(r"<!--n:([\w.-]+)-->(.*?)<!--/n-->", re.DOTALL)
BLOCK = re.compile(r"<!-- from: ([\w.-]+) -->\n.*?<!-- end -->", re.DOTALL)


def pages() -> list[Path]:
    """Every page that may show a number."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@cache
def results(name: str) -> Any:
    """The values of results/NAME.json."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))["values"]


def value(key: str) -> Any:
    """The value of `file.part.part`."""
    name, *parts = key.split(".")
    found = results(name)
    for part in parts:
        found = found[part]
    return found


def look_up(key: str) -> str:
    """The value of `file.part.part`, as it should be shown."""
    return shown(value(key))


def shown(value: Any) -> str:
    """A number to three digits, several with commas, settings with their names; a dash for what there is not."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ("; " if value and isinstance(value[0], list) else ", ").join(map(shown, value))
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value + 0.0:.3g}"


def short(key: str) -> str:
    """The value of `file.part.part` to two digits, with as short an exponent as it has."""
    found = value(key)
    if not isinstance(found, float) or found == 0 or abs(found) >= 1e3:
        return shown(found)
    return f"{found:.2g}" if abs(found) >= 1e-3 else re.sub(r"e-0*", "e-", f"{found:.1e}")


def row(*cells: Any) -> str:
    """A line of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def code(path: str) -> str:
    """A file as a fenced block."""
    return f"```python\n{(ROOT / path).read_text(encoding='utf-8').rstrip()}\n```"


@cache
def environment() -> Environment:
    """How templates are read: a name that is missing is an error."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    found.globals.update(n=look_up, short=short, v=value, shown=shown, row=row, code=code)
    return found


def rendered(name: str) -> str:
    """A template with its numbers."""
    text = environment().get_template(f"{name}.md").render()
    return f"<!-- from: {name} -->\n{wrapped(text.strip())}\n<!-- end -->"


def filled(text: str) -> str:
    """The text with every block rendered and every marked number looked up."""
    text = BLOCK.sub(lambda match: rendered(match[1]), text)
    return MARKER.sub(lambda match: f"<!--n:{match[1]}-->{look_up(match[1])}<!--/n-->", text)


def main() -> int:
    stale = [page for page in pages() if filled(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in stale if "--write" in sys.argv else []:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    if stale and "--write" not in sys.argv:
        print("out of date, run `make numbers`: " + ", ".join(str(page.relative_to(ROOT)) for page in stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
