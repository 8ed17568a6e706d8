"""Progress as plain lines on standard error, now and then; `angd.view.progress` has a live one for terminals.

Pace      speed and time left, from the recent steps of the present phase     (angd.train.pace)
Lines     what is said: compiling, a line about the last step, stopping
Silent    nothing is said
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from angd.train.folder import Record
from angd.train.pace import Pace, Plan

STOPPING = "stopping after this step"
AFTER = ("drawing", "evaluating on")  # work that comes when all steps are made
BRIEF = "evaluating"  # work that is usually over before anybody has read of it


class Lines:
    """One line about a run every few seconds: where it is, how it does, how long it will take.

    **Arguments:** `title`; `plan`, budget and phases of the run; `clock`, seconds that go by.
    """

    interval = 10.0  # seconds between lines

    def __init__(self, title: str, plan: Plan, clock: Callable[[], float] = time.monotonic):
        self.clock, self.due = clock, 0.0
        self.asked = False
        self.follow(title, plan)

    def follow(self, title: str, plan: Plan) -> None:
        """Another run is watched from now on."""
        self.title, self.plan, self.pace = title, plan, Pace(plan)
        self.steps = 0
        self.last: tuple[Any, Any, Record | None] | None = None
        self.work, self.since = compiling(plan, 0), self.clock()
        self.began, self.made = self.since, None

    def __enter__(self) -> "Lines":
        self.say(f"{self.title}: {self.work}")
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing to close."""

    def doing(self, work: str) -> None:
        """Say what is being done besides steps; nothing where a step is next."""
        self.work, self.since = work, self.clock()
        if self.made is None and work == BRIEF:
            self.made = self.since

    def begins(self, state: Any) -> None:
        """Before the first step: a run that goes on may stand in a later phase."""
        self.began = self.clock()
        self.doing(compiling(self.plan, self.plan.next_phase(state)))

    def stopping(self) -> None:
        """Answer to a signal, at once; called between two instructions, so it touches no buffer."""
        self.asked = True
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{self.title}: {STOPPING}\n".encode())

    def __call__(self, state: Any, info: Any, last: Record | None) -> None:
        """After every step; `last` is the last evaluation."""
        now = self.clock()
        self.pace.saw(state, now)
        self.steps, self.last = self.steps + 1, (state, info, last)
        if self.steps == 1:
            self.say(f"{self.title}: first step after {(self.made or now) - self.began:.1f} s of compilation")
            self.due = now + self.interval
        coming = self.plan.next_phase(state)
        new = coming != state.phase and self.plan.budget.spent(state) < 1
        self.doing(compiling(self.plan, coming) if new else "")
        if new:
            self.say(f"{self.title}: {self.work}")
        self.show(state, info, last, now)

    def show(self, state: Any, info: Any, last: Record | None, now: float) -> None:
        """A line, when it is due."""
        if now >= self.due:
            self.say(f"{self.title}: " + ", ".join(part for part in self.parts(state, info, last) if part))
            self.due = now + self.interval

    def say(self, text: str) -> None:
        """Print it."""
        print(text, file=sys.stderr, flush=True)

    def parts(self, state: Any, info: Any, last: Record | None) -> list[str]:
        """All there is to say, in words."""
        speed = self.pace.speed
        return [
            self.plan.title(state.phase),
            f"{min(self.plan.budget.spent(state), 1.0):.0%}",
            f"step {state.k}",
            value_of(float(info.loss)),
            error_of(last),
            self.time_left(state),
            "" if speed is None else f"{speed:.1f} steps/s" if speed >= 0.5 else f"{1 / speed:.1f} s a step",
            "" if info.accepted else f"rejected ({state.rejected})",
            f"λ {info.damping:.1e}" if info.damping == info.damping else "",
            f"|d| {info.norm:.1e}",
            *(_about_chain(last.observables) if last is not None else []),
        ]

    def time_left(self, state: Any) -> str:
        """Until the run ends, or the next phase begins."""
        left = self.pace.left(state)
        if left is None:
            return ""
        return f"{as_time(left.seconds)} " + ("left" if left.phase is None else f"to phase {left.phase + 1}")


class Silent(Lines):
    """Says nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def stopping(self) -> None:
        """Nothing."""


def compiling(plan: Plan, phase: int) -> str:
    """What is done before the first step of a phase."""
    return f"compiling {plan.title(phase)}".rstrip()


def value_of(loss: float) -> str:
    """Losses by their order, energies by their digits."""
    return f"loss {loss:.5f}" if loss < 0 else f"loss {loss:.2e}"


def error_of(last: Record | None) -> str:
    """The largest error of the last evaluation."""
    return "" if last is None or not last.errors else f"error {last.error:.2e}"


def as_time(seconds: float) -> str:
    """12 s, 3:05 min, 2:10 h."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"


def _about_chain(seen: dict[str, float | None]) -> list[str]:
    """The acceptance, and bad walkers if there are any."""
    acceptance = seen.get("acceptance")
    parts = [] if acceptance is None else [f"acceptance {acceptance:.0%}"]
    return parts + [f"{name} {seen[name]:.0f}" for name in ("masked", "respawned") if seen.get(name)]
