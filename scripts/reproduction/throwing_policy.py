"""A network that throws: from a target to a velocity and a spin, trained through the simulator."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from add.jax import States, rollout
from add.scene.build.built import BuiltScene

jax.config.update("jax_enable_x64", True)

#: Targets lie in this box [m].
LOW, HIGH = np.array([0.8, -0.3, 0.1]), np.array([1.3, 0.3, 0.4])
#: A throw is these and the network's outputs, times these: velocity [m/s], angular velocity [rad/s].
BASE, SCALE = np.array([1.5, 0.0, -1.5, 0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 20.0, 20.0, 20.0])
WIDTH, BATCH, RATE, BETA1, BETA2 = 32, 5, 1e-2, 0.95, 0.999
RADIUS, SOFTNESS = 0.05, 0.05
#: A ball that passes its target closer than its radius hits it.
HIT = RADIUS


class Layer(NamedTuple):
    """Weights and shifts of one layer."""

    weights: Any
    shifts: Any


def network(rng: np.random.Generator) -> list[Layer]:
    """Return two hidden layers and the outputs, at random; the outputs begin small."""
    sizes = [3, WIDTH, WIDTH, 6]
    scale = [1.0, 1.0, 0.1]
    return [
        Layer(jnp.asarray(s * rng.normal(size=(a, b)) / np.sqrt(a)), jnp.zeros(b))
        for s, a, b in zip(scale, sizes[:-1], sizes[1:], strict=True)
    ]


def throw(layers: list[Layer], target: Any) -> Any:
    """Return velocity and angular velocity for a target."""
    x = (target - 0.5 * (LOW + HIGH)) / (0.5 * (HIGH - LOW))
    for weights, shifts in layers[:-1]:
        x = jax.nn.elu(x @ weights + shifts)
    return BASE + SCALE * (x @ layers[-1].weights + layers[-1].shifts)


def passes(states: States) -> tuple[Any, Any]:
    """Return which states count, those on the way down after the first touch, and the least height over the floor."""
    height = states.q[:, 2] - RADIUS
    after = jnp.cumsum(height <= 0.0) > 0
    return after & (states.v[:, 2] < 0.0) & (height > 0.0), jnp.min(height)


def miss(states: States, target: Any) -> Any:
    """Return the least distance on the way down after the bounce; over the whole run where there is none [m]."""
    distance = jnp.linalg.norm(states.q[:, :3] - target, axis=1)
    counts, _ = passes(states)
    return jnp.where(counts.any(), jnp.min(jnp.where(counts, distance, jnp.inf)), jnp.min(distance))


def loss(states: States, target: Any) -> Any:
    """Return the soft minimum of the squared distance over the states that count, and what lacks to a contact [m^2]."""
    squared = jnp.sum((states.q[:, :3] - target) ** 2, axis=1)
    counts, lowest = passes(jax.lax.stop_gradient(states))
    counts = jnp.where(counts.any(), counts, jnp.arange(counts.size) == counts.size - 1)
    least = -(SOFTNESS**2) * jax.nn.logsumexp(jnp.where(counts, -squared / SOFTNESS**2, -jnp.inf))
    least = least + SOFTNESS**2 * jnp.log(counts.sum())
    return least + jnp.where(lowest > 0.0, jnp.min(states.q[:, 2] - RADIUS) ** 2, 0.0)


@final
@dataclass(frozen=True)
class Training:
    """A network after its training.

    Attributes
    ----------
    layers : list of Layer
    losses : (batches,) of each batch before its step [m^2]
    tests : (epochs + 1,) mean loss on the test targets before training and after each epoch [m^2]
    seconds : (epochs,) of wall time, tests apart
    """

    layers: list[Layer]
    losses: list[float]
    tests: list[float]
    seconds: list[float]


def runs(built: BuiltScene, friction: float, n_steps: int | None = None) -> Any:
    """Return (network, target) -> states."""
    simulate = rollout(built, n_steps=n_steps)

    def states(layers: list[Layer], target: Any) -> States:
        thrown = throw(layers, target)
        inputs = {"bodies.ball.velocity": thrown[:3], "bodies.ball.angular_velocity": thrown[3:]}
        return simulate(inputs | {"contact.friction": jnp.asarray(friction)})

    return states


def train(built: BuiltScene, friction: float, targets: Any, tests: Any, epochs: int, seed: int) -> Training:
    """Train with Adam, five targets a batch, the rate halved after each epoch."""
    states = runs(built, friction)

    def mean_loss(layers: list[Layer], batch: Any) -> Any:
        return jnp.mean(jax.vmap(lambda target: loss(states(layers, target), target))(batch))

    value_and_grad, value = jax.jit(jax.value_and_grad(mean_loss)), jax.jit(mean_loss)

    @jax.jit
    def step(layers: Any, m: Any, s: Any, gradient: Any, k: Any, rate: Any) -> Any:
        m = jax.tree.map(lambda a, g: BETA1 * a + (1.0 - BETA1) * g, m, gradient)
        s = jax.tree.map(lambda a, g: BETA2 * a + (1.0 - BETA2) * g * g, s, gradient)
        new = jax.tree.map(
            lambda x, a, b: x - rate * (a / (1.0 - BETA1**k)) / (jnp.sqrt(b / (1.0 - BETA2**k)) + 1e-8), layers, m, s
        )
        return new, m, s

    rng = np.random.default_rng(seed)
    layers = network(rng)
    m = s = jax.tree.map(jnp.zeros_like, layers)
    losses, tested, seconds, k = [], [float(value(layers, tests))], [], 0
    for epoch in range(epochs):
        begin = time.perf_counter()
        for batch in rng.permutation(len(targets)).reshape(-1, BATCH):
            k += 1
            found, gradient = value_and_grad(layers, targets[batch])
            layers, m, s = step(layers, m, s, gradient, k, RATE * 0.5**epoch)
            losses.append(float(found))
        seconds.append(time.perf_counter() - begin)
        tested.append(float(value(layers, tests)))
    return Training(layers, losses, tested, seconds)


def misses(built: BuiltScene, friction: float, layers: list[Layer], targets: Any) -> tuple[np.ndarray, States]:
    """Return the misses (n,) of a network's throws [m], and their states."""
    states = runs(built, friction)
    found = jax.jit(jax.vmap(lambda target: states(layers, target)))(targets)
    return np.asarray(jax.vmap(miss)(found, targets)), found
