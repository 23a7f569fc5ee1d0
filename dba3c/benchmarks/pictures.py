"""Pictures in files, and the axis that most of them have: counts that double."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pyplot() -> ModuleType:
    """Load matplotlib for files, without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def count_axis(axes: Axes, name: str, counts: Sequence[int]) -> None:
    """Draw the x axis in powers, with a mark at each count."""
    axes.set(xscale="log", xlabel=name)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def percent_axis(axes: Axes, name: str, highest: float) -> None:
    """Draw the y axis from 0 % to `highest`, a fraction."""
    from matplotlib.ticker import PercentFormatter

    axes.set(ylim=(0, highest), ylabel=name)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
