"""Figures in one style, without pyplot: no global state, no display."""

import contextlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from add.errors import InputError
from add.io.lock import remove_killed, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
BLUE, RED, GREEN, ORANGE, PURPLE, GREY = "#0b57d0", "#d93025", "#188038", "#e37400", "#8430ce", "#5f6368"
_STYLE = {
    "text.parse_math": False,  # names are letters, dollars among them
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#80868b",
    "axes.grid": True,
    "grid.color": "#e8eaed",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": "#3c4043",
    "ytick.color": "#3c4043",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "add",
}


@contextlib.contextmanager
def figure(path: str | PathLike[str], width: float, height: float) -> Iterator[tuple["Figure", Path]]:
    """Give an empty figure [inch] and the path; on leaving, the figure is written there.

    Raises
    ------
    InputError
        where the file cannot be written or is neither .png nor .svg.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError("unknown kind of file", file=path, found=repr(path.suffix), expected=" or ".join(FORMATS))
    remove_killed(path.parent)
    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, path
        _write_powers_plainly(drawn)
        metadata: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
        try:
            with replacing(path) as temporary:
                drawn.savefig(temporary, dpi=150, metadata=metadata)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def _write_powers_plainly(drawn: "Figure") -> None:
    """Label logarithmic axes as 1e-05: with mathtext off, matplotlib's own labels would show their source."""
    from matplotlib.ticker import LogFormatter

    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() in ("log", "symlog"):
                axis.set_major_formatter(LogFormatter())
                axis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
