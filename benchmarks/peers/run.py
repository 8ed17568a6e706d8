"""One method of one package in this process: `python benchmarks/peers/run.py PACKAGE METHOD SEED BUDGET GRID`.

Prints what `Watch` found, as JSON, on the last line.
"""

import json
import sys
from importlib import import_module

from watch import Watch


def main(package: str, method: str, seed: str, budget: str, grid: str) -> None:
    watch = Watch(float(budget), grid)
    parameters = import_module(f"with_{package}").train(method, int(seed), watch)
    print(json.dumps(watch.found() | {"parameters": parameters}))


if __name__ == "__main__":
    main(*sys.argv[1:])
