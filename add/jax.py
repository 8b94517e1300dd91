"""Runs and steps of a scene as differentiable functions of JAX: gradients, `jit`, `vmap` as a batch.

    from add.jax import rollout

    throw = rollout(load_scene("scenes/bouncing_throw.json").build())
    loss = lambda velocity: jnp.sum((throw({"bodies.ball.velocity": velocity}).q[-1, :3] - target) ** 2)
    jax.value_and_grad(loss)(velocity)

The simulator runs on the host by `jax.pure_callback`; derivatives are those of `add.scene.build.rollouts` and
`add.scene.build.steps`, and a batch has the numbers of a loop to the bit. An error inside compiled code comes as
JAX's own error, whose text has that of `add`.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.scene.build.built import BuiltScene
from add.scene.build.inputs import STATE_Q, STATE_V, Inputs, require_inputs, require_pair, require_step_number
from add.scene.build.rollouts import SceneBatch, States
from add.scene.build.step_arguments import Bounds
from add.scene.build.step_batch import StepBatch, step_batch
from add.scene.build.steps import StepFunction
from add.typing import BUILT, NAMED, FloatArray, as_numbers, require_count, require_kind

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("JAX is not installed: pip install 'add-sim[jax]'") from error


__all__ = ["States", "rollout", "step"]

#: Name of an input -> its value.
Named = Mapping[str, Any]


def rollout(
    built: BuiltScene,
    *,
    n_steps: int | None = None,
    step: int | None = None,
    workers: int | None = None,
    keep: int = 1,
    allow_failures: bool = False,
) -> Callable[[Named], States]:
    """Return inputs -> `States` of a run, to be differentiated in reverse mode, compiled and mapped over.

    Parameters
    ----------
    built : BuiltScene
    n_steps, step, workers : see `add.scene.build.rollouts.rollouts`
    keep : int
        How many runs, or batches of runs, are kept for the way back. One that is gone is run again, to the bit.
    allow_failures : bool
        Whether states from where a member failed are NaN; otherwise a failure is an error.

    Returns
    -------
    callable
        Of a dictionary of arrays under the names that `add.scene.build.rollouts.rollouts` takes, without rows.

    Raises
    ------
    InputError
        By the callable: if a name is no input, a shape does not fit, a number is not finite or impossible, or JAX
        computes with 32 bits.
    """
    require_kind(built, BuiltScene, "built", BUILT)
    require_count(built.simulation.n_steps if n_steps is None else n_steps, "n_steps")
    require_count(1 if workers is None else workers, "workers", 1)
    runs = _Runs(built, keep, allow_failures, {"n_steps": n_steps, "step": step, "workers": workers})
    n = built.simulation.system.n
    result = jax.ShapeDtypeStruct(((built.simulation.n_steps if n_steps is None else n_steps) + 1, n), np.float64)

    run = _on_host(runs, result)

    def call(inputs: Named) -> States:
        require_inputs(inputs)
        arrays = _arrays(inputs)
        places = Inputs.of(built.simulation, built.numbers, {name: value.shape for name, value in arrays.items()})
        if not any(isinstance(value, jax.core.Tracer) for value in arrays.values()):
            known = {name: np.asarray(value) for name, value in arrays.items()}
            values, state = places.scene_values(known), places.initial(known, step)
            if state is not None:
                places.require_motion(state, built.numbers.ties.forward(values))
        return run(jnp.zeros(()), arrays)

    return call


def step(
    built: BuiltScene,
    controls: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
    bounds: Mapping[str, Bounds] | None = None,
) -> Callable[..., States]:
    """Return (state, k, control, inputs) -> `States` after step k + 1, to be differentiated in reverse mode.

    Parameters
    ----------
    built : BuiltScene
    controls, inputs, bounds : see `add.scene.build.steps.StepFunction`

    Returns
    -------
    callable
        Of the pairs of a state (`States` of (m, n), newest first), the number k of steps behind it, and dictionaries
        under the names of controls and inputs. k may be traced.

    Raises
    ------
    InputError
        If a name is none; by the callable also as that of `rollout`, or if the steps hand on more than pairs.
    """
    require_kind(built, BuiltScene, "built", BUILT)
    function = built.step_function(tuple(controls), tuple(inputs), bounds)
    function.require_pairs()
    m, n = built.simulation.stepper.n_history, built.simulation.system.n
    take = _on_host(_Steps(function), jax.ShapeDtypeStruct((m, n), np.float64))

    def call(state: Any, k: Any, control: Named | None = None, inputs: Named | None = None) -> States:
        require_pair(state)
        pairs = States(*(_double(name, part) for name, part in zip((STATE_Q, STATE_V), state, strict=True)))
        if not pairs.q.shape == pairs.v.shape == (m, n):
            raise InputError(
                "these are no pairs of coordinates and velocities of this system", place="state",
                found=f"shapes {pairs.q.shape} and {pairs.v.shape}", expected=f"({m}, {n}) both",
            )  # fmt: skip
        named = _arrays(control or {}), _arrays(inputs or {})
        function.arguments.require(*({name: value.shape for name, value in group.items()} for group in named))
        require_step_number(k, jnp.issubdtype(jnp.asarray(k).dtype, jnp.integer))
        return take(jnp.asarray(k, dtype=jnp.int64), (pairs, *named))

    return call


def _on_host(host: "_Runs | _Steps", out: jax.ShapeDtypeStruct) -> Callable[[Any, Any], States]:
    """Return (lead, inputs) -> `States` on the host; ``lead`` has the axes that are mapped over, and no derivative."""

    @jax.custom_vjp
    def run(lead: Any, inputs: Any) -> States:
        return States(*jax.pure_callback(host.forward, (out, out), lead, inputs, vmap_method="broadcast_all"))

    def backward(arguments: Any, bars: States) -> tuple[None, Any]:
        shapes = jax.tree.map(lambda value: jax.ShapeDtypeStruct(value.shape, np.float64), arguments[1])
        return None, jax.pure_callback(host.backward, shapes, *arguments, *bars, vmap_method="broadcast_all")

    run.defvjp(lambda *arguments: (run(*arguments), arguments), backward)
    return run


def _arrays(inputs: Named) -> dict[str, Any]:
    require_kind(inputs, Mapping, "inputs", NAMED)
    return {name: _double(name, value) for name, value in inputs.items()}


def _double(name: str, value: Any) -> Any:
    if not jax.config.read("jax_enable_x64"):
        raise InputError(
            "the simulator computes with 64 bits, and JAX with 32: call jax.config.update('jax_enable_x64', True) at "
            "the start of the program"
        )
    if not isinstance(value, jax.Array):
        value = as_numbers(name, value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise InputError("these are no numbers", place=name, found=str(value.dtype), expected="real numbers")
    return jnp.asarray(value, dtype=jnp.float64)


def _members(inputs: Mapping[str, Any], lead: Any) -> dict[str, FloatArray]:
    """Return arrays with the axes that are mapped over, those of ``lead``, made one."""
    axes = np.ndim(lead)
    arrays = {name: np.asarray(value, dtype=float) for name, value in inputs.items()}
    return {name: array.reshape((-1, *array.shape[axes:])) for name, array in arrays.items()}


@final
class _Runs:
    """Runs on the host, the latest kept for the way back; callbacks may come from several threads."""

    def __init__(self, built: BuiltScene, keep: int, allow_failures: bool, options: dict[str, Any]) -> None:
        self._built, self._keep, self._allow, self._options = built, keep, allow_failures, options
        self._kept: OrderedDict[bytes, SceneBatch] = OrderedDict()
        self._lock = threading.Lock()

    def forward(self, lead: Any, inputs: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Return the states of the members; ``lead`` has the axes that are mapped over, and no others."""
        batch = self._run(_members(inputs, lead)).batch
        shape = (*np.shape(lead), *batch.q.shape[1:])
        return batch.q.reshape(shape), batch.v.reshape(shape)

    def backward(self, lead: Any, inputs: dict[str, Any], q_bar: Any, v_bar: Any) -> dict[str, FloatArray]:
        """Return the cotangents of the inputs."""
        runs = self._run(_members(inputs, lead))
        bars = _members({"q": q_bar, "v": v_bar}, lead)
        out = runs.pullback(bars["q"], bars["v"])
        return {name: bar.reshape((*np.shape(lead), *bar.shape[1:])) for name, bar in out.items()}

    def _run(self, rows: dict[str, FloatArray]) -> SceneBatch:
        digest = hashlib.blake2b()
        for name, value in rows.items():
            digest.update(f"{name} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes())
        key = digest.digest()
        with self._lock:
            batch = self._kept.pop(key, None)
        if batch is None:
            batch = self._built.rollouts(rows, **self._options)
            if not self._allow:
                batch.require_whole()
        with self._lock:
            self._kept[key] = batch
            while len(self._kept) > self._keep:
                self._kept.popitem(last=False)
        return batch


@final
class _Steps:
    """Steps on the host; the way back takes them again, to the bit. Callbacks may come from several threads."""

    def __init__(self, function: StepFunction) -> None:
        self._function = function
        self._lock = threading.Lock()

    def forward(self, k: Any, inputs: Any) -> tuple[FloatArray, FloatArray]:
        """Return the pairs after the step; k has the axes that are mapped over, and no others."""
        with self._lock:
            batch = self._taken(k, *inputs)
        return batch.q.reshape(np.shape(inputs[0].q)), batch.v.reshape(np.shape(inputs[0].q))

    def backward(self, k: Any, inputs: Any, q_bar: Any, v_bar: Any) -> Any:
        """Return the cotangents of the pairs before, of controls and of inputs."""
        bars = _members({"q": q_bar, "v": v_bar}, k)
        with self._lock:
            q, v, *named = self._taken(k, *inputs).pullback(bars["q"], bars["v"])
        return jax.tree.map(lambda value, bar: bar.reshape(np.shape(value)), inputs, (States(q, v), *named))

    def _taken(self, k: Any, pairs: States, control: Any, inputs: Any) -> StepBatch:
        behind, (q, v) = np.asarray(k, dtype=np.int64).ravel(), _members(pairs._asdict(), k).values()
        return step_batch(self._function, q, v, behind, _members(control, k), _members(inputs, k))
