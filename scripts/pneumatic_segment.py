"""A silicone arm segment that air bends: its stiffness from one pressure, its bending at the others.

    ADD_DATA=... python -m scripts.pneumatic_segment [--fit 200] [--rib 0.00227] [--cells 3]

Recordings: srl-ethz/diffPD_sim2real (Dubied et al., RA-L 2022), one of four chambers at 100 to 400 mbar, 100 Hz. The
shape is that of their model: outer radius 22.22 mm, wall 2.03 mm, a square channel |x| + |y| < 10.11 mm in the middle
with walls of 2.27 mm, a bottom of 6.93 mm, 102 mm from the clamp to the markers of the tip. The ribs between the
chambers are not said; they are taken as thick as the walls of the channel.

Compared is the angle by which the tip turns, 0.8 to 1.2 s after air comes: the silicone goes on creeping, by a tenth
within five seconds. The angle of an incompressible neo-Hookean segment without weight is a function of p/mu alone, so
that one run with the volume led gives it for every mu; mu is where it meets one level. Whether threads are wound
round the arm is not said either: it is computed without, and with threads of two stiffnesses.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.geometry import TET4, SoftMesh, to_tet10
from add.geometry.mesh_box import kuhn_tetrahedra
from add.io.meshes import write_mesh
from add.scene import scene_from_dict
from add.typing import FloatArray, IntArray

#: [m]
OUTER, WALL, CHANNEL, CHANNEL_WALL, BOTTOM, LENGTH = 0.02222, 0.00203, 0.01011, 0.00227, 0.00693, 0.102
#: Recordings -> gauge pressure [Pa].
TAKES = {
    "100mbar_V3": 1e4,
    "200mbar_V3": 2e4,
    "300mbar_V3": 3e4,
    "400mbar_V3": 4e4,
    "segment-200mbar": 2e4,
    "segment-400mbar": 4e4,
}
#: The source's own fit [Pa], from which the search starts.
MU = 263824.0 / (2.0 * 1.499)


def turned(before: FloatArray, after: FloatArray) -> float:
    """Return the angle of the rotation that fits points (n, 3) to others best [deg] (Kabsch 1976)."""
    u, _, vt = np.linalg.svd((before - before.mean(axis=0)).T @ (after - after.mean(axis=0)))
    turn = vt.T @ np.diag([1.0, 1.0, np.linalg.det(vt.T @ u.T)]) @ u.T
    return float(np.degrees(np.arccos(np.clip(0.5 * (np.trace(turn) - 1.0), -1.0, 1.0))))


def recorded(path: Path) -> float:
    """Return the angle that the tip of a take turns by [deg], 0.8 to 1.2 s after air comes."""
    names = path.read_text(encoding="utf-8").split("\n", 1)[0].lower().split(",")[1::3]
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    places = rows[:, 1:].reshape(len(rows), -1, 3)
    tip = [k for k, name in enumerate(names) if name.startswith("tip")]
    angles = np.array([turned(places[30:60, tip].mean(axis=0), now[tip]) for now in places])
    onset = int(np.flatnonzero(angles[30:] > 1.2)[0]) + 30
    return float(angles[onset + 80 : onset + 120].mean())


def segment(rib: float, cells: int) -> SoftMesh:
    """Return the segment, its clamped end at z = 0 and its tip at z = -LENGTH, with a hollow in each quadrant.

    Parameters
    ----------
    rib : thickness of the ribs between the chambers [m]
    cells : along the arc of a chamber
    """
    half, inner = 0.5 * rib, CHANNEL + np.sqrt(2.0) * CHANNEL_WALL
    columns = []
    for quadrant in range(4):
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        curves = []
        for radius, is_square in ((CHANNEL, True), (inner, True), (OUTER - WALL, False), (OUTER, False)):
            if is_square:  # from the axis to the rib's edge and on, mirrored at the diagonal
                low = np.array([[radius, 0.0], [radius - half, half]])
                along = np.linspace(low[1], low[1][::-1], cells + 1)
            else:
                angle = np.arcsin(half / radius)
                inside = np.linspace(angle, 0.5 * np.pi - angle, cells + 1)
                low = np.array([[radius, 0.0]])
                along = radius * np.column_stack([np.cos(inside), np.sin(inside)])
            curves.append(np.vstack([low[:1], along]))
        rows = [curves[0], curves[1], 0.5 * (curves[1] + curves[2]), curves[2], curves[3]]
        columns.append(np.stack(rows) @ np.linalg.matrix_power(turn, quadrant).T)
    ring = np.concatenate(columns, axis=1)  # (5, 4 (cells + 2), 2)
    layers = max(4, round(cells * 3))
    z = np.concatenate([[-LENGTH], np.linspace(BOTTOM - LENGTH, -BOTTOM, layers + 1), [0.0]])
    points = np.concatenate([np.dstack([ring, np.full(ring.shape[:2], height)]) for height in z])
    points = points.reshape(z.size, *ring.shape[:2], 3)
    number = np.arange(points[..., 0].size).reshape(points.shape[:3])
    kept = np.ones((z.size - 1, 4, ring.shape[1]), dtype=bool)
    chamber = np.arange(ring.shape[1]) % (cells + 2)
    hollow = (chamber > 0) & (chamber <= cells)
    kept[1:-1, 1:3, hollow] = False
    around = np.roll(number, -1, axis=2)
    corners: dict[tuple[int, int, int], IntArray] = {}
    for i in (0, 1):
        for j in (0, 1):
            for k in (0, 1):
                grid = around if k else number
                corners[i, j, k] = grid[i : i + z.size - 1, j : j + 4][kept]
    tets = kuhn_tetrahedra(corners)
    nodes, tets = np.unique(tets, return_inverse=True)
    flat = points.reshape(-1, 3)[nodes]
    tets = tets.reshape(-1, 4)
    a, b, c, d = (flat[tets[:, k]] for k in range(4))
    wrong = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) < 0.0
    tets[wrong] = tets[wrong][:, [0, 2, 1, 3]]
    return to_tet10(SoftMesh(flat, tets.astype(np.int64), TET4))


def bent(
    material: dict[str, Any], thread: float, rib: float, cells: int, ratios: Iterable[float]
) -> tuple[FloatArray, FloatArray]:
    """Return pressures [Pa] in one chamber and the angles [deg] that the tip turns by, as its volume grows.

    The volume is led, so that a pressure that the walls cannot hold is passed. ``thread`` is the stiffness [Pa] of
    fibres wound round the outer wall, zero for none; ``ratios`` are volumes over that at rest.
    """
    mesh, ratios = segment(rib, cells), list(ratios)
    wall = np.flatnonzero(np.hypot(*mesh.points[:, :2].T) > (OUTER - WALL) * np.cos(0.25 * np.pi / cells) - 1e-6)
    wound = {
        "type": "quadratic-fibre",
        "stiffness": thread,
        "activation": 0.0,
        "fibres": {"around": [0, 0, 1]},
        "where": {"nodes": wall.tolist()},
    }
    with tempfile.TemporaryDirectory() as folder:
        write_mesh(Path(folder) / "segment.vtu", mesh)
        body: dict[str, Any] = {
            "type": "soft",
            "mesh": {"file": str(Path(folder) / "segment.vtu")},
            "mean_dilatation": True,
            "material": {"density": 1070.0, **material},
            "pins": [{"where": {"box": {"min": [None, None, -1e-6]}}}],
            "muscles": {"thread": wound} if thread else {},
            "chambers": {"air": {"type": "volume", "cavity": 0}},
        }
        chamber = body["chambers"]["air"]
        alone = {"schema": "add-scene/1", "time": {"dt": 1.0, "steps": 1}, "bodies": {"segment": copy.deepcopy(body)}}
        numbers = scene_from_dict(alone).build().numbers
        rest = float(numbers.values[numbers.place("bodies.segment.chambers.air.volume")])
        chamber["volume"] = {"signal": "air"}
        times = np.arange(len(ratios) + 1.0)
        scene = {
            "schema": "add-scene/1",
            "time": {"dt": 1.0, "steps": len(ratios)},
            "gravity": [0.0, 0.0, 0.0],
            "signals": {
                "air": {"type": "table", "times": times.tolist(), "values": [rest, *(rest * x for x in ratios)]}
            },
            "bodies": {"segment": body},
        }
        built = scene_from_dict(scene).build()
        run = built.run()
    tip = mesh.points[:, 2] < 1e-6 - LENGTH
    places = run.q.reshape(len(run.q), -1, 3)[:, tip]
    pressures = [built.chambers(record)["segment/air"].pressure for record in run.records]
    return np.array(pressures), np.array([turned(mesh.points[tip], now) for now in places[1:]])


def angle_at(curve: tuple[FloatArray, FloatArray], pressure: float) -> float:
    """Return the angle at a pressure, up to the most that the walls hold; NaN beyond."""
    last = int(np.argmax(curve[0])) + 1
    return float(np.interp(pressure, [0.0, *curve[0][:last]], [0.0, *curve[1][:last]], right=np.nan))


def stiffness(curve: tuple[FloatArray, FloatArray], pressure: float, angle: float) -> float:
    """Return mu at which the tip turns by an angle at a pressure, of a curve for `MU`."""
    first = int(np.argmax(curve[1] >= angle))
    if curve[1].max() < angle or first > np.argmax(curve[0]):
        return float("nan")
    ends = slice(first - 1, first + 1)
    return MU * pressure / float(np.interp(angle, curve[1][ends], curve[0][ends]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", type=float, default=200.0, help="level that the stiffness is from [mbar]")
    parser.add_argument("--rib", type=float, default=CHANNEL_WALL, help="thickness of the ribs [m]")
    parser.add_argument("--cells", type=int, default=3, help="along the arc of a chamber")
    given = parser.parse_args()
    folder = Path(os.environ.get("ADD_DATA", "../shared/data")) / "soft" / "csv" / "pneumatic_segment"
    if not folder.is_dir():
        raise InputError("the recordings are not there", file=str(folder), expected="ADD_DATA, see docs/recordings.md")
    seen = {name: recorded(folder / f"{name}.csv") for name in TAKES}
    level = 100.0 * given.fit
    fitted = float(np.mean([angle for name, angle in seen.items() if TAKES[name] == level and "V3" in name]))
    material = {"model": "mooney-rivlin", "c10": 0.5 * MU, "c01": 0.0, "kappa": 30.0 * MU}
    print("| threads/mu | mu [kPa] |", " | ".join(f"{name} ({angle:.1f})" for name, angle in seen.items()), "|")
    for share in (0.0, 10.0, 100.0):
        curve = bent(material, share * MU, given.rib, given.cells, 1.0 + 0.1 * np.arange(1.0, 30.0))
        mu = stiffness(curve, level, fitted)
        found = [angle_at(curve, MU / mu * pressure) for pressure in TAKES.values()]
        cells = [
            f"{x:.1f} ({100.0 * (x / y - 1.0):+.0f} %)" if np.isfinite(x) else "balloons"
            for x, y in zip(found, seen.values(), strict=True)
        ]
        print(f"| {share:g} | {1e-3 * mu:.0f} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
