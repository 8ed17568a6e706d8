"""The `angd` command. Arguments are parsed and checked before JAX is imported, so a mistake is answered at once."""

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from angd.program.commands.compare import CompareOptions, run_compare
from angd.program.commands.flow import FlowOptions, run_flow
from angd.program.commands.report import ReportOptions, run_report
from angd.program.commands.reproduce import ReproduceOptions, run_reproduce
from angd.program.commands.run import RunOptions, run_run
from angd.program.commands.sweep import SweepOptions, run_sweep
from angd.program.flow_catalogue import FLOWS
from angd.recipes.experiments import EXPERIMENTS, METRICS, SOLVERS
from angd.recipes.named import RECIPES


@dataclass(frozen=True)
class ListOptions:
    """Show what can be run by name, with one line each."""

    def check(self) -> None:
        """There is nothing to refuse."""


def run_list(options: ListOptions) -> int:
    """Print the catalogue."""
    parts = {
        "experiments (angd run EXPERIMENT)": {name: entry.about for name, entry in EXPERIMENTS.items()},
        "optimisers (--optimizer NAME)": {name: entry.about for name, entry in RECIPES.items()},
        "molecules (experiments vmc-…)": {
            entry.molecule: name for name, entry in EXPERIMENTS.items() if entry.molecule is not None
        },
        "metrics (--metric NAME)": METRICS,
        "solvers (--solver NAME)": SOLVERS,
        "flows (angd flow --manifold NAME --functional NAME)": {
            f"{manifold} {name}": line for manifold, functionals in FLOWS.items() for name, line in functionals.items()
        },
    }
    for title, entries in parts.items():
        print(title)
        width = max(map(len, entries))
        for name, line in entries.items():
            print(f"  {name:<{width}}  {line}")
    return 0


COMMANDS = {
    "run": (RunOptions, run_run),
    "compare": (CompareOptions, run_compare),
    "sweep": (SweepOptions, run_sweep),
    "report": (ReportOptions, run_report),
    "reproduce": (ReproduceOptions, run_reproduce),
    "flow": (FlowOptions, run_flow),
    "list": (ListOptions, run_list),
}


def parse(argv: Sequence[str]) -> Any:
    """Options of a sub-command; what cannot be read is refused in one sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                {name: kind for name, (kind, _) in COMMANDS.items()},
                prog="angd",
                description="Accelerated natural gradient descent on parametric manifolds.",
                args=list(argv),
            )
    except SystemExit as stop:
        if stop.code:
            raise ValueError(as_sentence(said.getvalue())) from None
        raise


TAKES = r"\1 takes \2, not \3"


def as_sentence(box: str) -> str:
    """The first paragraph of tyro's box, and its suggestion."""
    lines = [line.strip("│╭╮╰╯ ") for line in box.splitlines()[1:]]
    paragraphs = " ".join(lines).split("──")
    first = paragraphs[0].partition("Got errors:")[0].replace("{None}|", "").strip()
    first = re.sub(r"Error parsing (\S+): no type matching (.+?) could be instantiated from \[(.*)\]", TAKES, first)
    near = next((p.split("meant:")[1].split()[0] for p in paragraphs if "Perhaps you meant:" in p), None)
    known = next((p.strip() for p in paragraphs if p.strip("─ ").startswith("Available subcommands")), None)
    hint = f"perhaps you meant {near}" if near else known.strip("─ ") if known else "angd COMMAND --help tells more"
    return f"{first.rstrip('.')}; {hint}."


def say(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """A warning as a sentence; where in the code it arose is for developers."""
    print(f"angd: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; exit code 0, or 2 with one sentence on standard error for bad input."""
    with warnings.catch_warnings():
        warnings.showwarning = say
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
        run = next(run for kind, run in COMMANDS.values() if isinstance(options, kind))
        options.check()
        return run(options)
    except ValueError as error:
        print(f"angd: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"angd: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("angd: interrupted; nothing was written.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
