"""Compare the trajectories and gradients of two checkouts of this project.

    git worktree add /tmp/before <commit>
    python scripts/compare_commits.py /tmp/before [AFTER] [--scenes NAME ...] [--output FILE]

AFTER is this checkout by default. A worker runs in each checkout, by its ``.venv/bin/python`` or else by this Python
with the checkout first on PYTHONPATH; the two exchange npz files. The scenes cover every integrator, friction law and
kind of body in windows of 40 steps, Newton driven to round-off; with ADD_DATA set (see the README) those with
recordings, too. For each of them

    step       every step, taken from the state that the commit before had there, agrees to 1e-12
    gradient   of a seeded linear objective of all q and v by all numbers of the scene, the decisions of those steps
               held, agrees to 1e-10 of its norm
    free run   agrees to 1e-10 where nothing touches; with contact it is reported alone, since a difference of
               round-off may change a decision

Differences of coordinates (and of velocities) are relative to their largest over the window. Prints a table in
Markdown; exits with 1 if a limit is broken. Compilation apart it takes about three minutes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STEP, GRADIENT, FREE_RUN = 1e-12, 1e-10, 1e-10
N_STEPS = 40

FLOOR = {"shape": "plane", "point": [0, 0, 0], "normal": [0.1, 0, 1]}
BALL = {"shape": "sphere", "center": [0, 0, -0.1], "radius": 0.1}
SOFT = {"model": "neo-hookean", "young": 3e4, "poisson": 0.3, "density": 900.0, "viscosity": 1.0}
MOTION: dict[str, Any] = {"velocity": [0.6, 0.1, -0.8], "angular_velocity": [1.0, -2.0, 0.5]}


def _box(size: list[float], position: list[float], **more: Any) -> dict[str, Any]:
    geometry = {"shape": "box", "size": size}
    return {"type": "rigid", "geometry": geometry, "mass": 0.2, "position": position, **MOTION, **more}


def _soft(element: str, position: list[float], **more: Any) -> dict[str, Any]:
    mesh = {"shape": "box", "size": [0.06, 0.05, 0.06], "divisions": [2, 1, 1]}
    return {"type": "soft", "mesh": mesh, "element": element, "material": SOFT, "position": position, **MOTION, **more}


#: Bodies and obstacles of the made scenes with contact, by kind of body.
TOUCHING: dict[str, dict[str, Any]] = {
    "soft": {"bodies": {"cube": _soft("tet4", [0, 0, 0.035])}, "obstacles": {"floor": FLOOR}},
    "mass-spring": {
        "bodies": {
            "sheet": {
                "type": "particles",
                "mesh": {"shape": "sheet", "size": [0.12, 0.12], "divisions": [4, 4]},
                "mass": 0.05, "stiffness": 200.0, "damping": 0.05,
                "position": [0, 0, 0.004], "velocity": [0.02, 0.01, -0.4],
            },
        },
        "obstacles": {"floor": FLOOR, "ball": BALL},
    },
    "rigid": {
        "bodies": {
            "box": _box([0.06, 0.05, 0.07], [0, 0, 0.038]),
            "can": {
                "type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.03, "half_length": 0.03},
                "density": 800.0, "position": [0.2, 0, 0.012], **MOTION,
            },
        },
        "obstacles": {"floor": FLOOR},
    },
    "together": {
        "bodies": {
            "plate": {
                "type": "kinematic", "geometry": {"shape": "box", "size": [0.2, 0.2, 0.02]},
                "translation": {"signal": "shake"},
            },
            "low": _box([0.06, 0.06, 0.06], [0, 0, 0.042]),
            "high": _box([0.05, 0.05, 0.05], [0.005, 0.002, 0.106], orientation=[0.96, 0.28, 0.0, 0.0]),
            "cushion": _soft("hex8", [0.07, 0.0, 0.042]),
        },
        "obstacles": {"floor": FLOOR},
        "signals": {"shake": {"type": "sine", "amplitude": [0.01, 0.0, 0.004], "frequency": 4.0}},
    },
}  # fmt: skip

#: Those of the made scenes without contact.
FREE: dict[str, dict[str, Any]] = {
    "flight": {"bodies": {"cube": _soft("tet10", [0, 0, 1]), "box": _box([0.06, 0.05, 0.07], [1, 0, 1])}},
    "joints": {
        "bodies": {
            "upper": _box([0.02, 0.02, 0.2], [0, 0, -0.1]),
            "lower": _box([0.02, 0.02, 0.2], [0, 0, -0.3]),
            "net": {
                "type": "particles",
                "mesh": {"shape": "sheet", "size": [0.1, 0.1], "divisions": [2, 2]},
                "mass": 0.05, "stiffness": 200.0, "damping": 0.05, "position": [0, 0, -0.5],
            },
        },
        "couplings": {
            "top": {"type": "ball", "a": {"body": "upper", "at": [0, 0, 0.1]}, "b": {"at": [0, 0, 0]},
                    "stiffness": 1e4, "damping": 1.0},
            "elbow": {"type": "hinge", "a": {"body": "upper", "at": [0, 0, -0.1]},
                      "b": {"body": "lower", "at": [0, 0, 0.1]}, "axis": [0, 1, 0],
                      "stiffness": 1e4, "damping": 1.0, "angular_stiffness": 10.0, "angular_damping": 0.01,
                      "motor": {"angle": 0.3, "stiffness": 2.0}, "limits": {"lower": -0.5, "upper": 0.1,
                      "stiffness": 5.0}, "friction": {"viscous": 0.01, "coulomb": 0.02, "rate": 0.5}},
            "glue": {"type": "attachment", "nodes": "net", "where": {"nodes": [0, 1]}, "body": "lower",
                     "stiffness": 200.0, "damping": 0.2},
            "rope": {"type": "cable", "a": {"body": "lower", "at": [0, 0, -0.1]}, "b": {"at": [0.1, 0, -0.5]},
                     "stiffness": 100.0, "length": 0.05},
        },
    },
}  # fmt: skip

#: Scenes of the project, and such as need recordings.
SHIPPED = (
    "ball_on_floor", "bands_cubes", "bouncing_throw", "fig2_cylinder_hybrid", "fig2_cylinder_linear",
    "fig2_cylinder_tanh", "robot_rigid", "robot_soft_feet", "sheet_flip", "strings_cube",
)  # fmt: skip
RECORDED = ("cube_toss", "double_pendulum", "elbow_toss", "silicone_beam")


def made_scenes() -> dict[str, dict[str, Any]]:
    """Return the made scenes by name: every integrator, friction law and kind of body, then those without contact."""
    out = {}
    for order in ("bdf1", "bdf2"):
        common = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": N_STEPS, "integrator": order}}
        for kind, parts in TOUCHING.items():
            for law in ("none", "linear", "tanh", "hybrid"):
                contact = {"stiffness": 2e3, "damping": 2.0, "friction": 0.4, "friction_law": law,
                           "onset": 0.001, "damping_ramp": 0.001}  # fmt: skip
                if kind == "rigid" and law == "tanh":
                    contact |= {"onset": 0.0, "damping_ramp": 0.0, "coulomb_normal": "total"}
                out[f"{kind} {law} {order}"] = {**common, **parts, "contact": contact}
        out |= {f"{kind} {order}": {**common, **parts} for kind, parts in FREE.items()}
    return out


def scene_names() -> list[str]:
    """Return the names of all scenes."""
    return [*made_scenes(), *SHIPPED, *(RECORDED if "ADD_DATA" in os.environ else ())]


# --- the worker: runs in one of the checkouts ------------------------------------------------------------------------


def _first(*places: str) -> Any:
    """Return the first of some objects, "module:name", that this checkout has: names changed between commits."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {places}")


@dataclass
class _Case:
    """A built scene with Newton driven to round-off, and its coordinates in an order that no commit changes."""

    built: Any
    simulation: Any
    order: np.ndarray

    @classmethod
    def of(cls, name: str) -> _Case:
        """Build the scene of this name."""
        import add

        tight = _first("add.commands.check_gradient:tight", "add.jobs.gradient:tight")
        made = made_scenes()
        scene = add.scene_from_dict(made[name]) if name in made else add.load_scene(f"scenes/{name}.json")
        if getattr(scene, "spec", scene).experiments:
            experiments = _first("add.scene.read.reader:experiment_scenes", "add.scene.reader:experiment_scenes")
            scene = next(iter(experiments(scene).values()))
        built = scene.build()
        entries = sorted(built.simulation.system.dofs.entries, key=lambda entry: entry.name)
        order = np.concatenate([np.arange(entry.start, entry.stop) for entry in entries])
        return cls(built, tight(built.simulation), order)

    @property
    def n_steps(self) -> int:
        """Steps of the window."""
        return min(N_STEPS, self.simulation.n_steps)

    def counts(self, records: list[Any]) -> np.ndarray:
        """Return how many pairs touch, stick and slip over all steps."""
        out = dict.fromkeys(("touching", "sticking", "slipping"), 0)
        for record in records:
            for term, decision in zip(self.simulation.system.deciding, record.decisions, strict=True):
                for key, number in term.describe(decision).items():
                    out[key] = out.get(key, 0) + number
        return np.array([out["touching"], out["sticking"], out["slipping"]])

    def gradient(self, start: Any, records: list[Any]) -> tuple[list[str], np.ndarray]:
        """Return names and the gradient by the numbers of the scene, each times its size, of replayed decisions."""
        import add

        replay = _first("add.simulation.run:Replay", "add.simulation:Replay", "add.simulate:Replay")
        objective = _objective(self.order)
        simulation, numbers = self.simulation, self.built.numbers
        found = add.value_and_gradient(simulation, objective, n_steps=len(records), replay=replay(start, records))
        s = numbers.values
        gradient = numbers.ties.pullback(s, found.gradient)
        names, values = [], []
        for entry in numbers.layout.entries:
            part = s[entry.slice]
            size = float(np.abs(part).max(initial=0.0)) or 1.0
            names += [f"{entry.name} {i}" for i in range(part.size)]
            values.append(gradient[entry.slice] * size)
        return names, np.concatenate(values)


def _objective(order: np.ndarray) -> Any:
    """Return a linear objective of q and v at all steps, with seeded weights."""
    base = _first("add.objectives.base:Objective", "add.objectives:Objective")

    class Probe(base):  # type: ignore[misc]
        def weights(self, step: int) -> np.ndarray:
            out = np.empty((2, order.size))
            out[:, order] = np.random.default_rng(step).normal(size=(2, order.size))
            return out

        def step_value(self, state: Any, *_: Any) -> float:
            by_q, by_v = self.weights(state.step)
            return float(by_q @ state.q[0] + 0.01 * by_v @ state.v[0])

        def step_pullback(self, state: Any, *rest: Any) -> None:
            state_bar = rest[-2]
            by_q, by_v = self.weights(state.step)
            state_bar.q[0] += by_q
            state_bar.v[0] += 0.01 * by_v

    return Probe()


def _before(case: _Case) -> dict[str, Any]:
    """Return the states, counts and gradient of a run."""
    run = case.simulation.run(n_steps=case.n_steps)
    states = list(run.states())
    names, gradient = case.gradient(run.start, run.records)
    return {
        "q": np.stack([state.q for state in states])[..., case.order],
        "v": np.stack([state.v for state in states])[..., case.order],
        "counts": case.counts(run.records),
        "names": np.array(names),
        "gradient": gradient,
    }


def _after(case: _Case, given: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return each step from the given states, the gradient on their decisions and a free run."""
    simulation = case.simulation
    free = simulation.run(n_steps=case.n_steps)
    dt = simulation.stepper.dt
    state_of = _first("add.equations.kinematics:State", "add.kinematics:State")
    records, q, v = [], [], []
    for k in range(case.n_steps):
        past_q, past_v = np.empty_like(given["q"][k]), np.empty_like(given["v"][k])
        past_q[:, case.order], past_v[:, case.order] = given["q"][k], given["v"][k]
        step = simulation.run(n_steps=k + 1, state=state_of(k * dt, k, past_q, past_v))
        records += step.records
        state = step.state(1)
        q.append(state.q[..., case.order])
        v.append(state.v[..., case.order])
    names, gradient = case.gradient(free.start, records)
    states = list(free.states())
    return {
        "q": np.stack(q),
        "v": np.stack(v),
        "counts": case.counts(records),
        "names": np.array(names),
        "gradient": gradient,
        "free_q": np.stack([state.q for state in states])[..., case.order],
        "free_v": np.stack([state.v for state in states])[..., case.order],
    }


def work(names: list[str], folder: Path, mode: str) -> None:
    """Run some scenes in the checkout that is the working directory; write one npz file each."""
    import add

    found = Path(add.__file__).resolve().parents[1]
    if found != Path.cwd().resolve():
        raise SystemExit(f"the package is {found}, not that of {Path.cwd()}")
    for k, name in enumerate(names):
        try:
            case = _Case.of(name)
            if mode == "before":
                out = _before(case)
            else:
                with np.load(folder / f"before_{k}.npz") as given:
                    out = _after(case, dict(given)) if "q" in given else {}
        except Exception:  # one scene must not hide the others
            out = {"error": np.array(traceback.format_exc())}
        np.savez(folder / f"{mode}_{k}.npz", **out)


# --- the comparison --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One scene of the table; differences are relative, NaN where there is none because of ``error``."""

    name: str
    counts: tuple[int, int, int]
    step: float = np.nan
    gradient: float = np.nan
    free_run: float = np.nan
    error: str = ""

    @property
    def touches(self) -> bool:
        """Whether anything touches in the window."""
        return self.counts[0] > 0

    @property
    def holds(self) -> bool:
        """Whether all limits are kept."""
        free = self.touches or self.free_run <= FREE_RUN
        return not self.error and self.step <= STEP and self.gradient <= GRADIENT and free

    def markdown(self) -> str:
        """Return the row of the table."""
        if self.error:
            return f"| {self.name} | {self.error} | | | | **no** |"
        counts = " / ".join(str(count) for count in self.counts) if self.touches else "-"
        numbers = f"{self.step:.1e} | {self.gradient:.1e} | {self.free_run:.1e}"
        return f"| {self.name} | {counts} | {numbers} | {'yes' if self.holds else '**no**'} |"


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference relative to the largest entry."""
    return float(np.abs(a - b).max(initial=0.0)) / (float(np.abs(a).max(initial=0.0)) or 1.0)


def _compare(name: str, before: dict[str, Any], after: dict[str, Any]) -> Row:
    for side, part in (("before", before), ("after", after)):
        if "error" in part:
            text = str(part["error"])
            print(f"{name} ({side}):\n{text}", file=sys.stderr)
            return Row(name, (0, 0, 0), error=f"{side}: {text.strip().splitlines()[-1][:80]}")
    counts = tuple(int(count) for count in before["counts"])
    shared = sorted(set(before["names"].tolist()) & set(after["names"].tolist()))
    gradients = []
    for part in (before, after):
        at = {key: k for k, key in enumerate(part["names"].tolist())}
        gradients.append(part["gradient"][[at[key] for key in shared]])
    error = ""
    missing = sorted(set(before["names"].tolist()) - set(shared))
    if missing:
        error = f"after: no number {missing[0]} ({len(missing)} missing)"
    return Row(
        name,
        (counts[0], counts[1], counts[2]),
        max(_difference(before[key][1:], after[key]) for key in "qv"),
        float(np.abs(gradients[0] - gradients[1]).max(initial=0.0)) / (float(np.linalg.norm(gradients[0])) or 1.0),
        max(_difference(before[key], after[f"free_{key}"]) for key in "qv"),
        error,
    )


def compare(before: Path, after: Path, names: list[str]) -> Iterator[Row]:
    """Run the workers and yield a row a scene."""
    with tempfile.TemporaryDirectory() as scratch:
        for mode, checkout in (("before", before), ("after", after)):
            python = checkout / ".venv" / "bin" / "python"
            command = [str(python) if python.exists() else sys.executable, __file__, "--worker", mode, scratch]
            one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            environment = os.environ | {"PYTHONPATH": str(checkout)} | one_thread
            subprocess.run([*command, "--scenes", *names], cwd=checkout, env=environment, check=True)
        for k, name in enumerate(names):
            with np.load(Path(scratch) / f"before_{k}.npz") as one, np.load(Path(scratch) / f"after_{k}.npz") as two:
                yield _compare(name, dict(one), dict(two))


def main() -> None:
    """Parse the arguments, compare, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="checkout of the commit before")
    parser.add_argument("after", type=Path, nargs="?", default=ROOT, help="checkout of the commit after")
    names = scene_names()
    parser.add_argument("--scenes", nargs="+", metavar="NAME", choices=names, help="some of them [default: all]")
    parser.add_argument("--output", type=Path, help="where the table is written, too")
    parser.add_argument("--worker", nargs=2, metavar=("MODE", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.scenes or names
    if arguments.worker:
        work(names, Path(arguments.worker[1]), arguments.worker[0])
        return
    if arguments.before is None:
        parser.error("the checkout of the commit before is missing")
    rows = list(compare(arguments.before.resolve(), arguments.after.resolve(), names))
    lines = [
        "| scene | touching / sticking / slipping | step | gradient | free run | agrees |",
        "|---|---|---|---|---|---|",
        *(row.markdown() for row in rows),
    ]
    print("\n".join(lines))
    broken = [row.name for row in rows if not row.holds]
    summary = f"\n{len(rows) - len(broken)} of {len(rows)} scenes agree"
    if broken:
        summary += f"; not: {', '.join(broken)}"
    print(summary)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n" + summary + "\n", encoding="utf-8")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
