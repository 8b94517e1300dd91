"""Contact without penalties: a step and its pull-back beside a penalty step, and the layers beside a cone program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from add.cones import QCQPLayer
from add.equations.kinematics import StateTangent
from add.linalg import factorization_for
from add.scene import scene_from_dict
from add.simulation.run import Simulation
from add.simulation.stepper import TakenStep
from benchmarks.timing import Row, least

SCENE = Path(__file__).parents[1] / "scenes" / "cube_stops_impulse.json"

#: Contacts of a layer.
CONTACTS = (1, 4, 10, 20)


def cones(quick: bool) -> dict[str, object]:
    """Time everything here."""
    return {"step": _step(quick), "layers": [_layer(k, quick) for k in CONTACTS[: 2 if quick else None]]}


def cube(law: str) -> Simulation:
    """Return the cube that slides to rest on four corners, under a friction law."""
    raw: dict[str, Any] = json.loads(SCENE.read_text(encoding="utf-8"))
    raw.pop("$schema")
    raw["contact"]["friction_law"] = law
    if law != "impulse":
        raw["contact"] = {"friction_law": law, "friction": 0.3, "stiffness": 1e4}
        if law != "tanh":
            raw["contact"]["stick_stiffness"] = 100.0
    return scene_from_dict(raw).build().simulation


def _step(quick: bool) -> Row:
    """Time steps of one cube under three laws, and the pull-back through the one without penalties."""
    repeats, row = 3 if quick else 15, {}
    for law in ("impulse", "linear", "hybrid"):
        simulation = cube(law)
        by_terms = replace(simulation, solver=lambda n: factorization_for(n))
        simulation.run(n_steps=5)
        steps = len(by_terms.run().records)
        row[f"{law}_ms_per_step"] = 1e3 * least(by_terms.run, 10.0, repeats) / steps
        if law == "linear" and simulation.packed is not None:
            row["compiled_ms_per_step"] = 1e3 * least(simulation.run, 10.0, repeats) / steps
    simulation = cube("impulse")
    run, assembler, theta = simulation.run(), simulation.assembler(), simulation.theta
    stepper = simulation.differentiable

    def sweep() -> None:
        bar, theta_bar = StateTangent.zeros(stepper.n_history, simulation.system.n), np.zeros_like(theta)
        bar.q[0] = 1.0
        for record in reversed(run.records):
            bar = stepper.pullback(TakenStep(assembler, record, theta), bar, theta_bar)

    row["pullback_ms_per_step"] = 1e3 * least(sweep, 10.0, repeats) / len(run.records)
    row["over_linear"] = row["impulse_ms_per_step"] / row["linear_ms_per_step"]
    row["over_hybrid"] = row["impulse_ms_per_step"] / row["hybrid_ms_per_step"]
    row["pullback_over_step"] = row["pullback_ms_per_step"] / row["impulse_ms_per_step"]
    print(
        f"one cube: {row['impulse_ms_per_step']:.3f} ms a step, {row['over_linear']:.2f} times linear, "
        f"{row['over_hybrid']:.2f} times hybrid; pull-back {row['pullback_over_step']:.2f} times the step",
        flush=True,
    )
    return row


def _layer(contacts: int, quick: bool) -> Row:
    """Time the friction layer, and a differentiated cone program where cvxpylayers with JAX or diffcp is installed."""
    rng, n = np.random.default_rng(contacts), 2 * contacts
    problems = [
        (np.diag(np.exp(rng.uniform(-10.0, 10.0, n))), rng.normal(size=n), *rng.uniform(0.1, 1.0, (2, contacts)))
        for _ in range(5 if quick else 40)
    ]
    bar = rng.normal(size=n)
    solved = [QCQPLayer.of(*problem) for problem in problems]

    def backward() -> None:
        # A fresh solution each time: the linearisation is kept with it.
        for layer in solved:
            replace(layer, solution=replace(layer.solution)).pullback(bar)

    row: Row = {
        "contacts": float(contacts),
        "forward_us": 1e6 * least(lambda: [QCQPLayer.of(*problem) for problem in problems], 2.0, 20) / len(problems),
        "backward_us": 1e6 * least(backward, 2.0, 20) / len(problems),
        "uncertified": float(sum(not layer.solution.certified for layer in solved)),
    }
    text = f"{contacts} contacts: {row['forward_us']:.0f} us forward, {row['backward_us']:.0f} us backward"
    for name, peer in (("layer", _cone_layer), ("program", _cone_program)):
        try:
            forward = peer(contacts)
        except ImportError:
            continue
        times = []
        for problem in problems[:10]:
            pull = forward(problem)
            times.append((least(partial(forward, problem), 0.0, 2), least(partial(pull, bar), 0.0, 2)))
        for way, found in zip(("forward", "backward"), np.median(times, axis=0), strict=True):
            row[f"{name}_{way}_us"] = 1e6 * float(found)
            row[f"{name}_{way}_over_ours"] = row[f"{name}_{way}_us"] / row[f"{way}_us"]
        text += (
            f"; cone {name} {row[f'{name}_forward_over_ours']:.0f} and {row[f'{name}_backward_over_ours']:.0f} times"
        )
    print(text, flush=True)
    return row


#: Solves a problem (G, g, mu, normal impulses) and returns what pulls a cotangent back.
_Forward = Callable[[tuple[Any, ...]], Callable[[Any], object]]


def _stated(contacts: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return cvxpy's problem, its variable, and its parameters: root of G, g and radii."""
    import cvxpy

    n = 2 * contacts
    x, root, g = cvxpy.Variable(n), cvxpy.Parameter((n, n)), cvxpy.Parameter(n)
    radius = cvxpy.Parameter(contacts, nonneg=True)
    limits = [cvxpy.norm(x[2 * i : 2 * i + 2]) <= radius[i] for i in range(contacts)]
    return cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(root @ x) + g @ x), limits), x, root, g, radius


def _cone_layer(contacts: int) -> _Forward:
    """Return cvxpylayers' layer under JAX."""
    import jax
    from cvxpylayers.jax import CvxpyLayer

    jax.config.update("jax_enable_x64", True)
    stated, x, *parameters = _stated(contacts)
    layer = CvxpyLayer(stated, parameters=parameters, variables=[x])

    def forward(problem: tuple[Any, ...]) -> Callable[[Any], object]:
        G, g, mu, normal = problem
        numbers = (jax.numpy.asarray(value) for value in (np.sqrt(G), g, mu * normal))
        out, pull = jax.vjp(lambda *values: layer(*values)[0], *numbers)
        jax.block_until_ready(out)
        return lambda bar: jax.block_until_ready(pull(jax.numpy.asarray(bar)))

    return forward


def _cone_program(contacts: int) -> _Forward:
    """Return diffcp alone: the program is there in its standard form."""
    import cvxpy
    import diffcp
    import scipy.sparse as sp

    stated, _, root, g, radius = _stated(contacts)
    kept: dict[int, Any] = {}

    def standard(problem: tuple[Any, ...]) -> Any:
        if id(problem) not in kept:
            root.value, g.value, radius.value = np.sqrt(problem[0]), problem[1], problem[2] * problem[3]
            data = stated.get_problem_data(cvxpy.SCS, solver_opts={"use_quad_obj": False})[0]
            dims = data["dims"]
            sizes = {"z": dims.zero, "l": dims.nonneg, "q": list(dims.soc)}
            kept[id(problem)] = sp.csc_matrix(data["A"]), data["b"], data["c"], sizes
        return kept[id(problem)]

    def forward(problem: tuple[Any, ...]) -> Callable[[Any], object]:
        x, y, s, _, pull = diffcp.solve_and_derivative(*standard(problem), eps_abs=1e-8, eps_rel=1e-8)
        return lambda bar: pull(np.ones_like(x), np.zeros_like(y), np.zeros_like(s))

    return forward
