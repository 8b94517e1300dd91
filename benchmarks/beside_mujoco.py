"""Rollouts with their gradients beside MuJoCo at equal accuracy: a cart with a pole, a tossed cube, a double pendulum.

Each program runs its own model with smaller and smaller steps. The error of a gradient is that to the same model's
limit: of the cart both have the same one, solved apart to round-off; of the cube, whose contacts differ, each has its
own, a run with steps much smaller than the smallest that is measured. Compared is the time of value and gradient with
the fewest steps whose error, and that of all finer steps, is within a level. The double pendulum takes the same steps
in both, with the same error, and MuJoCo's has no gradient.
"""

from __future__ import annotations

from benchmarks import mujoco_cart, mujoco_cube, mujoco_pendulum
from benchmarks.ways import Sample, coarsest, measured

#: Relative errors of a gradient that are asked for.
LEVELS = (1e-1, 3e-2, 1e-2, 1e-3)


def beside_mujoco(quick: bool) -> dict[str, object] | str:
    """Measure both cases, or say why not."""
    try:
        import mujoco
    except ImportError:
        reason = "MuJoCo is not installed: pip install 'add-sim[robots]'"
        print(reason)
        return reason
    out: dict[str, object] = {"mujoco": mujoco.__version__}
    out["double pendulum"] = mujoco_pendulum.beside(mujoco, 0.5 if quick else 5.0)
    print(f"double pendulum: {out['double pendulum']}", flush=True)
    for title, case in (("cart with a pole", mujoco_cart), ("tossed cube", mujoco_cube)):
        samples = []
        for way in case.ways(mujoco, quick):
            samples.append(measured(way, 0.3 if quick else 1.0, 20))
            for sample in samples[-1]:
                print(f"{title:18}{sample.program:8}{sample.name:36}{sample.steps:8d} steps {sample.ms:10.2f} ms, "
                      f"value {sample.value_error:.1e}, gradient {sample.gradient_error:.1e}", flush=True)  # fmt: skip
        levels = [_compared(samples, level) for level in LEVELS]
        for row in levels:
            print(f"{title}: {row}", flush=True)
        out[title] = {"samples": [one._asdict() for way in samples for one in way], "levels": levels}
    return out


def _compared(samples: list[list[Sample]], level: float) -> dict[str, object]:
    """Return the quickest way of each program within a level, and the ratio of their times."""
    row: dict[str, object] = {"level": level}
    quickest = {}
    for way in samples:
        chosen = coarsest(way, level)
        if chosen is not None and (chosen.program not in quickest or chosen.ms < quickest[chosen.program].ms):
            quickest[chosen.program] = chosen
    for program, chosen in quickest.items():
        row[program] = {"way": chosen.name, "steps": chosen.steps, "ms": chosen.ms}
    if len(quickest) == 2:
        row["add_over_mujoco"] = quickest["add"].ms / quickest["MuJoCo"].ms
    return row
