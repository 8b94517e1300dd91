"""Quantities by which bodies are coloured, with ranges and units, and points that enclose rigid bodies."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from add.errors import InputError
from add.geometry import QuadratureGeometry, quadrature_geometry
from add.geometry.shapes import BALL, shape_of
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import BodyData, MassSpringData, SolidData
from add.materials import Elements, called, cauchy_stress
from add.typing import FloatArray, IntArray

_MOST = 400


def solid_hull(solid: SolidData) -> FloatArray:
    """Points on a rigid body that show its extent, (m, 3) in its frame [m]; the origin if it has no shape."""
    if solid.kind >= 0:
        return shape_of(solid.kind).hull(solid.size)
    if not len(solid.vertices):
        return np.zeros((1, 3))
    vertices = solid.vertices
    if len(vertices) <= _MOST:
        return vertices
    # the farthest along many directions
    directions = np.concatenate([BALL, np.random.default_rng(0).normal(size=(_MOST // 4, 3))])
    return vertices[np.unique(np.argmax(vertices @ directions.T, axis=0))]


COLOURS = ("displacement", "speed", "strain", "stress", "contact")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_SAMPLES = 40
_OF_ELEMENTS = ("strain", "stress")


class Quantity(NamedTuple):
    """A number on every node of every body, and every place of every rigid body, in every state.

    Attributes
    ----------
    name : str
    unit : str
        After `factor`.
    factor : float
        From SI to `unit`.
    range : (low, high)
        Over the run, in `unit`; for the scalar bar.
    shown : bool
        Whether anything has this quantity.
    values : (index, state) -> (n,) in `unit`
        The index counts soft bodies, then sheets. NaN where there is no such number (stress of a sheet).
    at : (index, state, places (m, 3) in the frame of the rigid body [m]) -> (m,) in `unit`
        NaN where there is no such number (stress, contact force).
    """

    name: str
    unit: str
    factor: float
    range: tuple[float, float]
    shown: bool
    values: Callable[[int, int], FloatArray]
    at: Callable[[int, int, FloatArray], FloatArray]

    @property
    def title(self) -> str:
        """Name and unit."""
        return f"{self.name} [{self.unit}]"


def prefixed(unit: str, magnitude: float) -> tuple[str, float]:
    """Choose the decimal prefix for a magnitude in SI: (unit with prefix, factor from SI).

    Examples
    --------
    >>> prefixed("Pa", 25e3)
    ('kPa', 0.001)
    >>> prefixed("m", 0.0)
    ('m', 1.0)
    """
    for scale, prefix in _PREFIXES:
        if magnitude >= scale:
            return prefix + unit, 1.0 / scale
    return (unit, 1.0) if magnitude <= 0.0 else (_PREFIXES[-1][1] + unit, 1.0 / _PREFIXES[-1][0])


def round_up(value: float) -> float:
    """Return a number that is easy to read in quarters."""
    power = 10.0 ** np.floor(np.log10(value))
    steps = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(next(m for m in steps if m * power >= 0.999 * value) * power)


def quantity(data: RunData, name: str) -> Quantity:
    """Prepare one of `COLOURS`.

    "displacement": |x - x(0)|, so that a body that was placed and turned starts at zero [m]. "speed" [m/s]. "strain":
    largest |stretch - 1| of the volume-averaged deformation gradient of elements, averaged to nodes [-]. "stress":
    von Mises stress of the volume-averaged Cauchy stress of elements, averaged to nodes by rest volume [Pa]; of soft
    bodies alone. "contact": magnitude of the contact force on a node [N]. Bodies whose motion is given do not count for
    the range.
    """
    if name not in COLOURS:
        raise InputError("unknown colour", found=repr(name), expected=" or ".join(map(repr, COLOURS)))
    geometries = [quadrature_geometry(body.mesh) for body in data.bodies] if name in _OF_ELEMENTS else []
    nodal = data.nodal

    def raw(b: int, k: int) -> FloatArray:
        body = nodal[b]
        if name == "displacement":
            return np.linalg.norm(data.positions(body, k) - data.positions(body, 0), axis=1)
        if name in ("speed", "contact"):
            rows = data.v if name == "speed" else data.contact_force
            return np.linalg.norm(rows[k, body.entries].reshape(-1, 3), axis=1)
        if isinstance(body, MassSpringData):
            cloth = name == "strain" and len(body.gradients)
            return sheet_stretching(body, data.q[k, body.entries]) if cloth else np.full(body.n_nodes, np.nan)
        of_elements = von_mises if name == "stress" else stretching
        return of_elements(body, data.q[k, body.entries], geometries[b])

    def raw_at(b: int, k: int, places: FloatArray) -> FloatArray:
        solid = data.solids[b]
        rotation, position = data.pose(solid, k)
        if name == "displacement":
            first, origin = data.pose(solid, 0)
            return np.linalg.norm(places @ (rotation - first).T + (position - origin), axis=1)
        if name == "speed":
            velocity, spin = data.twist(solid, k)
            return np.linalg.norm(velocity + np.cross(spin, (places - solid.centre) @ rotation.T), axis=1)
        return np.full(len(places), np.nan)

    def samples() -> Iterator[FloatArray]:
        # Some states give the range of the run; contacts are short, so those are looked through in whole.
        n_samples = data.n_states if name == "contact" else min(_SAMPLES, data.n_states)
        states = np.unique(np.linspace(0, data.n_states - 1, n_samples).round().astype(int)).tolist()
        for b in range(len(nodal)):
            yield from (raw(b, k) for k in states)
        for b, solid in enumerate(data.solids):
            if not solid.kinematic:
                hull = solid_hull(solid)
                yield from (raw_at(b, k, hull) for k in states)

    top, shown = 0.0, False
    for values in samples():
        values = values[np.isfinite(values)]
        if values.size:
            # One node at a notch or an impact must not make the rest of the body one colour.
            top = max(top, float(values.max() if name not in _OF_ELEMENTS else np.quantile(values, 0.995)))
            shown = True
    si = {"displacement": "m", "speed": "m/s", "stress": "Pa", "contact": "N", "strain": ""}[name]
    high = round_up(top) if top > 0.0 else 0.0
    unit, factor = prefixed(si, high) if si else ("%", 100.0)
    high = round_up(high * factor) if high > 0.0 else 1.0
    # Forces on rigid bodies alone are arrows, not colours.
    shown = shown and (top > 0.0 or bool(data.bodies) or name != "contact")
    if data.n_states == 1 and top == 0.0:  # a start, which has nothing to show: all of it neutral
        shown, factor = False, np.nan
    title = {"stress": "von Mises stress", "contact": "contact force", "strain": "largest strain"}.get(name, name)
    return Quantity(
        title,
        unit,
        factor,
        (0.0, high),
        shown,
        lambda b, k: raw(b, k) * factor,
        lambda b, k, places: raw_at(b, k, places) * factor,
    )


def von_mises(body: BodyData, q: FloatArray, geometry: QuadratureGeometry) -> FloatArray:
    """Von Mises stress at the nodes of a body, sqrt(3/2 s : s) with s = dev sigma, (n,) [Pa].

    Parameters
    ----------
    body : BodyData
    q : (3 n,) its own entries
    geometry : of its rest mesh
    """
    mean = np.full(len(body.moduli), body.mean_dilatation, dtype=np.int64)
    elements = Elements(body.cells, geometry.gradients, geometry.weights, body.group, mean, called(body.law))
    sigma = cauchy_stress(np.ascontiguousarray(q), elements, np.ascontiguousarray(body.moduli))
    deviator = sigma - np.trace(sigma, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
    stress = np.sqrt(1.5 * np.einsum("eij,eij->e", deviator, deviator))
    return _at_nodes(body.cells, stress, geometry.weights.sum(axis=1), body.n_nodes)


def stretching(body: BodyData, q: FloatArray, geometry: QuadratureGeometry) -> FloatArray:
    """Largest |lambda_i - 1| at the nodes of a body, (n,) [-]; lambda_i: singular values of F = sum_i x_i (dN_i/dX)^T.

    Parameters
    ----------
    body : BodyData
    q : (3 n,) its own entries
    geometry : of its rest mesh
    """
    corners = q.reshape(-1, 3)[body.cells]
    gradients = np.einsum("eqib,eq->eib", geometry.gradients, geometry.weights)
    volumes = geometry.weights.sum(axis=1)
    gradients /= volumes[:, None, None]
    stretches = np.linalg.svd(np.einsum("eia,eib->eab", corners, gradients), compute_uv=False)
    return _at_nodes(body.cells, np.abs(stretches - 1.0).max(axis=1), volumes, body.n_nodes)


def sheet_stretching(sheet: MassSpringData, q: FloatArray) -> FloatArray:
    """Largest |lambda_i - 1| at the nodes of a cloth, (n,) [-]; lambda_i: principal stretches of its triangles."""
    corners = q.reshape(-1, 3)[sheet.triangles]
    stretches = np.linalg.svd(np.einsum("tki,tka->tia", corners, sheet.gradients), compute_uv=False)
    areas = 0.5 / np.abs(np.linalg.det(sheet.gradients[:, 1:]))
    return _at_nodes(sheet.triangles, np.abs(stretches - 1.0).max(axis=1), areas, sheet.n_nodes)


def _at_nodes(cells: IntArray, values: FloatArray, sizes: FloatArray, n: int) -> FloatArray:
    """Return the means of values of elements at n nodes, weighted by their sizes at rest."""
    total, weight = (np.bincount(cells.ravel(), np.repeat(x, cells.shape[1]), n) for x in (values * sizes, sizes))
    return np.divide(total, weight, out=np.zeros(n), where=weight > 0.0)
