"""Cusick's drape test: a disc of cloth of 300 mm over one of 180 mm. No coefficient of a fabric whose weight and
bending are known, too, is at hand; what is known is the plate that the disc is as long as it hardly sags."""

from pathlib import Path

import numpy as np
import pytest

import add
from add.typing import FloatArray, IntArray

INNER, OUTER, WEIGHT, NU = 0.09, 0.15, 0.187 * 9.81, 0.2


def annulus(m: int, seed: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return nodes, triangles and numbers (around, outwards) of the part that hangs, without preferred directions.

    Two rows are held: the clamp is in their middle.
    """
    rng, h = np.random.default_rng(seed), (OUTER - INNER) / (m + 0.5)
    n = round(np.pi * (INNER + OUTER) / h)
    turn, r = np.meshgrid(2 * np.pi * np.arange(n) / n, INNER + h * (np.arange(m + 2) - 0.5), indexing="ij")
    turn += 0.4 * h / (INNER + OUTER) * rng.uniform(-1, 1, turn.shape)
    r[:, 2:-1] += 0.2 * h * rng.uniform(-1, 1, (n, m - 1))
    x = np.stack([r * np.cos(turn), r * np.sin(turn), 0 * r], axis=2).reshape(-1, 3)
    number = np.arange(len(x)).reshape(n, -1)
    after = np.roll(number, -1, axis=0)
    p, q, s, t = number[:, :-1], after[:, :-1], number[:, 1:], after[:, 1:]
    one = rng.uniform(size=(*p.shape, 1)) < 0.5
    halves = (np.where(one, np.stack([p, s, t], 2), np.stack([p, s, q], 2)),
              np.where(one, np.stack([p, t, q], 2), np.stack([s, t, q], 2)))  # fmt: skip
    return x, np.concatenate([half.reshape(-1, 3) for half in halves]), number


def shadow(x: FloatArray, triangles: IntArray, h: float = 5e-4) -> float:
    """Return the area beyond the support that lies in the shadow of any triangle."""
    centres = np.arange(-0.16, 0.16, h)
    dark = np.zeros((centres.size, centres.size), dtype=bool)
    for a, b, c in x[triangles][:, :, :2]:
        low, high = (f([a, b, c], axis=0) for f in (np.min, np.max))
        at = [slice(*np.searchsorted(centres, [low[k], high[k]])) for k in (0, 1)]
        u, v = centres[at[0], None] - a[0], centres[None, at[1]] - a[1]
        area = np.linalg.det([b - a, c - a])
        if abs(area) > 1e-12:
            s, t = (u * (c - a)[1] - v * (c - a)[0]) / area, ((b - a)[0] * v - (b - a)[1] * u) / area
            dark[at[0], at[1]] |= (s >= 0) & (t >= 0) & (s + t <= 1)
    return float((dark & (np.hypot(centres[:, None], centres) > INNER)).sum() * h * h)


def draped(folder: Path, m: int, rigidity: float, steps: int, seed: int = 0) -> tuple[float, float, float]:
    """Return the drape coefficient, how low the border is on average [m], and the largest speed left [m/s]."""
    rest, triangles, number = annulus(m, seed)
    start = rest.copy()
    start[number[:, 2:], 2] = -5e-4 * np.random.default_rng(seed).normal(size=number[:, 2:].shape)
    for name, points in (("rest", rest), ("start", start)):
        lines = [*("v {:.12g} {:.12g} {:.12g}".format(*p) for p in points),
                 *("f {} {} {}".format(*(t + 1)) for t in triangles)]  # fmt: skip
        (folder / f"{name}.obj").write_text("\n".join(lines))
    cloth = {
        "type": "cloth", "mesh": {"file": str(folder / "start.obj")}, "rest": {"file": str(folder / "rest.obj")},
        "material": {
            "density": WEIGHT / 9.81, "thickness": 5e-4,
            "membrane": {"young": max(4e5, 2e9 * rigidity), "poisson": NU, "viscosity": 0.01},
            "bending": {"model": "plate", "rigidity": rigidity, "poisson": NU},
        },
        "pins": [{"where": {"nodes": number[:, :2].ravel().tolist()}}],
    }  # fmt: skip
    time = {"dt": 0.01, "steps": steps, "integrator": "bdf1"}
    run = add.scene_from_dict({"schema": "add-scene/1", "time": time, "bodies": {"disc": cloth}}).build().run()
    x, before = (run.q[k].reshape(-1, 3) for k in (-1, -2))
    return (
        shadow(x, triangles) / shadow(rest, triangles),
        float(-x[number[:, -1], 2].mean()),
        float(np.abs(x - before).max() / 0.01),
    )


def sag(rigidity: float) -> float:
    """Return the deflection of the free border of an annular plate under its weight, clamped inside (Kirchhoff)."""

    def rows(r: float) -> FloatArray:
        """Return w, w', w'', (laplacian w)' of 1, ln r, r^2, r^2 ln r, r^4."""
        log = np.log(r)
        return np.array([[1, log, r**2, r**2 * log, r**4], [0, 1 / r, 2 * r, 2 * r * log + r, 4 * r**3],
                         [0, -1 / r**2, 2, 2 * log + 3, 12 * r**2], [0, 0, 0, 4 / r, 32 * r]])  # fmt: skip

    a, b = rows(INNER), rows(OUTER)
    conditions = np.array([a[0], a[1], b[2] + NU / OUTER * b[1], b[3]])
    load = WEIGHT / (64 * rigidity)
    return float(b[0] @ [*np.linalg.solve(conditions[:, :4], -load * conditions[:, 4]), load])


def test_stiff_disc_is_a_plate(tmp_path: Path) -> None:
    """The border sags as that of Kirchhoff's annular plate does, nearer on the finer mesh, and all of it shades."""
    errors = []
    for m in (2, 4):
        coefficient, low, _ = draped(tmp_path, m, 2e-2, 8)
        assert coefficient == pytest.approx(1.0, abs=1e-3)
        errors.append(abs(low / sag(2e-2) - 1.0))
    assert errors[1] < 0.04
    assert errors[0] > 2.0 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize(("rigidity", "coefficient"), [(2e-4, 0.985), (3.9e-5, 0.84)])
def test_drape_coefficient(rigidity: float, coefficient: float, tmp_path: Path) -> None:
    """It hangs in folds; the coefficient hardly depends on the mesh, though how many folds there are does."""
    for m, seed in ((4, 0), (6, 1)):
        found, _, speed = draped(tmp_path, m, rigidity, 250, seed)
        assert found == pytest.approx(coefficient, abs=0.02)
        assert speed < 0.1
