"""Runs and steps of a scene as differentiable functions of PyTorch, in double precision, with a batch axis.

    from add.torch import rollout

    throw = rollout(load_scene("scenes/bouncing_throw.json").build())
    velocity = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    ((throw({"bodies.ball.velocity": velocity}).q[-1, :3] - target) ** 2).sum().backward()

Derivatives are those of `add.scene.build.rollouts` and `add.scene.build.steps`; a batch has the numbers of a loop to
the bit. There are no second derivatives.
"""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import numpy as np

from add.errors import InputError
from add.scene.build.built import BuiltScene
from add.scene.build.inputs import STATE_Q, STATE_V, require_inputs, require_pair, require_step_number
from add.scene.build.rollouts import States
from add.scene.build.step_arguments import Bounds
from add.scene.build.step_batch import step_batch
from add.typing import BUILT, NAMED, FloatArray, as_numbers, require_count, require_kind

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise ImportError("PyTorch is not installed: pip install 'add-sim[torch]'") from error


__all__ = ["States", "rollout", "step"]

#: Name of an input -> its value, a tensor or what makes one.
Named = Mapping[str, Any]
#: Name of an input -> a row a member.
Arrays = dict[str, FloatArray]
#: Cotangents of coordinates and velocities -> those of the inputs.
Back = Callable[[FloatArray, FloatArray], Arrays]


def rollout(
    built: BuiltScene,
    *,
    n_steps: int | None = None,
    step: int | None = None,
    history: bool | None = None,
    workers: int | None = None,
    allow_failures: bool = False,
) -> Callable[[Named], States]:
    """Return inputs -> `States` of a run, or of a batch of runs.

    Parameters
    ----------
    built : BuiltScene
    n_steps, workers : see `add.scene.build.rollouts.rollouts`
    step : int, optional
        Number of steps behind given ``state.q`` and ``state.v``; without it they are (n,).
    history : bool, optional
        Whether these are (m, n) with a history, newest first, or (n,), each with a batch axis before it or without. It
        may stay open, but for two axes with ``step``: m rows may be a history, and m members.
    allow_failures : bool
        Whether states from where a member failed are NaN; otherwise a failure is an error.

    Returns
    -------
    callable
        Of a dictionary under the names that `add.scene.build.rollouts.rollouts` takes. An input may have a batch axis
        before its own; one that has none is shared by the batch.

    Raises
    ------
    InputError
        By the callable: if a name is no input, a shape does not fit, a number is not finite or impossible, or a tensor
        is not of double precision.
    SolverError
        By the callable: if a step fails.
    """
    require_kind(built, BuiltScene, "built", BUILT)
    require_count(built.simulation.n_steps if n_steps is None else n_steps, "n_steps")
    require_count(1 if workers is None else workers, "workers", 1)
    n = built.simulation.system.n
    m = built.simulation.stepper.n_history
    if history and step is None:
        raise InputError(
            "a state with a history has steps behind it", place="step", found="None", expected="their number"
        )

    def run(rows: Arrays) -> tuple[FloatArray, FloatArray, Back]:
        batch = built.rollouts(rows, n_steps=n_steps, step=step, workers=workers)
        if not allow_failures:
            batch.require_whole()
        return batch.batch.q, batch.batch.v, batch.pullback

    def call(inputs: Named) -> States:
        require_inputs(inputs)
        known = history
        if known is None and step is not None:
            known = _has_history(inputs, m, n)
        state = (m, n) if known else (n,)
        shapes = {name: state if name in (STATE_Q, STATE_V) else built.numbers.place(name).shape for name in inputs}
        return _called(run, inputs, shapes)

    return call


def _has_history(inputs: Named, m: int, n: int) -> bool:
    """Return whether a given state has a history (m, n), by its axes.

    Raises
    ------
    InputError
        Where m rows may be a history, and m members.
    """
    shapes = [np.shape(inputs[name]) for name in (STATE_Q, STATE_V) if name in inputs]
    if (m, n) in shapes and max(map(len, shapes)) == 2:
        raise InputError(
            "with `step` these may be a state with its history, or states of several members", place=STATE_Q,
            found=f"shape ({m}, {n})", expected="history=True, or history=False",
        )  # fmt: skip
    return any(len(shape) == 3 for shape in shapes)


def step(
    built: BuiltScene,
    controls: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
    bounds: Mapping[str, Bounds] | None = None,
) -> Callable[..., States]:
    """Return (state, k, control, inputs) -> `States` after step k + 1.

    Parameters
    ----------
    built : BuiltScene
    controls, inputs, bounds : see `add.scene.build.steps.StepFunction`

    Returns
    -------
    callable
        Of the pairs of a state (`States` of (m, n), newest first), the number k of steps behind it, and dictionaries
        under the names of controls and inputs; each with a batch axis or without.

    Raises
    ------
    InputError
        If a name is none; by the callable also as that of `rollout`, or if the steps hand on more than pairs.
    SolverError
        By the callable: if a step fails.
    """
    require_kind(built, BuiltScene, "built", BUILT)
    function = built.step_function(tuple(controls), tuple(inputs), bounds)
    function.require_pairs()
    m, n = built.simulation.stepper.n_history, built.simulation.system.n
    own = {STATE_Q: (m, n), STATE_V: (m, n)}
    own |= {f"signals.{name}": place.shape for name, place in function.arguments.places(0).items()}
    own |= {name: place.shape for name, place in function.arguments.inputs.places.items()}

    def call(state: Any, k: int, control: Named | None = None, inputs: Named | None = None) -> States:
        require_step_number(k, isinstance(k, (int, np.integer)))
        for place, named in (("control", control), ("inputs", inputs)):
            require_kind(named, (Mapping, NoneType), place, NAMED)
        numbers = dict(inputs or {})
        signals = {f"signals.{name}": value for name, value in (control or {}).items()}
        function.arguments.require_names(tuple(control or ()), tuple(numbers))

        def run(rows: Arrays) -> tuple[FloatArray, FloatArray, Back]:
            behind = np.full(rows[STATE_Q].shape[0], k, dtype=np.int64)
            rows_of = {name.removeprefix("signals."): rows[name] for name in signals}
            batch = step_batch(
                function, rows[STATE_Q], rows[STATE_V], behind, rows_of, {name: rows[name] for name in numbers}
            )

            def back(q_bar: FloatArray, v_bar: FloatArray) -> Arrays:
                q, v, by_control, by_input = batch.pullback(q_bar, v_bar)
                return {STATE_Q: q, STATE_V: v, **{f"signals.{n}": bar for n, bar in by_control.items()}, **by_input}

            return batch.q, batch.v, back

        require_pair(state)
        given = {STATE_Q: state[0], STATE_V: state[1], **signals, **numbers}
        return _called(run, given, {name: own[name] for name in given})

    return call


def _called(
    run: Callable[[Arrays], tuple[FloatArray, FloatArray, Back]], inputs: Named, shapes: Mapping[str, tuple[int, ...]]
) -> States:
    """Call a function of rows, one a member, with inputs that have a batch axis before their own shapes or none."""
    tensors = {name: _double(name, value) for name, value in inputs.items()}
    sizes = {}
    for name, tensor in tensors.items():
        own = tuple(shapes[name])
        if tuple(tensor.shape) != own:
            if tuple(tensor.shape[1:]) != own or tensor.ndim != len(own) + 1:
                raise InputError(
                    "the values of an input do not fit", place=name, found=f"shape {tuple(tensor.shape)}",
                    expected=f"shape {own}, or with a batch axis before it",
                )  # fmt: skip
            sizes[name] = tensor.shape[0]
    if len(set(sizes.values())) > 1 or 0 in sizes.values():
        raise InputError("batch axes differ, or are empty", found=f"{sizes}", expected="equal numbers above zero")
    b = next(iter(sizes.values()), 1)
    rows = [tensor if name in sizes else tensor.expand(b, *tensor.shape) for name, tensor in tensors.items()]
    q, v = _Host.apply(run, tuple(tensors), *rows)
    return States(q, v) if sizes else States(q[0], v[0])


def _double(name: str, value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        return torch.as_tensor(as_numbers(name, value))
    if value.dtype != torch.float64:
        raise InputError(
            "the simulator computes in double precision", place=name, found=str(value.dtype),
            expected="torch.float64: tensor.double()",
        )  # fmt: skip
    return value.cpu()


class _Host(torch.autograd.Function):
    """A function of the simulator, which runs on the host."""

    @staticmethod
    def forward(  # type: ignore[override]
        context: Any, run: Callable[[Arrays], tuple[FloatArray, FloatArray, Back]], names: tuple[str, ...], *rows: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the members."""
        arrays = {name: np.ascontiguousarray(row.detach().numpy()) for name, row in zip(names, rows, strict=True)}
        q, v, context.back = run(arrays)
        context.names = names
        return torch.from_numpy(q), torch.from_numpy(v)

    @staticmethod
    @once_differentiable
    def backward(context: Any, q_bar: torch.Tensor, v_bar: torch.Tensor) -> tuple[Any, ...]:
        """Pull cotangents back to the rows."""
        bars = context.back(q_bar.numpy(), v_bar.numpy())
        return None, None, *(torch.from_numpy(np.ascontiguousarray(bars[name])) for name in context.names)
