"""The `angd` command. Arguments are parsed and checked before JAX is imported, so a mistake is answered at once."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from angd.experiments.flow_catalogue import FLOWS
from angd.experiments.flow_command import FlowOptions, run_flow


@dataclass(frozen=True)
class ListOptions:
    """Show what can be run by name, with one line each."""


def run_list(options: ListOptions) -> int:
    """Print the catalogue."""
    print("angd flow --manifold NAME --functional NAME")
    for manifold, functionals in FLOWS.items():
        for functional, line in functionals.items():
            print(f"  {manifold:<11} {functional:<17} {line}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; exit code 0, or 2 with one sentence on standard error for bad input."""
    options = tyro.extras.subcommand_cli_from_dict(
        {"flow": FlowOptions, "list": ListOptions},
        prog="angd",
        description="Accelerated natural gradient descent on parametric manifolds.",
        args=sys.argv[1:] if argv is None else list(argv),
    )
    try:
        if isinstance(options, FlowOptions):
            options.check()
            return run_flow(options)
        return run_list(options)
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
