"""Times of the QCQP layer beside a differentiated cone program, in one process (Le Lidec 2021, Fig. 3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from add.cones import QCQPLayer
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, Skipped


def problem(rng: np.random.Generator, contacts: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return diagonal G with entries exp(U(-10, 10)), g, friction coefficients and normal impulses."""
    n = 2 * contacts
    return np.diag(np.exp(rng.uniform(-10.0, 10.0, n))), rng.normal(size=n), rng.uniform(0.1, 1.0, contacts), \
        rng.uniform(0.1, 1.0, contacts)  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it gave."""
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def cone_program_layer(contacts: int) -> Any:
    """Return cvxpylayers' layer of the same program, and torch.

    Raises
    ------
    Skipped
        If they are not installed.
    """
    try:
        import cvxpy
        import torch
        from cvxpylayers.torch import CvxpyLayer
    except ImportError as error:
        raise Skipped(f"this needs cvxpylayers and PyTorch: {error}") from None
    n = 2 * contacts
    x, root, g = cvxpy.Variable(n), cvxpy.Parameter((n, n)), cvxpy.Parameter(n)
    radius = cvxpy.Parameter(contacts, nonneg=True)
    limits = [cvxpy.norm(x[2 * i : 2 * i + 2]) <= radius[i] for i in range(contacts)]
    stated = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(root @ x) + g @ x), limits)
    return torch, CvxpyLayer(stated, parameters=[root, g, radius], variables=[x])


def run(context: Context) -> Outcome:
    """Time both on the same problems."""
    samples, rows, table = 10 if context.short else 100, [], {}
    for contacts in (1, 4) if context.short else (1, 4, 10, 20):
        torch, layer = cone_program_layer(contacts)
        rng = np.random.default_rng(contacts)
        times, apart = [], []
        for _ in range(samples + 3):
            G, g, mu, normal = problem(rng, contacts)
            weight = rng.normal(size=g.size)
            forward, own = timed(lambda G=G, g=g, mu=mu, normal=normal: QCQPLayer.of(G, g, mu, normal))
            backward, _ = timed(lambda own=own, weight=weight: own.pullback(weight))
            tensors = [torch.tensor(value, requires_grad=True) for value in (np.sqrt(G), g, mu * normal)]
            try:
                theirs, (x,) = timed(lambda layer=layer, tensors=tensors: layer(*tensors))
            except Exception as error:  # its solver gives up on some
                apart.append(np.nan)
                print(f"cone program: {error}")
                continue
            loss = (x * torch.tensor(weight)).sum()
            back, _ = timed(loss.backward)
            times.append((forward, backward, theirs, back))
            apart.append(float(np.abs(own.solution.impulse - x.detach().numpy()).max()))
        forward, backward, theirs, back = np.median(times[3:], axis=0)
        ratios = theirs / forward, back / backward
        key = ("hard5.forward", "hard5.backward") if contacts == 4 else (None, None)
        text = f"{1e6 * forward:.0f}; {1e6 * theirs:.0f}; {ratios[0]:.0f}"
        rows.append(Row(f"{contacts} contacts, forward: ours, cone program [us]; ratio", text, key[0]))
        text = f"{1e6 * backward:.0f}; {1e6 * back:.0f}; {ratios[1]:.1f}"
        rows.append(Row(f"{contacts} contacts, backward: ours, cone program [us]; ratio", text, key[1]))
        rows.append(Row(f"{contacts} contacts: median distance of the solutions", f"{np.nanmedian(apart):.1e}"))
        table[contacts] = [float(value) for value in (forward, backward, theirs, back)]
    with figure(context.image("hard_layers.png"), 4.5, 2.4) as drawn:
        axes = drawn.subplots()
        found = np.array(list(table.values()))
        labels = [f"{whose}, {way}" for whose in ("ours", "cone program") for way in ("forward", "backward")]
        for k, label in enumerate(labels):
            axes.loglog(list(table), 1e3 * found[:, k], "o-" if k < 2 else "s--", ms=3, label=label)
        axes.set(xlabel="contacts", ylabel="time [ms]")
        axes.legend()
    note = (
        f"Medians of {samples} problems with diagonal G, entries exp(U(-10, 10)). Ours is solved to round-off; the "
        "cone program (cvxpylayers, by diffcp) to its own tolerance: the distance of the solutions is its error. The "
        "published ratio is of 2021; the cone program is several times faster since. Wall time."
    )
    return Outcome(tuple(rows), {"hard_layers.png": "Times of both layers."}, (note,), {"seconds": table})


ENTRY = Entry(
    "hard5",
    "Hard contact: the friction layer against a cone program",
    "The QCQP of friction at given normal impulses, and its derivative, beside the differentiated cone program of "
    "cvxpylayers (an extra that is not installed with `add`), in one process on the same problems.",
    run,
)
