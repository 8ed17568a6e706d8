"""The `angd` command. Arguments are parsed and checked before JAX is imported, so a mistake is answered at once."""

import io
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from angd.address import blame
from angd.program.arguments import parse
from angd.program.commands.compare import CompareOptions, run_compare
from angd.program.commands.completion import CompletionOptions, run_completion
from angd.program.commands.evaluate import EvaluateOptions, run_evaluate
from angd.program.commands.flow import FlowOptions, run_flow
from angd.program.commands.listing import ListOptions, run_list
from angd.program.commands.report import ReportOptions, run_report
from angd.program.commands.reproduce import ReproduceOptions, run_reproduce
from angd.program.commands.run import RunOptions, run_run
from angd.program.commands.sweep import SweepOptions, run_sweep
from angd.program.hosts import is_lost, lose
from angd.program.terminal import tell, tell_page
from angd.train.signals import Stopped, Stopper, end_at_once

COMMANDS: dict[str, tuple[type, Any]] = {
    "run": (RunOptions, run_run),
    "compare": (CompareOptions, run_compare),
    "sweep": (SweepOptions, run_sweep),
    "evaluate": (EvaluateOptions, run_evaluate),
    "report": (ReportOptions, run_report),
    "reproduce": (ReproduceOptions, run_reproduce),
    "flow": (FlowOptions, run_flow),
    "list": (ListOptions, run_list),
    "completion": (CompletionOptions, run_completion),
}
REPEATED = ("compare", "sweep", "reproduce")  # commands that go on when they are given again
LONGEST = 300  # letters of a word that is repeated in full
HELP = """angd: accelerated natural gradient descent on parametric manifolds

  angd run TASK [RECIPE]     train; TASK is a name, front.py, package.module:name or water.xyz
  angd compare TASK A,B,C    several recipes on one task, with one table and one page
  angd sweep TASK RECIPE     tune a recipe's options
  angd evaluate DIR          judge a run again: another checkpoint, a finer grid, more walkers
  angd report DIR…           one page about runs
  angd reproduce FIGURE      a figure of the paper
  angd flow                  integrate a continuous flow, and draw it against the proven rate
  angd list [NAME]           what can be run by name, or more about one of them
  angd completion SHELL      complete words in bash or zsh

  angd COMMAND --help tells more; angd run burgers energy --help has the options of a recipe.
  A first try: angd run heat"""


def say(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """A warning as a sentence; where in the code it arose is for developers."""
    tell(str(message))


def shortened(sentence: str) -> str:
    """On one line, with the middle of very long words left out."""
    words = " ".join(sentence.split()).split(" ")
    return " ".join(word if len(word) <= LONGEST else f"{word[:40]}…{word[-10:]}" for word in words)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; exit code 0, or 2 with one sentence on standard error for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no Greek still shows the rest
    with warnings.catch_warnings(), Stopper(end_at_once):
        warnings.showwarning = say
        return _main(sys.argv[1:] if argv is None else argv)


def _main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        tell_page(HELP)
        return 0
    if argv[0] == "--version":
        print(f"angd {version('angd')}")
        return 0
    if any("\0" in word for word in argv):
        tell("an argument holds a zero character, which no name or number has.")
        return 2
    try:
        options = parse(argv, {name: kind for name, (kind, _) in COMMANDS.items()})
        options.check()
        return COMMANDS[argv[0]][1](options)
    except KeyboardInterrupt as stop:
        return _stopped(stop, argv[0])
    except Exception as error:
        if is_lost(error):
            lose()
        return _failed(error)


def _failed(error: Exception) -> int:
    """Say what is wrong in one sentence; what nobody has thought of is raised again."""
    match error:
        case ValueError():
            sentence, code = shortened(str(error)), 2
        case ImportError():
            sentence, code = str(error), 1
        case OSError():
            sentence, code = f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), 1
        case _:
            sentence, code = blame(error), 1
    if sentence is None:
        raise error
    tell(sentence)
    return code


def _stopped(stop: KeyboardInterrupt, command: str) -> int:
    """Say how to go on, where one can."""
    sentence = "stopped; the same command goes on." if command in REPEATED else str(stop) or "interrupted."
    tell(sentence)
    return stop.code if isinstance(stop, Stopped) else 130


if __name__ == "__main__":
    sys.exit(main())
