"""Two equal balls meet head-on: gradients through a penalty impact against the exact ones, over step and phase.

Writes docs/studies/two_balls.md, docs/studies/images/two_balls.png and two_balls_control.png. Run it as
``python scripts/two_balls.py`` (five minutes).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

from add.adjoint import value_and_gradient
from add.bodies import CarriedShape, RigidBody
from add.contact import FrictionLaw
from add.equations.kinematics import State, StateTangent
from add.equations.signals import BSplineSignal, SignalParameter
from add.equations.sites import SiteKind
from add.joints.laws import BodySite, JointPart, PointForce
from add.kernels.contact_laws import elastic_energy, elastic_law
from add.kernels.shape_codes import SPHERE
from add.model import ContactModel, build_model
from add.objectives.base import Objective
from add.simulation import BDF
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions

MASS, RADIUS, STIFFNESS = 1.0, 0.1, 500.0  # kg, m, N/m
X, V, T = (0.0, 0.52), (1.0, 0.0), 1.0  # places and velocities along x at the start [m], [m/s]; duration [s]
OMEGA = np.sqrt(2.0 * STIFFNESS / MASS)  # of the two masses on the contact spring [1/s]
ONSET = 0.3 * (V[0] - V[1]) / OMEGA  # depth over which the smooth contact's stiffness grows [m]
N_STEPS = (80, 160, 320, 640, 1280, 2560, 5120)
N_PHASES = 16
NAMES = ("x1", "x2", "v1", "v2")
PUBLISHED = (0.75, 0.25, 0.91, 0.08)

#: The control problem: the radius of the balls, places along x and y, factor of the cost of the force.
CONTROL_RADIUS, CONTROL_X, EPSILON = 0.2, (-2.0, -1.0), 0.1
CONTROL_OPTIMUM = 1.396542
CONTROL_STIFFNESSES = (1e3, 1e4, 1e5)

ROOT = Path(__file__).resolve().parents[1]


def half_period(speed: float, onset: float, stiffness: float = STIFFNESS) -> float:
    """Return how long two balls that meet at ``speed`` touch [s]: pi/omega without onset, longer with one."""
    k = 2.0 * stiffness / MASS

    def energy(d: float) -> float:
        return k * elastic_energy(d, onset, d < onset)

    deepest = brentq(lambda d: energy(d) - 0.5 * speed**2, 0.0, 10.0 * (onset + speed / np.sqrt(k)))

    # d = deepest (1 - s^2): the integrand has no pole left at s = 0.
    def rate(s: float) -> float:
        rest = speed**2 - 2.0 * energy(deepest * (1.0 - s * s))
        return 2.0 * deepest * s / np.sqrt(rest) if s > 1e-7 else 2.0 * deepest**0.5 / np.sqrt(
            2.0 * k * elastic_law(deepest, onset, deepest < onset)[0]
        )  # fmt: skip

    kink = np.sqrt(max(0.0, 1.0 - onset / deepest))
    return 2.0 * float(quad(rate, 0.0, 1.0, points=[kink], epsabs=1e-12, limit=200)[0])


def exact_gradient(onset: float, stiffness: float = STIFFNESS) -> np.ndarray:
    """Return the derivatives of x2(T) in continuous time by x1, x2, v1, v2.

    x2(T) = x1 + 2 r + v1 T - v tau(v) / 2 with v = v1 - v2, whatever the law of the contact, if it is elastic.
    """
    speed, h = V[0] - V[1], 1e-4
    above, below = ((speed + s) * half_period(speed + s, onset, stiffness) for s in (h, -h))
    slope = (above - below) / (4.0 * h)
    return np.array([1.0, 0.0, T - slope, slope])


@dataclass(frozen=True)
class FinalPlace(Objective):
    """x of the second ball after the last step [m]."""

    index: int
    n_steps: int

    def step_value(self, state: State, theta: np.ndarray) -> float:
        return float(state.q[0][self.index]) if state.step == self.n_steps else 0.0

    def step_pullback(self, state: State, theta: np.ndarray, state_bar: StateTangent, theta_bar: np.ndarray) -> None:
        if state.step == self.n_steps:
            state_bar.q[0][self.index] += 1.0


def balls(n_steps: int, onset: float, *, order: int = 2, stiffness: float = STIFFNESS) -> Simulation:
    """Two balls without gravity and friction; the first has the contact point, the second the shape."""
    shape = CarriedShape(SPHERE, (RADIUS, 0.0, 0.0), np.eye(3), np.zeros(3))
    first = RigidBody("first", np.zeros((1, 3)), np.full(1, RADIUS), np.ones(1))
    second = RigidBody("second", np.zeros((0, 3)), np.zeros(0), np.zeros(0), (shape,))
    model = build_model([first, second], contact=ContactModel(law=FrictionLaw.NONE, onset=onset))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for k, name in enumerate(("first", "second")):
        layout.view(theta, f"bodies.{name}.mass")[...] = MASS
        layout.view(theta, f"bodies.{name}.inertia")[:3] = 0.4 * MASS * RADIUS**2
        layout.view(theta, f"bodies.{name}.position")[0] = X[k]
        layout.view(theta, f"bodies.{name}.velocity")[0] = V[k]
    layout.view(theta, "contact.first.second.k_n")[...] = stiffness
    stepper = BDF(T / n_steps, order, newton=NewtonOptions(atol=1e-11, rtol=0.0))
    return Simulation(model.system, GivenStart(model.initial), stepper, n_steps, theta)


def gradient(simulation: Simulation, phase: float) -> np.ndarray:
    """Return x2(T) and its derivatives by x1, x2, v1, v2; ``phase`` shifts the first contact by a part of a step."""
    layout, theta = simulation.system.parameters, simulation.theta.copy()
    layout.view(theta, "bodies.first.position")[0] -= phase * simulation.stepper.dt * (V[0] - V[1])
    index = simulation.system.dofs["second"].start
    found = value_and_gradient(simulation, FinalPlace(index, simulation.n_steps), theta)
    names = [f"bodies.{name}.{key}" for key in ("position", "velocity") for name in ("first", "second")]
    return np.array([found.value, *(layout.view(found.gradient, name)[0] for name in names)])


def over_phases(n_steps: int, onset: float, n_phases: int = N_PHASES) -> np.ndarray:
    """Return x2(T) and its gradient at phases that divide one step evenly (n_phases, 5)."""
    simulation = balls(n_steps, onset)
    return np.array([gradient(simulation, (k + 0.5) / n_phases) for k in range(n_phases)])


# --- control ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ControlCost(Objective):
    """|x2(T)|^2 + epsilon times the integral of |u|^2 over a force u that is constant in each step."""

    index: int
    n_steps: int
    rows: np.ndarray

    def step_value(self, state: State, theta: np.ndarray) -> float:
        x = state.q[0][self.index : self.index + 3]
        return float(x @ x) if state.step == self.n_steps else 0.0

    def step_pullback(self, state: State, theta: np.ndarray, state_bar: StateTangent, theta_bar: np.ndarray) -> None:
        if state.step == self.n_steps:
            part = slice(self.index, self.index + 3)
            state_bar.q[0][part] += 2.0 * state.q[0][part]

    def parameter_value(self, theta: np.ndarray) -> float:
        u = theta[self.rows]
        return EPSILON * float(np.vdot(u, u)) / self.n_steps

    def parameter_gradient(self, theta: np.ndarray, theta_bar: np.ndarray) -> None:
        theta_bar[self.rows] += 2.0 * EPSILON / self.n_steps * theta[self.rows]


@dataclass(frozen=True)
class Optimum:
    """What an optimisation found: steps, cost, force in each step (n_steps, 2), evaluations."""

    stiffness: float
    n_steps: int
    cost: float
    force: np.ndarray
    evaluations: int


def exact_optimum(tau: float = 0.0) -> float:
    """Return the least cost with a rigid contact, or with one that takes ``tau`` and no force meanwhile.

    Along the diagonal the first ball covers d = |x2 - x1| - 2 r from rest until time s and arrives with speed w, at a
    cost of epsilon (12 d^2/s^3 - 12 d w/s^2 + 4 w^2/s); the second goes on at w until T = 1, tau / 2 later.
    """
    d, way = np.sqrt(2.0) - 2.0 * CONTROL_RADIUS, np.sqrt(2.0)

    def cost(p: np.ndarray) -> float:
        s, w = p
        return (way - (1.0 - s - 0.5 * tau) * w) ** 2 + EPSILON * (
            12.0 * d * d / s**3 - 12.0 * d * w / s**2 + 4.0 * w * w / s
        )

    return float(minimize(cost, [0.6, 3.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).fun)


def optimum(stiffness: float) -> Optimum:
    """Push the first ball so that the second ends at the origin; from a force of (3, 3) N throughout."""
    omega = np.sqrt(2.0 * stiffness)
    n_steps = int(np.ceil(omega / 0.075))
    shape = CarriedShape(SPHERE, (CONTROL_RADIUS, 0.0, 0.0), np.eye(3), np.zeros(3))
    bodies = [
        RigidBody("first", np.zeros((1, 3)), np.full(1, CONTROL_RADIUS), np.ones(1)),
        RigidBody("second", np.zeros((0, 3)), np.zeros(0), np.zeros(0), (shape,)),
    ]
    push = JointPart(
        PointForce,
        (BodySite(SiteKind.POINT, "first", "centre"),),
        drive=SignalParameter(BSplineSignal(0, n_steps, 0.0, 1.0), "force"),
    )
    contact = ContactModel(law=FrictionLaw.NONE, onset=0.3 * 2.5 / omega)
    extra = [("centre", (3,), "m"), ("force", (n_steps, 3), "N")]
    model = build_model(bodies, contact=contact, joint_parts=[push], extra=extra)
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for name, x in zip(("first", "second"), CONTROL_X, strict=True):
        layout.view(theta, f"bodies.{name}.mass")[...] = 1.0
        layout.view(theta, f"bodies.{name}.inertia")[:3] = 0.4 * CONTROL_RADIUS**2
        layout.view(theta, f"bodies.{name}.position")[:2] = x
    layout.view(theta, "contact.first.second.k_n")[...] = stiffness
    layout.view(theta, "force")[:, :2] = 3.0
    stepper = BDF(1.0 / n_steps, 2, newton=NewtonOptions(atol=1e-10, rtol=0.0))
    simulation = Simulation(model.system, GivenStart(model.initial), stepper, n_steps, theta)
    rows = layout["force"].indices
    objective = ControlCost(model.system.dofs["second"].start, n_steps, rows)
    plane = rows[:, :2]

    # So that the sum of squares of the unknowns is the integral of |u|^2.
    scale = np.sqrt(n_steps)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        point = theta.copy()
        point[plane] = scale * x.reshape(-1, 2)
        found = value_and_gradient(simulation, objective, point)
        return found.value, scale * found.gradient[plane].ravel()

    options = {"maxcor": 30, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(cost, theta[plane].ravel() / scale, jac=True, method="L-BFGS-B", options=options)
    return Optimum(stiffness, n_steps, float(found.fun), scale * found.x.reshape(-1, 2), int(found.nfev))


def extrapolated(optima: Sequence[Optimum]) -> float:
    """Return the value at 1/omega = 0 of the polynomial in 1/omega through the costs."""
    x = np.array([1.0 / np.sqrt(2.0 * o.stiffness) for o in optima])
    return float(np.polyfit(x, [o.cost for o in optima], len(optima) - 1)[-1])


# --- page -------------------------------------------------------------------------------------------------------------


def tables(rows: dict[tuple[float, int], np.ndarray]) -> str:
    lines = []
    for onset, title in ((0.0, "Kink (onset = 0, the paper's law)"), (ONSET, "Smooth onset of 0.3 v/omega")):
        exact = exact_gradient(onset)
        lines += [
            f"### {title}: exact " + "(" + ", ".join(f"{g:.4f}" for g in exact) + ")",
            "",
            "| steps | omega dt | median of dx2/d(x1, x2, v1, v2) | smallest to largest dx2/dx1 | mean dx2/dx1 | "
            "x2(T) - exact [m] |",
            "|---|---|---|---|---|---|",
        ]
        place = X[0] + 2.0 * RADIUS + V[0] * T - 0.5 * (V[0] - V[1]) * half_period(V[0] - V[1], onset)
        n_phases = next(iter(rows.values())).shape[0]
        for (which, n_steps), found in rows.items():
            if which != onset:
                continue
            median, g1 = np.median(found[:, 1:], axis=0), found[:, 1]
            shift = (np.arange(n_phases) + 0.5) / n_phases * (V[0] - V[1]) * T / n_steps
            error = np.abs(found[:, 0] + shift - place).max()
            lines.append(
                f"| {n_steps} | {OMEGA * T / n_steps:.4f} | ({', '.join(f'{g:.4f}' for g in median)}) "
                f"| {g1.min():.4f} to {g1.max():.4f} | {g1.mean():.4f} | {error:.1e} |"
            )
        lines.append("")
    return "\n".join(lines)


def control_table(optima: Sequence[Optimum]) -> str:
    lines = [
        "| k [N/m] | steps | cost found | expected with an impact of tau | cost - rigid contact | evaluations |",
        "|---|---|---|---|---|---|",
    ]
    for o in optima:
        expected = exact_optimum(np.pi / np.sqrt(2.0 * o.stiffness))
        more = o.cost - CONTROL_OPTIMUM
        row = (f"{o.stiffness:g}", o.n_steps, f"{o.cost:.6f}", f"{expected:.6f}", f"{more:+.6f}", o.evaluations)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def page(rows: dict[tuple[float, int], np.ndarray], optima: Sequence[Optimum]) -> str:
    return f"""# Two balls: the limit of gradients through penalty impacts

Written by `scripts/two_balls.py`; do not edit.

Two equal balls ({MASS:g} kg, radius {RADIUS:g} m) move on a line without friction or gravity: the first from
x1 = {X[0]:g} m at {V[0]:g} m/s, the second from x2 = {X[1]:g} m at rest. They meet, the first stops, the second goes
on. With a rigid elastic contact the second is at x2(T) = x1 + v1 T + 2 r, whose gradient by (x1, x2, v1, v2) is
**(1, 0, T, 0)**. This is a known trap for differentiable simulators: Nimble 0.8,
by a report to its authors, answers {PUBLISHED} at T = 1 s.

A penalty contact of stiffness k takes its time, tau = pi sqrt(m / 2k). In continuous time

    x2(T) = x1 + 2 r + v1 T - (v1 - v2) tau / 2,    gradient (1, 0, T - tau/2, tau/2).

(With an elastic onset tau depends on the speed; tau/2 is then d(v tau(v))/dv / 2.) So much is physics: a softer contact
is another contact. Here k = {STIFFNESS:g} N/m, omega = sqrt(2k/m) = {OMEGA:.1f} 1/s, tau = {np.pi / OMEGA:.4f} s.

## What a step does to it

The gradient of the simulated run is exact for the *run* (the adjoint, the forward mode and replayed differences agree
to ten digits); the question is what the run's gradient says about the physics. Where the contact begins lies somewhere
within a step, and the force law has a kink there. We shift x1 by fractions of the way of one step, so that the impact
meets {N_PHASES} different phases, and look at all gradients.

![gradients over phase and step](images/two_balls.png)

{tables(rows)}

- **The place is right, the slope is not.** With the kink x2(T) converges with order 2 at every phase. But the run is
  piecewise linear, and its gradient takes two or three values, one for each set of steps in which the balls touch. They
  lie on both sides of the right one, and their *mean* over the phases is right (it is the slope of x2(T) from one step
  to the next; in the table up to the sampling by {N_PHASES} phases): a ripple with the period of one step, whose height
  falls like dt^2 and whose slope falls like dt only. The error grows with the flight after the impact.
- **The median over the phases converges** to the exact values with dt: with the kink like dt, not monotonically; with
  the smooth onset like dt^2, and there even the worst phase is good. At omega dt = 0.05 the worst phase with `onset` is
  better than the median with the kink.
- **What to do:** give contacts an `onset` of some tenths of the depth that impacts reach, and steps with
  omega dt < 0.1; or average gradients over small shifts. `add check --gradient` compares with free differences over a
  range of step sizes and warns where the two part.

## Optimal control through the impact

The published test: balls of radius {CONTROL_RADIUS:g} m and 1 kg at rest at (-2, -2) and (-1, -1); a force u(t) on the
first shall bring the second to the origin at T = 1 s, at a cost of |x2(T)|^2 + {EPSILON:g} times the integral of |u|^2.
With a rigid contact the least cost is {exact_optimum():.6f} (push until 0.683 s, meet at 2.554 m/s). We start from
(3, 3) N, as published, with a force for every step and L-BFGS-B; onset 0.3 v/omega and omega dt = 0.075:

{control_table(optima)}

What is left is the duration of the impact, which costs the second ball a way of w tau / 2 (the force may go on
meanwhile, so a little less than the estimate, which leaves it out). The polynomial in 1/omega
through these costs gives **{extrapolated(optima):.5f}** for a rigid contact, against {CONTROL_OPTIMUM:g}.

![optimal forces](images/two_balls_control.png)

The peak in the first step is a site of BDF2 that starts with a BDF1 step: a force in that step alone counts half as
much again as in any other (the two speeds at the start are extrapolated), and an optimiser with a force for every step
finds out. Splines, or a force that is shared by a few steps, leave no room for it.
"""


def plot(rows: dict[tuple[float, int], np.ndarray], path: Path) -> None:
    """Left: gradient over phase at one step; right: median and range of its error over the step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    counts = sorted({n for _, n in rows})
    shown = counts[len(counts) // 2]
    for onset, label, colour in ((0.0, "kink", "C3"), (ONSET, "smooth onset", "C0")):
        found = rows[onset, shown]
        phases = (np.arange(found.shape[0]) + 0.5) / found.shape[0]
        left.plot(
            phases,
            found[:, 1],
            "o-",
            drawstyle="steps-mid",
            color=colour,
            ms=3,
            label=f"$\\partial x_2/\\partial x_1$, {label}",
        )
        left.plot(
            phases,
            found[:, 2],
            "s:",
            drawstyle="steps-mid",
            color=colour,
            ms=3,
            label=f"$\\partial x_2/\\partial x_2$, {label}",
        )
        steps = np.array([OMEGA * T / n for n in counts])
        errors = np.abs(np.array([rows[onset, n][:, 1] for n in counts]) - 1.0)
        medians = np.abs(np.array([np.median(rows[onset, n][:, 1]) for n in counts]) - 1.0)
        right.fill_between(steps, errors.min(axis=1), errors.max(axis=1), color=colour, alpha=0.15, lw=0)
        right.loglog(steps, errors.max(axis=1), "--", color=colour, lw=1, label=f"{label}, worst phase")
        right.loglog(steps, medians, "o-", color=colour, ms=4, label=f"{label}, median over phases")
    left.axhline(1.0, color="k", lw=0.6)
    left.axhline(0.0, color="k", lw=0.6)
    left.set(xlabel="phase of the impact within a step", title=f"gradient at $\\omega\\,dt$ = {OMEGA * T / shown:.3f}")
    left.legend(fontsize=8)
    right.set(xlabel="$\\omega\\,dt$", title="$|\\partial x_2(T)/\\partial x_1 - 1|$", ylim=(1e-7, None))
    right.legend(fontsize=8)
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def plot_control(optima: Sequence[Optimum], path: Path) -> None:
    """Optimal forces along the diagonal, against the rigid contact's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for o in optima:
        axes.plot(
            (np.arange(o.n_steps) + 0.5) / o.n_steps,
            o.force.sum(axis=1) / np.sqrt(2.0),
            label=f"k = {o.stiffness:g} N/m, cost {o.cost:.4f}",
        )
    t = np.linspace(0.0, 1.0, 1001)
    d, s, w = np.sqrt(2.0) - 2.0 * CONTROL_RADIUS, 0.68322, 2.55411
    exact = np.where(t < s, 6.0 * d / s**2 - 2.0 * w / s + (6.0 * w / s**2 - 12.0 * d / s**3) * t, 0.0)
    axes.plot(t, exact, "k:", label=f"rigid contact, cost {CONTROL_OPTIMUM:.4f}")
    axes.set(xlabel="t [s]", ylabel="force along the diagonal [N]")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "studies", help="folder to write into")
    parser.add_argument("--quick", action="store_true", help="large steps and soft contacts only")
    arguments = parser.parse_args()
    counts = N_STEPS[:3] if arguments.quick else N_STEPS
    rows = {(onset, n): over_phases(n, onset) for onset in (0.0, ONSET) for n in counts}
    print(tables(rows))
    optima = [optimum(k) for k in (CONTROL_STIFFNESSES[:1] if arguments.quick else CONTROL_STIFFNESSES)]
    print(control_table(optima))
    print(f"extrapolated: {extrapolated(optima):.6f}, exact: {exact_optimum():.6f}")
    arguments.docs.mkdir(parents=True, exist_ok=True)
    (arguments.docs / "two_balls.md").write_text(page(rows, optima), encoding="utf-8")
    plot(rows, arguments.docs / "images" / "two_balls.png")
    plot_control(optima, arguments.docs / "images" / "two_balls_control.png")


if __name__ == "__main__":
    main()
