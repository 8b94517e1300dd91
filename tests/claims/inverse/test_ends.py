"""How optimisers end: kinks, objectives that are not finite, and what L-BFGS-B says in words."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from inverse.test_honest_errors import TIMES, fitted

from add.commands.error_bars import _unfinished
from add.errors import SolverError
from add.inverse import LBFGSB, LevenbergMarquardt, Phase
from add.inverse.experiment import Jacobian, Residuals, WholeNormal
from add.inverse.optimizers import Starts
from add.inverse.optimizers.descent import _ended
from add.inverse.uncertainty import uncertainty

PHASES = (Phase("all", None, None, 20),)


@dataclass
class Sawtooth:
    """rho = x - 1 left of zero and x + 1 right of it: each side's slope leads to the other, to the same objective."""

    worst: float = 0.0
    x0 = np.array([-1.0])
    bounds = (np.array([-5.0]), np.array([5.0]))

    def index_of(self, names):
        return np.arange(1)

    def rho(self, x):
        return x + np.where(x < 0.0, -1.0, 1.0) + self.worst

    def residuals(self, x, window=None, observers=()):
        return Residuals(x, self.rho(x), {}, window)

    def normal_equations(self, point, free, *, backward):
        jacobian = self.jacobian(point, free)
        return WholeNormal(jacobian, jacobian.transposed(point.rho))

    def jacobian(self, point, free):
        return Jacobian(np.ones((1, 1)), sp.csr_array((0, 1)))

    def value(self, x, **options):
        return float(self.rho(x) @ self.rho(x)), {}

    def value_and_grad(self, x, **options):
        return self.value(x)[0], 2.0 * self.rho(x)


def levenberg(damping):
    return LevenbergMarquardt((Phase("all", None, None, 200),), damping, 0.0, 0.0)


def test_steps_that_jump_between_two_ends_end():
    """Before, they went on to the limit of evaluations, or until round-off damped them."""
    found = levenberg(1e-14).run(Sawtooth())
    assert "two ends of equal objective" in found.phases[0].status and not found.phases[0].success
    assert found.evaluations < 12 and found.value == pytest.approx(4.0)
    wide = levenberg(1e-2).run(Sawtooth())  # damped, they meet between the ends
    assert wide.value < 1.1 and "two ends" not in wide.phases[0].status


class Cliff(Sawtooth):
    """rho = x from 1 on and x + 5 below: slopes at the start promise all of the objective, and every step raises it."""

    x0 = np.array([1.0])

    def rho(self, x):
        return x + np.where(x < 1.0, 5.0, 0.0)


def test_steps_that_are_refused_until_they_are_short_are_no_minimum():
    """Before, damping made them so short that they promised less than the tolerance, which was called converged."""
    found = LevenbergMarquardt((Phase("all", None, None, 200),), 1e-3, 1e-8, 1e-8).run(Cliff())
    assert "no step leads down, though the slopes promise 100.0%" in found.phases[0].status
    assert not found.phases[0].success and found.value == 1.0


def test_a_kink_is_no_matter_of_tolerance(tmp_path, rng):
    """Slopes that ask for a step which does not lower the objective, and a fit that was ended too soon."""
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))])
    found = uncertainty(problem, x)
    assert _unfinished(problem, x, found) == []
    bent = tuple(replace(rows, residual=rows.residual + 0.02 * rows.slopes[:, 0]) for rows in found.rows)
    (text,) = _unfinished(problem, x, found._replace(rows=bent))
    assert "the objective is no lower there" in text and "lower the tolerance" not in text
    (text,) = _unfinished(problem, x + 0.02, uncertainty(problem, x + 0.02))
    assert "a lower tolerance)" in text
    found = uncertainty(problem, x + 0.02)
    long = tuple(replace(rows, residual=20.0 * rows.residual) for rows in found.rows)  # the step alone is too long
    (text,) = _unfinished(problem, x + 0.02, found._replace(rows=long))
    assert "a lower tolerance)" in text


@pytest.mark.parametrize("method", [levenberg(1e-3), LBFGSB(PHASES), LBFGSB(PHASES, starts=Starts(2, 0, 0.1, keep=1))])
@pytest.mark.parametrize("worst", [np.inf, np.nan, 1e200])
def test_what_is_not_finite_never_converges(method, worst):
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="not finite"):
        method.run(Sawtooth(worst))


def test_words_of_the_optimiser():
    """Of SciPy's versions, with and without underscores."""
    for said, meant in (
        ("CONVERGENCE: NORM OF PROJECTED GRADIENT <= PGTOL", "gradient is below its tolerance"),
        ("CONVERGENCE: RELATIVE REDUCTION OF F <= FACTR*EPSMCH", "the decrease is below its tolerance"),
        ("CONVERGENCE: REL_REDUCTION_OF_F_<=_FACTR*EPSMCH", "the decrease is below its tolerance"),
        ("STOP: TOTAL NO. OF F,G EVALUATIONS EXCEEDS LIMIT", "the limit of evaluations is reached"),
        ("STOP: TOTAL NO. OF ITERATIONS REACHED LIMIT", "the limit of evaluations is reached"),
        ("ABNORMAL: ", "no lower point along the gradient"),
        ("ABNORMAL_TERMINATION_IN_LNSRCH", "no lower point along the gradient"),
    ):
        assert meant in _ended(said)
