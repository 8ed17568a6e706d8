"""`angd report`: one page about runs. The options import nothing heavy."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from angd.program.arguments import Paper, Place, Switch
from angd.program.terminal import linked, waiting
from angd.train.files import check_folder
from angd.train.folder import find_runs


@dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained page about runs, with figures (PNG, PDF) and numbers (CSV) beside it."""

    examples: ClassVar[tuple[str, ...]] = (
        "angd report runs/heat-energy-0 --open",
        "angd report runs/heat-energy-0 runs/heat-adam-0",
        "angd report runs --out report",
    )

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR…", help_behavior_hint="")]
    """Folders of runs, or folders that hold some."""
    out: Place = None
    """Folder of the report; by default report/ in DIR, or in the folder that holds all of them."""
    open: Switch = False
    """Show it in the browser."""
    paper: Paper = None
    """Figures of one column (3.3 in) or two (6.9 in), as journals have them."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if not self.folders:
            raise ValueError("Say which runs to report on, e.g. angd report runs/burgers-energy-0.")
        for folder in find_runs(list(self.folders)):
            folder.config()
        check_folder(self.place)

    @property
    def place(self) -> Path:
        return self.out or _around(self.folders) / "report"


def run_report(options: ReportOptions) -> int:
    """Do it."""
    with waiting("drawing"):
        from angd.view.report import write_report

        page = write_report(options.folders, options.place, options.paper)
    print(f"report: {linked(page)}")
    if options.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return 0


def _around(folders: Sequence[Path]) -> Path:
    """The folder, or the one that holds all of them."""
    if len(folders) == 1:
        return folders[0]
    common = Path(os.path.commonpath([folder.resolve() for folder in folders]))
    here = Path.cwd()
    return common.relative_to(here) if common.is_relative_to(here) else common
