"""Combinations of parameters that the data hardly see, and which of some candidates would show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.inverse.experiment import Experiment
from add.inverse.fit_rows import FitRows
from add.inverse.problem import InverseProblem
from add.inverse.uncertainty import BLIND, Uncertainty
from add.objectives import Tracking, WeightedSum
from add.typing import FloatArray

#: A direction is weak if x is uncertain along it by this much, in typical changes of the parameters (their `scale`).
WEAK = 0.5
#: Weights of a combination below this share of the largest are left out when it is named.
NAMED = 0.15


@final
@dataclass(frozen=True, eq=False)
class Weak:
    """A direction of x along which the objective is flat.

    Attributes
    ----------
    direction : (n,) of length one
    spread : standard deviation of x along it; infinite where the data do not see it at all
    singular_value : |J direction| over the largest singular value
    """

    direction: FloatArray
    spread: float
    singular_value: float

    def members(self) -> list[int]:
        """Return the variables that take part, the largest first."""
        size = np.abs(self.direction)
        return [int(k) for k in np.argsort(-size) if size[k] >= NAMED * size.max()]


def weak_directions(found: Uncertainty) -> list[Weak]:
    """Return the weak directions, the worst first, from the singular values of J.

    A direction's spread is that of the covariance, which knows of correlated residuals; parameters on a bound are left
    out.
    """
    free = np.flatnonzero(~found.at_bound)
    slopes = np.concatenate([item.slopes for item in found.rows])[:, free]
    _, size, vt = np.linalg.svd(slopes, full_matrices=False)
    if not size.size or size[0] == 0.0:
        return []
    covariance = found.covariance[np.ix_(free, free)]
    out = []
    for value, row in zip(size, vt, strict=True):
        blind = value <= BLIND * size[0]
        spread = np.inf if blind else float(np.sqrt(max(row @ covariance @ row, 0.0)))
        if spread > WEAK:
            direction = np.zeros(found.at_bound.size)
            direction[free] = row * np.sign(row[np.abs(row).argmax()])
            out.append(Weak(direction, spread, float(value / size[0])))
    return sorted(out, key=lambda item: -item.spread)


def as_candidate(experiment: Experiment, tracking: Tracking, theta: FloatArray | None = None) -> Experiment:
    """Return an experiment that sees every sample of a tracking with weight one, be it recorded or not.

    With ``theta``, what it sees is that run: where a recording's place is a parameter, samples depend on it.
    """
    seen = replace(tracking, weights=np.ones(tracking.weights.shape), loss=None, reference=None)
    if theta is not None and tracking.placement is not None:
        if tracking.reference is not None:  # positions are seen here: where the recording lies is not known
            seen = replace(seen, placement=None)
        else:
            targets = seen.targets.copy()
            for state in experiment.simulation.run(theta).states():
                for frame in seen.frames(state, theta):
                    targets[frame] = tracking.placement.recorded(seen.observed(state, int(frame), theta), theta)
            seen = replace(seen, targets=targets)
    return replace(experiment, objective=WeightedSum((1.0,), (seen,)), tracking=seen)


def remedies(
    weak: Weak, problem: InverseProblem, candidates: Mapping[str, FitRows], rms: float
) -> list[tuple[str, float]]:
    """Return the spread along a weak direction with each candidate's samples added, the best first.

    Parameters
    ----------
    weak : Weak
    problem : of the fit
    candidates : name -> its rows, with weight one a sample
    rms : noise of a marker's coordinate [m]
    """
    known = 0.0 if np.isinf(weak.spread) else weak.spread**-2
    out = []
    for name, rows in candidates.items():
        more = float(((rows.slopes @ weak.direction) ** 2).sum()) / max(rms, 1e-300) ** 2
        together = known + more
        out.append((name, together**-0.5 if together > 0.0 else np.inf))
    return sorted(out, key=lambda item: item[1])
