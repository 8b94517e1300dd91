"""Figures in one modest size, written as small PNGs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.3,
}


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Give an empty figure [inch]; on leaving, it is written."""
    with rc_context(STYLE):  # type: ignore[arg-type]
        drawn = Figure(figsize=(width, height), dpi=110, layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn
        drawn.get_layout_engine().execute(drawn)  # type: ignore[union-attr]
        drawn.set_layout_engine(None)  # with one, savefig draws everything twice
        drawn.savefig(path)
    _shrink(path)


def _shrink(path: Path) -> None:
    """Keep 256 colours: a third of the bytes, and no difference to be seen in line art."""
    with Image.open(path) as full:
        small = full.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def show(axes, pixels, title: str = "") -> None:  # type: ignore[no-untyped-def]
    """Put a picture on axes."""
    axes.imshow(pixels)
    axes.set_axis_off()
    axes.set_title(title)
