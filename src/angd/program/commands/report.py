"""`angd report`: one page about runs. The options import nothing heavy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from angd.train.files import check_folder
from angd.train.folder import find_runs


@dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained page about runs, with figures (PNG, PDF) and numbers (CSV) beside it."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR…")]
    """Folders of runs, or folders that hold some."""
    out: Path | None = None
    """Folder of the report; by default report/ in the first DIR."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if not self.folders:
            raise ValueError("Say which runs to report on, e.g. angd report runs/burgers-energy-0.")
        for folder in find_runs(list(self.folders)):
            folder.config()
        check_folder(self.place)

    @property
    def place(self) -> Path:
        return self.out or self.folders[0] / "report"


def run_report(options: ReportOptions) -> int:
    """Do it."""
    from angd.view.report import write_report

    print(f"report: {write_report(options.folders, options.place)}")
    return 0
