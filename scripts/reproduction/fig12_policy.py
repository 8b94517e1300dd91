"""Fig. 12 and 13: a network trained through the simulator to throw a ball at a target by way of the floor."""

from __future__ import annotations

import numpy as np

from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, Skipped
from scripts.reproduction.running import scene

FRICTION, EPOCHS, TARGETS, TESTS, SEED = 0.4, 6, 1000, 100, 12
SHORT = {"time.dt": 0.005, "time.steps": 200}


def run(context: Context) -> Outcome:
    """Train with friction and without it, and test both with friction."""
    try:
        from scripts.reproduction import throwing_policy as policy
    except ImportError:
        raise Skipped("needs JAX: pip install 'add-sim[jax]'") from None
    built = scene("bouncing_ball_policy", SHORT if context.short else {}).build()
    rng = np.random.default_rng(SEED)
    n_targets, n_tests, epochs = (60, 10, 1) if context.short else (TARGETS, TESTS, EPOCHS)
    targets, tests = (rng.uniform(policy.LOW, policy.HIGH, (n, 3)) for n in (n_targets, n_tests))
    trained = {c: policy.train(built, c, targets, tests, epochs, SEED) for c in (FRICTION, 0.0)}
    missed = {
        (learned, thrown): policy.misses(built, thrown, trained[learned].layers, tests)
        for learned, thrown in ((FRICTION, FRICTION), (0.0, 0.0), (0.0, FRICTION))
    }
    words = {FRICTION: "with friction", 0.0: "without friction"}
    rows, values = [], {}
    for (learned, thrown), (found, _) in missed.items():
        key = f"{words[learned]}, thrown {words[thrown]}"
        values[f"hits.{key}"], values[f"miss.{key}"] = float((found < policy.HIT).mean()), float(found.mean())
        rows.append(
            Row(f"trained {key}: test targets hit, mean and largest distance [mm]",
                f"{100 * values[f'hits.{key}']:.0f} %, {1e3 * found.mean():.0f}, {1e3 * found.max():.0f}")
        )  # fmt: skip
    own = trained[FRICTION]
    deepest = policy.RADIUS - float(np.asarray(missed[FRICTION, FRICTION][1].q)[:, :, 2].min())
    seconds = float(np.median(own.seconds))
    values |= {"seconds": seconds, "tests": own.tests, "losses": [float(x) for x in own.losses]}
    rows += [
        Row(f"loss on the {n_tests} test targets before training, after one epoch and at the end [m²]",
            f"{own.tests[0]:.4f}, {own.tests[1]:.4f}, {own.tests[-1]:.4f}"),
        Row("depth by which the ball's radius of 50 mm is pressed in at most [mm]", f"{1e3 * deepest:.0f}"),
        Row("an epoch [s]", f"{seconds:.1f}", "fig12.epoch"),
    ]  # fmt: skip
    name = "fig12.png"
    draw(context, name, trained, missed, tests, words)
    steps = "compiled steps" if built.simulation.packed is not None else "the steps of the terms (no `add warm`)"
    box = ", ".join(f"{x:g}" for x in policy.HIGH - policy.LOW)
    notes = (
        f"{n_targets} targets in a box of {box} m, {epochs} epochs, batches of {policy.BATCH}, Adam with beta1 "
        f"{policy.BETA1:g} and a rate of {policy.RATE:g} that is halved after each epoch, as in the paper; two hidden "
        f"layers of {policy.WIDTH}, ELU. Ball, targets and width of the network are not published and chosen here, so "
        "that losses and hits are not the paper's. A hit passes the target closer than the ball's radius, 50 mm, on "
        "the way down after the first touch of the floor.",
        f"An epoch is {len(targets)} runs of {built.simulation.n_steps} steps with their gradients, by {steps}, in "
        "wall time with the threads of the machine; the paper's machine had four cores.",
    )
    caption = "Loss on the test targets; three throws of both networks under friction; misses of all test throws."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def draw(context: Context, name: str, trained: dict, missed: dict, tests: np.ndarray, words: dict) -> None:
    """Draw learning curves, throws and misses."""
    colours = {FRICTION: "C0", 0.0: "C3"}
    with figure(context.image(name), 8.6, 2.9) as drawn:
        left, middle, right = drawn.subplots(1, 3, width_ratios=(1, 1.5, 1))
        for c, one in trained.items():
            left.semilogy(range(len(one.tests)), one.tests, "o-", color=colours[c], ms=3, label=f"trained {words[c]}")
        left.set(xlabel="epochs", ylabel="loss [m²]", title="test targets, own friction")
        left.legend()
        for c in (FRICTION, 0.0):
            q = np.asarray(missed[c, FRICTION][1].q)
            for k in range(3):
                middle.plot(q[k, :, 0], q[k, :, 2], color=colours[c], lw=0.9)
        middle.plot(tests[:3, 0], tests[:3, 2], "kx", ms=6)
        middle.axhline(0.0, color="k", lw=1.0)
        middle.set(xlabel="x [m]", ylabel="z [m]", title="throws under friction", xlim=(-0.05, 1.6), ylim=(-0.05, 0.9))
        edges = np.linspace(0.0, 0.5, 26)
        for c in (FRICTION, 0.0):
            found = np.minimum(missed[c, FRICTION][0], edges[-1])
            right.hist(found, edges, color=colours[c], alpha=0.6, label=f"trained {words[c]}")
        right.axvline(0.05, color="k", lw=0.7, ls="--")
        right.set(xlabel="distance from the target [m]", ylabel="throws", title="misses under friction")
        right.legend()


ENTRY = Entry(
    "fig12",
    "Fig. 12 and 13: a network that throws",
    "A network with two hidden layers gives velocity and spin of a rigid ball that is to hit a target after one "
    "bounce; it is trained through the simulator, with friction and without, and tested with friction.",
    run,
)
