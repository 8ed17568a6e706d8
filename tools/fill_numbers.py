"""Numbers in README and docs come from results/*.json, between markers `<!--n:file.key-->…<!--/n-->`.

`python tools/fill_numbers.py` checks that they are current; `--write` puts them in.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MARKER = re.compile(r"<!--n:([\w.-]+)-->(.*?)<!--/n-->", re.DOTALL)


def pages() -> list[Path]:
    """Every page that may show a number."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def look_up(key: str) -> str:
    """The value of `file.part.part`, as it should be shown."""
    name, *parts = key.split(".")
    value = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    for part in ["values", *parts]:
        value = value[part]
    return shown(value)


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


def filled(text: str) -> str:
    """The text with every marked number looked up."""
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
