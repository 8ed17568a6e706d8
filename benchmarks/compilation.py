"""Seconds to the first step of `angd run` and between its phases, with an empty cache and with a full one.

python benchmarks/compilation.py burgers --warm-steps 2 --fresh 3 --steps 8
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from angd.train.folder import Record, RunFolder
from angd.view.curves import compilations

USUAL = ["burgers", "--warm-steps", "2", "--fresh", "3", "--steps", "8"]


def measured(arguments: list[str], folder: Path, cache: Path) -> dict[str, Any]:
    """What a run in a process of its own spent before its first step, and on compilation in each phase."""
    command = [sys.executable, "-m", "angd.program.main", "run", *arguments, "--out", str(folder), "--quiet"]
    environment = os.environ | {"ANGD_CACHE": str(cache)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    records = RunFolder(folder).records()
    first = records[0]
    return {
        "first step, s": first.seconds,
        "first step, CPU s": first.cpu_seconds,
        "compilation by phase, CPU s": _by_phase(records),
    }


def _by_phase(records: list[Record]) -> list[float]:
    pauses = compilations(records, "cpu_seconds")
    phases = range(records[-1].phase + 1)
    return [round(sum(p for r, p in zip(records, pauses, strict=True) if r.phase == n), 2) for n in phases]


def main(arguments: list[str]) -> None:
    """Cold, then warm."""
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        for name in ("cold", "warm"):
            print(json.dumps({name: measured(arguments, here / name, here / "cache")}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or USUAL)
