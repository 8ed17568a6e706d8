"""How figures look on light and on dark paper."""

from dataclasses import dataclass

from matplotlib.axes import Axes


@dataclass(frozen=True)
class Theme:
    """Ink, lines and the colours of curves."""

    ink: str
    grid: str
    colours: tuple[str, ...]


LIGHT = Theme("#1c1f23", "#d9dce0", ("#1f6fb4", "#c4502d", "#2a8c5a", "#8a5bb8", "#b8860b", "#d6568f", "#5f6b76"))
DARK = Theme("#e6e8eb", "#3b4148", ("#6db3f2", "#f08c68", "#63c795", "#bd9be6", "#e3b94f", "#f08fbc", "#a7b0ba"))


def bare(panel: Axes, theme: Theme) -> None:
    """Two axes, a fine grid, no box."""
    panel.set_facecolor("none")
    panel.grid(color=theme.grid, linewidth=0.6)
    panel.tick_params(colors=theme.ink, which="both", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(theme.ink)
