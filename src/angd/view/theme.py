"""How figures look: ink on light and on dark paper, one colour and dash for each method, and the sizes of pages.

    Theme     ink, grid, colours
    styles    method → colour and dash, the same in every figure; nobody needs to tell red from green
    Page      how wide a figure is, and how large its letters

A method's colour is that of its family (`energy`, `angd`, `ngd`, Adam, …), its dash that of the member.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes

Dash = Any


@dataclass(frozen=True)
class Theme:
    """Ink, lines and colours: `hues` by name, `colours` in order for whatever is no method."""

    ink: str
    grid: str
    paper: str
    hues: Mapping[str, str]

    @property
    def colours(self) -> tuple[str, ...]:
        return tuple(self.hues.values())


# Hues of Okabe and Ito (2008), darker or lighter where thin lines need it on this paper.
LIGHT = Theme(
    "#1c1f23",
    "#d9dce0",
    "#ffffff",
    {
        "blue": "#0067a8",
        "vermilion": "#b53600",
        "green": "#00916b",
        "orange": "#bd8e00",
        "grey": "#747d88",
        "purple": "#9a2c9a",
        "sky": "#3796d6",
        "black": "#1c1f23",
    },
)
DARK = Theme(
    "#e6e8eb",
    "#3b4148",
    "#16191d",
    {
        "blue": "#5aa9e6",
        "vermilion": "#f0703c",
        "green": "#3fcfa4",
        "orange": "#ffcf5c",
        "grey": "#8f99a3",
        "purple": "#ff9cd2",
        "sky": "#a8dcff",
        "black": "#e6e8eb",
    },
)
SOLID, DASHED, DOTTED, BOTH, LONG = "-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3))
DASHES: tuple[Dash, ...] = (SOLID, DASHED, BOTH, DOTTED, LONG)
# The beginning of a name, and the hue of all that begin with it; the longest wins.
FAMILIES = {
    "energy": "blue",
    "angd": "vermilion",
    "ngd": "green",
    "adam": "orange",
    "sgd": "grey",
    "spring": "purple",
    "minsr": "sky",
    "wqmc": "green",
    "kfac": "sky",
    "lbfgs": "purple",
    "ssbroyden": "sky",
    "engd": "black",
    "heavy-ball": "purple",
    "nesterov": "sky",
    "inference": "black",
    "inference-ngd": "grey",
    "inference-w2-ngd": "grey",
    "inference-adam": "orange",
}
MEMBERS = {
    **{f"{kind}-{metric}": dash for kind in ("angd", "ngd") for metric, dash in (("h1", DASHED), ("h2", BOTH))},
    **{f"{kind}-w2": DASHED for kind in ("angd", "ngd")},
    **{f"inference{kind}": DASHED for kind in ("", "-ngd", "-adam")},
    **{f"inference-w2{kind}": DOTTED for kind in ("", "-ngd")},
    "angd-w2p": DOTTED,
    "inference-w2p": BOTH,
    "angd-w2-kfac": BOTH,
    "angd-l2-printed": DOTTED,
    "spring-published": DASHED,
    "energy-fast": DASHED,
    "energy-large": BOTH,
    "energy-trust": LONG,
    "energy-projected": DOTTED,
    "energy-accelerated": (0, (3, 1, 1, 1, 1, 1)),
    "wqmc": DOTTED,
    "engd": SOLID,
    "ssbroyden": DASHED,
    "nesterov": DASHED,
    "kfac-fr": DASHED,
}


class Style(NamedTuple):
    """A curve's colour and dash."""

    colour: str
    dash: Dash


def styles(labels: Iterable[str], theme: Theme = LIGHT) -> dict[str, Style]:
    """Colour and dash of each method, by its label: `angd-l2`, or `angd-l2 (rate 0.1)`.

    **Arguments:** `labels`; `theme`.

    **Returns:** styles by label. Members of a family that are not told apart by name get different dashes, in order;
    a method of somebody's own gets a hue that nobody else has, as long as there are any.
    """
    found: dict[str, Style] = {}
    labels = list(labels)
    taken = {hue for label in labels if (hue := family(label)) is not None}
    spare = [hue for hue in theme.hues if hue not in taken] or list(theme.hues)
    for label in labels:
        hue = family(label) or spare[sum(family(other) is None for other in found) % len(spare)]
        usual = MEMBERS.get(_name(label), SOLID)
        free = [dash for dash in (usual, *DASHES) if Style(theme.hues[hue], dash) not in found.values()]
        found[label] = Style(theme.hues[hue], free[0] if free else usual)
    return found


def family(label: str) -> str | None:
    """The hue of a method's family, None for a method of one's own."""
    fitting = [name for name in FAMILIES if _name(label) == name or _name(label).startswith(f"{name}-")]
    return FAMILIES[max(fitting, key=len)] if fitting else None


def _name(label: str) -> str:
    return label.partition(" (")[0]


@dataclass(frozen=True)
class Page:
    """What a figure is made for.

    **Attributes:** `width` in inches, None for a screen, where each panel has `panel` inches; `letters` in points;
    `line`, the width of curves in points; `columns`, at most so many panels beside each other.
    """

    width: float | None = None
    panel: tuple[float, float] = (4.8, 2.9)
    letters: float = 9.0
    line: float = 1.6
    columns: int = 3

    def size(self, rows: int, columns: int) -> tuple[float, float]:
        """Of a figure with so many panels, in inches."""
        if self.width is None:
            return self.panel[0] * columns, self.panel[1] * rows
        return self.width, rows * min(0.72 * self.width / columns, 2.3)

    @property
    def rc(self) -> Any:
        """For matplotlib: letters, and fonts that editors and publishers can read."""
        return {
            "font.size": self.letters,
            "axes.titlesize": self.letters,
            "axes.labelsize": self.letters,
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "svg.fonttype": "path",
            "svg.hashsalt": "angd",
        }


SCREEN = Page()
PAPER = {"narrow": Page(3.3, letters=7.0, line=1.0, columns=1), "wide": Page(6.9, letters=7.5, line=1.1, columns=2)}


def bare(panel: Axes, theme: Theme, page: Page = SCREEN) -> None:
    """Two axes, a fine grid, no box."""
    panel.set_facecolor("none")
    panel.grid(color=theme.grid, linewidth=0.6)
    panel.set_axisbelow(True)
    panel.tick_params(colors=theme.ink, which="both", labelsize=page.letters - 1)
    panel.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(theme.ink)


def inked(theme: Theme) -> Any:
    """For matplotlib: titles, labels and legends in the ink of a paper."""
    return dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "legend.labelcolor"), theme.ink)
