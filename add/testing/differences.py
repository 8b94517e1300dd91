"""Differences: the derivative of a function by several step sizes, and what of them is round-off."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from add.typing import FloatArray, IntArray

#: Step sizes of the differences, relative to the size of what is changed.
SIZES = (1e-2, 1e-3, 1e-4, 1e-5)

#: Differences of round-off size are no derivatives: this many units of it are forgiven.
ROUND_OFF = 64.0 * np.finfo(float).eps


def central_difference(
    f: Callable[[FloatArray], FloatArray], x: FloatArray, direction: FloatArray, h: float
) -> FloatArray:
    """Return the derivative of ``f`` at ``x`` along ``direction``, to order h^4.

    (8 (f(x + h d) - f(x - h d)) - (f(x + 2 h d) - f(x - 2 h d))) / (12 h)
    """
    near = f(x + h * direction) - f(x - h * direction)
    far = f(x + 2.0 * h * direction) - f(x - 2.0 * h * direction)
    return (8.0 * near - far) / (12.0 * h)


def taylor_rates(
    f: Callable[[FloatArray], float],
    slope: float,
    x: FloatArray,
    direction: FloatArray,
    sizes: Sequence[float] | FloatArray,
) -> FloatArray:
    """Return the observed orders of the Taylor remainder |f(x + h d) - f(x) - h slope|.

    Two for a right slope of a smooth function, one for a wrong one; nonsense where ``f`` is linear along ``direction``
    or where ``sizes`` are so small that round-off rules.

    Parameters
    ----------
    f : function of (n,)
    slope : float
        Claimed derivative along ``direction``.
    x, direction : (n,)
    sizes : (k,) falling step sizes h

    Returns
    -------
    (k - 1,)

    Examples
    --------
    >>> x, d = np.array([0.3]), np.array([1.0])
    >>> taylor_rates(lambda x: float(np.exp(x[0])), np.exp(0.3), x, d, [1e-2, 5e-3, 2.5e-3]).round(1)
    array([2., 2.])
    >>> taylor_rates(lambda x: float(np.exp(x[0])), 1.0, x, d, [1e-2, 5e-3, 2.5e-3]).round(1)
    array([1., 1.])
    """
    h = np.asarray(sizes, dtype=float)
    value = f(x)
    remainders = np.array([abs(f(x + size * direction) - value - size * slope) for size in h])
    return np.asarray(np.log(remainders[:-1] / remainders[1:]) / np.log(h[:-1] / h[1:]))


def check_pullback(
    f: Callable[[FloatArray], FloatArray],
    jvp: Callable[[FloatArray, FloatArray], FloatArray],
    vjp: Callable[[FloatArray, FloatArray], FloatArray],
    x: FloatArray,
    *,
    rng: np.random.Generator,
    rtol: float = 1e-6,
    scale: FloatArray | float | None = None,
    sizes: Sequence[float] = SIZES,
    entries: Sequence[int] | IntArray | None = None,
) -> FloatArray:
    """Check a map's push-forward by differences and its pull-back by the dot product y_bar . (dy/dx x_dot).

    Parameters
    ----------
    f : (n,) -> (m,)
    jvp : (x, x_dot) -> y_dot
    vjp : (x, y_bar) -> x_bar
    x : (n,)
    rng : Generator
    rtol : float
        Relative to the largest entry of each column of dy/dx.
    scale : (n,) or float, optional
        Size of x, of which differences take a fraction; default |x_i|, one where that is zero.
    sizes : step sizes, as fractions of ``scale``
    entries : entries of x that differences are taken by; default all

    Returns
    -------
    (m, n)
        The Jacobian by ``jvp``, whose columns are zero for entries that were not asked for.
    """
    steps = step_sizes(x, scale)
    n = x.size
    y = f(x)
    matrix = np.zeros((y.size, n))
    indices = range(n) if entries is None else [int(i) for i in entries]
    for i in indices:
        unit = unit_vector(n, i)
        matrix[:, i] = jvp(x, unit)
        error = best_deviation(f, x, unit * steps[i], matrix[:, i] * steps[i], sizes, 0.0)
        assert error.relative <= rtol, f"jvp by entry {i}: {error}"
    mask = np.isin(np.arange(n), indices)
    for _ in range(2):
        y_bar, x_dot = rng.normal(size=y.size), rng.normal(size=n) * steps * mask
        y_dot, x_bar = jvp(x, x_dot), vjp(x, y_bar)
        assert_equal(y_dot, matrix @ x_dot, "jvp is not linear in the tangent")
        assert_equal(x_bar[mask] * steps[mask], (matrix.T @ y_bar)[mask] * steps[mask], "vjp against jvp (transposed)")
    return matrix


class Deviation(NamedTuple):
    """The best of several differences against the claimed derivative."""

    relative: float
    row: int
    difference: float
    claimed: float
    size: float

    def __str__(self) -> str:
        return (
            f"entry {self.row} of the output: difference {self.difference:.10g} != derivative {self.claimed:.10g} "
            f"(error {self.relative:.2e} of the column, at relative step {self.size:g})"
        )


def best_deviation(
    f: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    direction: FloatArray,
    claimed: FloatArray,
    sizes: Sequence[float],
    least: float,
    enough: float = 1e-9,
) -> Deviation:
    """Compare ``claimed``, the derivative of ``f`` along ``direction``, with differences.

    Errors are relative to its largest entry or to ``least``.
    """
    best = Deviation(np.inf, 0, np.nan, np.nan, np.nan)
    if not np.isfinite(claimed).all():
        row = int(np.argmin(np.isfinite(claimed)))
        return best._replace(row=row, claimed=float(claimed[row]))
    value = float(np.abs(f(x)).max(initial=0.0))
    for size in sizes:
        difference = central_difference(f, x, direction, size)
        if not np.isfinite(difference).all():
            continue
        defect = np.abs(difference - claimed)
        row = int(np.argmax(defect)) if defect.size else 0
        worst = max(0.0, float(defect.max(initial=0.0)) - ROUND_OFF * value / size)
        scale = max(float(np.abs(claimed).max(initial=0.0)), float(np.abs(difference).max(initial=0.0)), least)
        relative = worst / scale if worst else 0.0
        if relative < best.relative:
            best = Deviation(relative, row, float(difference[row]), float(claimed[row]), size)
        if best.relative <= enough:
            break
    return best


def unit_vector(n: int, i: int) -> FloatArray:
    """Return the unit vector of entry i (n,)."""
    out = np.zeros(n)
    out[i] = 1.0
    return out


def half_width(x: FloatArray) -> float:
    """Return half the spread of the values, or one where there is none."""
    points = x.reshape(-1, 3) if x.size % 3 == 0 else x[:, None]
    width = 0.5 * float(np.ptp(points, axis=0).max(initial=0.0)) if x.size else 0.0
    return width or float(np.abs(x).max(initial=0.0)) or 1.0


def step_sizes(x: FloatArray, scale: FloatArray | float | None) -> FloatArray:
    """Return the size of a relative step of one for every entry of x."""
    if scale is None:
        return np.where(x != 0.0, np.abs(x), 1.0)
    return np.broadcast_to(np.asarray(scale, dtype=float), x.shape)


def assert_equal(a: FloatArray, b: FloatArray, what: str, rtol: float = 1e-11) -> None:
    """Assert equality up to round-off of the largest entry."""
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    defect = np.abs(a - b)
    if not (defect <= rtol * scale).all():
        k = np.unravel_index(int(np.argmax(np.where(np.isnan(defect), np.inf, defect))), defect.shape)
        index = tuple(int(i) for i in k)
        raise AssertionError(f"{what}: entry {index}: {a[k]:.12g} != {b[k]:.12g} (largest entry {scale:.3g})")
