"""Tables of independent solutions in `shared/data/reference`, and the closed forms that stand there as text.

How each problem is defined (geometry, masses, initial state) is said at its function; SI units, gravity G along -y
in the plane problems. Where the folder is absent, asking for a table skips the test.
"""

import csv
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.places import DATA

G = 9.81


def table(name: str) -> dict[str, np.ndarray]:
    """Columns of a CSV table by their headings, without remarks in parentheses; skips where there is none."""
    path = DATA / "reference" / name
    if not path.is_file():
        pytest.skip(f"no reference at {path}; set ADD_DATA to the folder that holds it")
    with path.open(encoding="utf-8", newline="") as stream:
        heading, *rows = csv.reader(stream)
    values = np.array(rows, dtype=np.float64)
    return {name.split("(")[0].strip() if name[0] != "(" else name: values[:, k] for k, name in enumerate(heading)}


def values() -> dict[str, Any]:
    """Single numbers, `reference_values.json`; skips where there are none."""
    path = DATA / "reference" / "reference_values.json"
    if not path.is_file():
        pytest.skip(f"no reference at {path}; set ADD_DATA to the folder that holds it")
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class History:
    """A motion at times t (n,): position (n, k) and, where the table has them, rates (n, k)."""

    t: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None = None


def pendulum() -> History:
    """IFToMM A01: point mass 1 kg on a massless rod of 1 m about the origin, at (-1, 0) at rest; (x, y), 0 to 10 s."""
    data = table("a01_pendulum.csv")
    return History(data["time_s"], np.column_stack([data["x_m"], data["y_m"]]))


def double_four_bar(*, exudyn: bool = False) -> History:
    """IFToMM A02: five slender rods of 1 m and 1 kg; the point B0, (x, y) and its velocity, 0 to 10 s.

    Cranks A0 B0, A1 B1, A2 B2 from the ground (0, 0), (1, 0), (2, 0), couplers B0 B1 and B1 B2. At first the cranks
    stand up and B0 moves at (1, 0) m/s. The linkage is singular where all rods are in line (B0 at (+-1, 0)).

    Parameters
    ----------
    exudyn : the run of another program instead of the closed equation 3 phi'' = -3.5 g cos(phi)
    """
    data = table("exudyn_A02_double_four_bar.csv" if exudyn else "a02_double_four_bar.csv")
    point = "P" if exudyn else "B0"
    columns = [f"{point}_{name}" for name in ("x_m", "y_m", "vx_m_s", "vy_m_s")]
    x, y, vx, vy = (data[name] for name in columns)
    return History(data["time_s"], np.column_stack([x, y]), np.column_stack([vx, vy]))


@dataclass(frozen=True)
class Tumbling:
    """Torque-free body of moments I (3,): angular velocity w (n, 3) in BODY axes at times t (n,), and its period."""

    inertia: np.ndarray
    t: np.ndarray
    spin: np.ndarray
    period: float


def dzhanibekov() -> Tumbling:
    """I = (1, 2, 3) kg m^2, w = (0.01, 1, 0.01) rad/s at first, 0 to 60 s every 0.1 s."""
    data, single = table("dzhanibekov.csv"), values()["dzhanibekov"]
    spin = np.column_stack([data["w1"], data["w2"], data["w3"]])
    return Tumbling(np.array(single["I"]), data["time_s"], spin, single["period_s"])


def restitution() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Damping ratio d / (2 sqrt(k m)) of a linear contact without gravity -> restitution.

    Returns
    -------
    (ratio, until the gap is zero: exp(-pi z / sqrt(1 - z^2)), until the force is zero: no pull), each (12,)
    """
    data = table("contact_restitution.csv")
    ratio, gap, force = data.values()
    return ratio, gap, force


def andrews_at_end() -> tuple[np.ndarray, np.ndarray]:
    """IFToMM A03, the squeezer of Andrews: (beta, Theta, gamma, Phi, delta, Omega, epsilon) and rates at 0.03 s."""
    single = values()
    return np.array(single["A03_andrews_t0.03_q"]), np.array(single["A03_andrews_t0.03_qdot"])


# --- closed forms -----------------------------------------------------------------------------------------------------


def sliding_block(speed: float, friction: float, gravity: float = G) -> tuple[float, float]:
    """Distance [m] and time [s] in which a block stops on the level: v^2 / (2 mu g), v / (mu g)."""
    return speed**2 / (2.0 * friction * gravity), speed / (friction * gravity)


def incline_acceleration(degrees: float, friction: float, gravity: float = G) -> float:
    """Acceleration of a block let go on a slope, g (sin - mu cos); 0 where mu >= tan, since it sticks [m/s^2]."""
    angle = np.radians(degrees)
    return max(0.0, float(gravity * (np.sin(angle) - friction * np.cos(angle))))


def slide_to_roll(
    speed: float, friction: float, *, gyration: float = 0.4, gravity: float = G
) -> tuple[float, float, float]:
    """Time [s], speed [m/s] and distance [m] at which a sphere let go without spin begins to roll.

    t = k v / ((1 + k) mu g),  v_roll = v / (1 + k),  x = (v + v_roll) t / 2;  I = k m r^2, k = 2/5 solid, 2/3 shell.
    """
    rolling = speed / (1.0 + gyration)
    time = (speed - rolling) / (friction * gravity)
    return time, rolling, (speed + rolling) * time / 2.0


def rolling_on_incline(degrees: float, *, gyration: float = 0.4, gravity: float = G) -> tuple[float, float]:
    """Acceleration g sin / (1 + k) [m/s^2] of what rolls down a slope, and the friction k tan / (1 + k) it needs."""
    angle = np.radians(degrees)
    return gravity * float(np.sin(angle)) / (1.0 + gyration), gyration * float(np.tan(angle)) / (1.0 + gyration)


def ball_drop(height: float, e: float, gravity: float = G) -> tuple[float, float]:
    """Time [s] and path [m] until a dropped ball rests: sqrt(2h/g) (1+e)/(1-e), h (1+e^2)/(1-e^2); apexes e^(2n) h."""
    time = float(np.sqrt(2.0 * height / gravity)) * (1.0 + e) / (1.0 - e)
    return time, height * (1.0 + e**2) / (1.0 - e**2)
