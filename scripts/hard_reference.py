"""The penalty laws against exact contact on one scene, over the contact stiffness.

``python -m scripts.hard_reference`` runs the cylinder of ADD's Fig. 2 with hard contact and with linear, tanh and
hybrid friction at growing stiffness, and prints where its centre ends and how fast it then moves. ``--out`` keeps the
centres and velocities of all runs over time (.npz, or one .csv for the hard run); ``--docs`` puts table and picture
into docs/studies/hard-reference.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from add.errors import SolverError
from add.hard_contact import Branch, ExactContact, with_exact_contact
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.terms import Inertia

ROOT = Path(__file__).resolve().parents[1]
SCENE = ROOT / "scenes" / "fig2_cylinder_linear.json"
PAGE = ROOT / "docs" / "studies" / "hard-reference.md"
LAWS = ("linear", "tanh", "hybrid")
STIFFNESSES = (1e2, 1e3, 1e4, 1e5)
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Run:
    """The first body's centre of mass over time.

    Attributes
    ----------
    law, stiffness : what bears the body; "hard" has no stiffness
    dt : step [s]
    t, centre, velocity : (k,) [s], (k, 3) [m], (k, 3) [m/s]
    iterations : Newton iterations a step
    seconds : processor seconds, compilation left out
    fastest : largest speed of any coordinate at the end [m/s]
    contacts : (k - 1, 3) pairs near that are apart, stick and slip; none for penalties
    """

    law: str
    stiffness: float
    dt: float
    t: np.ndarray
    centre: np.ndarray
    velocity: np.ndarray
    iterations: float
    seconds: float
    fastest: float
    contacts: np.ndarray

    @property
    def name(self) -> str:
        return self.law if self.law == "hard" else f"{self.law}_{self.stiffness:g}"


def build(path: Path, law: str, stiffness: float | None, divide: int) -> BuiltScene:
    """Build a scene with another friction law, contact stiffness, and steps divided by a number."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    contact = raw.setdefault("contact", {})
    if stiffness is not None:
        contact |= {"stiffness": stiffness, "friction_law": law}
    for key in ("expect", "check"):
        raw.pop(key, None)
    raw["time"]["dt"] /= divide
    raw["time"]["steps"] *= divide
    return scene_from_dict(raw, folder=path.parent).build()


def shares(built: BuiltScene) -> tuple[int, np.ndarray]:
    """Return the first coordinate of the first body and its nodes' shares in its mass; (1,) for a rigid body."""
    model = built.model
    if model.bodies[0].has_frame:
        return model.system.dofs[model.bodies[0].name].start, np.ones(1)
    body = model.bodies[0]
    count = body.rest.shape[0]
    weights = np.zeros(model.system.n // 3)
    for term in model.term(Inertia):
        weights += np.bincount(term.rows, term.mass[:, 2] * built.theta[term.density], minlength=weights.size)
    first = model.system.dofs[body.name].start
    own = weights[first // 3 : first // 3 + count]
    return first, own / own.sum()


def measure(path: Path, law: str, stiffness: float | None = None, steps: int | None = None, divide: int = 1) -> Run:
    """Run once; a penalty run of one step beforehand leaves compilation out of the time."""
    built = build(path, law, stiffness, divide)
    simulation = built.simulation
    n_steps = simulation.n_steps if steps is None else steps * divide
    contacts = np.zeros((0, 3), dtype=int)
    if stiffness is None:
        simulation = with_exact_contact(simulation)
    simulation.run(n_steps=1)
    begun = time.process_time()
    run = simulation.run(n_steps=n_steps)
    seconds = time.process_time() - begun
    t, q, v = run.t, run.q, run.v
    iterations = np.mean([record.report.iterations for record in run.records])
    stepper = simulation.stepper
    if isinstance(stepper, ExactContact):
        found = [stepper.contact_state(record, simulation.theta) for record in run.records]
        contacts = np.array([[state.count(branch) for branch in Branch] for state in found])
    first, share = shares(built)
    columns = slice(first, first + 3 * share.size)
    centre, velocity = (np.einsum("i,kij->kj", share, x[:, columns].reshape(t.size, -1, 3)) for x in (q, v))
    return Run(
        law, stiffness or 0.0, simulation.stepper.dt, t, centre, velocity, float(iterations), seconds,
        float(np.abs(v[-1]).max()), contacts,
    )  # fmt: skip


def table(runs: Sequence[Run]) -> str:
    """Return the comparison as a table in Markdown; each run beside the hard one of its step."""
    lines = [
        "| contact | k_n [N/m] | dt [s] | centre at the end [m] | x, z off the hard run [mm] | speed [mm/s] "
        "| Newton a step | time [s] |",
        "|---|---|---|---|---|---|---|---|",
    ]
    hard = {run.dt: run for run in runs if run.law == "hard"}
    for run in runs:
        place = ", ".join(f"{x:.6f}" for x in run.centre[-1])
        off = 1e3 * (run.centre[-1] - hard[run.dt].centre[-1])
        lines.append(
            f"| {run.law} | {f'{run.stiffness:g}' if run.stiffness else ''} | {run.dt:g} | ({place}) "
            f"| {'' if run.law == 'hard' else f'{off[0]:+.4f}, {off[2]:+.4f}'} "
            f"| {1e3 * float(np.linalg.norm(run.velocity[-1])):.2g} | {run.iterations:.2f} | {run.seconds:.1f} |"
        )
    return "\n".join(lines)


def write(path: Path, runs: Sequence[Run]) -> None:
    """Keep centres and velocities over time: of all runs (.npz) or of the first, the hard one (.csv)."""
    hard = runs[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        header = "t [s],x [m],y [m],z [m],vx [m/s],vy [m/s],vz [m/s]"
        rows = np.column_stack([hard.t, hard.centre, hard.velocity])
        np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.12g")
        return
    arrays = {}
    for run in runs:
        name = run.name if run.dt == hard.dt else f"{run.name}_dt_{run.dt:g}"
        arrays |= {f"{name}/t": run.t, f"{name}/centre": run.centre, f"{name}/velocity": run.velocity}
    np.savez_compressed(path, **arrays)


def plot(runs: Sequence[Run], path: Path) -> None:
    """Draw place along the incline, distance from the hard run and speed."""
    from matplotlib.figure import Figure

    hard = runs[0]
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.plot(hard.t, 1e3 * hard.centre[:, 0], "k", lw=2, label="hard")
    right.semilogy(hard.t[1:], np.linalg.norm(hard.velocity[1:], axis=1), "k", lw=2)
    same = [run for run in runs if run.dt == hard.dt and run.law != "hard"]
    colours = {k: f"C{i}" for i, k in enumerate(dict.fromkeys(run.stiffness for run in same))}
    styles = dict(zip(LAWS, ("-", "--", ":"), strict=True))
    for run in same:
        style = {"color": colours[run.stiffness], "ls": styles[run.law], "lw": 1}
        left.plot(run.t, 1e3 * run.centre[:, 0], label=f"{run.law}, {run.stiffness:g} N/m", **style)
        off = np.linalg.norm(run.centre - hard.centre, axis=1)
        middle.semilogy(run.t[1:], 1e3 * np.maximum(off[1:], 1e-9), **style)
        right.semilogy(run.t[1:], np.maximum(np.linalg.norm(run.velocity[1:], axis=1), 1e-18), **style)
    left.set(xlabel="t [s]", ylabel="centre down the incline [mm]")
    middle.set(xlabel="t [s]", ylabel="distance from the hard run [mm]", ylim=(1e-5, None))
    right.set(xlabel="t [s]", ylabel="speed of the centre [m/s]")
    figure.legend(loc="outside right center", fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", type=Path, default=SCENE, help="scene file; its first body is looked at")
    parser.add_argument("--laws", nargs="*", default=list(LAWS), choices=LAWS, help="penalty laws to compare")
    parser.add_argument("--stiffness", nargs="*", type=float, default=list(STIFFNESSES), help="contact stiffnesses")
    parser.add_argument(
        "--divide", nargs="*", type=int, default=[], help="repeat with dt divided by these, stiffest only"
    )
    parser.add_argument("--steps", type=int, help="fewer steps than the scene has")
    parser.add_argument("--out", type=Path, help=".npz or .csv of centres and velocities over time")
    parser.add_argument("--docs", action="store_true", help=f"write into {PAGE.relative_to(ROOT)} and its picture")
    arguments = parser.parse_args()
    runs: list[Run] = []
    for divide in (1, *arguments.divide):
        runs.append(measure(arguments.scene, "hard", steps=arguments.steps, divide=divide))
        for law in arguments.laws:
            for stiffness in arguments.stiffness if divide == 1 else arguments.stiffness[-1:]:
                try:
                    runs.append(measure(arguments.scene, law, stiffness, arguments.steps, divide))
                except SolverError as error:
                    print(f"{law}, {stiffness:g} N/m: {error}")
    text, hard = table(runs), runs[0]
    print(text)
    apart, stick, slip = hard.contacts[-1]
    print(f"hard: {stick} pairs stick, {slip} slide, {apart} are near; fastest coordinate {hard.fastest:.2g} m/s")
    if arguments.out:
        write(arguments.out, runs)
    if arguments.docs:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
        plot(runs, PAGE.parent / "images" / "hard_reference.png")


if __name__ == "__main__":
    main()
