"""Progress in a notebook: a bar, a line about the run, and how the loss fell, in one output that is renewed."""

import html
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from angd.train.folder import Record
from angd.train.progress import BRIEF, STOPPING, Lines

WIDTH, HEIGHT, POINTS = 320, 56, 160  # of the curve, in pixels and numbers
STYLE = (
    "<style>@keyframes angd-turn{to{transform:rotate(1turn)}}"
    ".angd-turn{display:inline-block;animation:angd-turn 1s linear infinite}</style>"
)
Display = Callable[[str], Callable[[str], Any]]


def display_of() -> Display | None:
    """What shows HTML in the notebook that this process serves, None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    def show(text: str) -> Callable[[str], Any]:
        handle: Any = display(HTML(text), display_id=True)
        return lambda again: handle.update(HTML(again))

    return show


class Notebook(Lines):
    """A bar and a small curve of the loss.

    **Arguments:** as of `Lines`; `display(html)` shows a page and returns what renews it.
    """

    interval = 0.5  # seconds between two renewals

    def __init__(self, title: str, plan: Any, display: Display, **rest: Any):
        self.losses: list[float] = []
        self.update: Callable[[str], Any] | None = None
        super().__init__(title, plan, **rest)
        self.display = display

    def __enter__(self) -> "Notebook":
        self.update = self.display(self.page())
        return self

    def __exit__(self, *_: Any) -> None:
        self.work = "" if self.last else self.work
        self._renew(over=True)

    def doing(self, work: str) -> None:
        """Show what is being done, where it is worth a word."""
        super().doing(work)
        if work not in ("", BRIEF) or self.clock() >= self.due:
            self._renew()

    def stopping(self) -> None:
        """The next renewal says it."""
        self.asked = True

    def __call__(self, state: Any, info: Any, last: Record | None) -> None:
        """After every step."""
        self.losses.append(float(info.loss))
        if len(self.losses) > 2 * POINTS:
            del self.losses[1:-1:2]  # ever coarser, as the curve's width allows
        super().__call__(state, info, last)

    def show(self, state: Any, info: Any, last: Record | None, now: float) -> None:
        """Renew it, when it is due."""
        if now >= self.due or self.work:
            self._renew()

    def say(self, text: str) -> None:
        """The page says it."""

    def _renew(self, over: bool = False) -> None:
        if self.update is not None:
            self.update(self.page(over))
            self.due = self.clock() + self.interval

    def page(self, over: bool = False) -> str:
        """The output as it stands."""
        done = 0.0 if self.last is None else min(self.plan.budget.spent(self.last[0]), 1.0)
        turning = "" if over else '<span class="angd-turn">◠</span> '
        said = f"{self.work} …" if self.work else ", ".join(part for part in self._said() if part)
        asked = f"; {STOPPING}" if self.asked and not over else ""
        return (
            f"{STYLE}<div>{turning}<b>{html.escape(self.title)}</b> "
            f'<progress value="{done:.4f}" max="1" style="width:{WIDTH // 2}px;vertical-align:middle"></progress> '
            f"{html.escape(said + asked)}</div>{curve(self.losses)}"
        )

    def _said(self) -> Sequence[str]:
        return [] if self.last is None else self.parts(*self.last)


def curve(losses: Sequence[float]) -> str:
    """The losses as a small picture, on a logarithmic scale where all are positive."""
    known = [loss for loss in losses if math.isfinite(loss)]
    if len(known) < 2:
        return ""
    heights = [math.log10(loss) for loss in known] if min(known) > 0 else known
    low, high = min(heights), max(heights)
    across, up = WIDTH / (len(heights) - 1), (HEIGHT - 4) / max(high - low, 1e-12)
    points = " ".join(f"{i * across:.1f},{2 + (high - y) * up:.1f}" for i, y in enumerate(heights))
    scale = f"loss from {known[0]:.2e} to {known[-1]:.2e}"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{scale}"><title>{scale}</title>'
        f'<polyline points="{points}" fill="none" stroke="#0072b2" stroke-width="1.5"/></svg>'
    )
