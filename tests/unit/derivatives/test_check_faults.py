"""The derivative checks find seeded faults."""

import numpy as np
import pytest

from add.equations.kinematics import Kinematics
from add.equations.term import Term
from add.testing import check_term


class _Spring(Term):
    """r = k (q - a v^2) and c: a term to be spoilt."""

    depends = "qv"
    fault = ""

    def pattern(self):
        index = np.arange(6)
        if self.fault == "pattern":
            index = index[:5]
        return index, index

    def residual(self, kin, theta, out):
        extra = 1e-3 * kin.a if self.fault == "depends" else 0.0
        value = theta[0] * kin.q**3 + theta[1] * kin.v**2 + extra
        if self.fault == "overwrite":
            out[:] = value
        else:
            out += value

    def jacobian(self, kin, theta, weights, data, slots):
        k = slots.size
        factor = 1.00001 if self.fault == "factor" else 1.0
        value = factor * weights.q * 3.0 * theta[0] * kin.q[:k] ** 2
        if self.fault != "weight":
            value = value + weights.v * 2.0 * theta[1] * kin.v[:k]
        if self.fault == "set":
            data[slots] = value
        elif self.fault == "slots":
            data[:k] += value
        else:
            np.add.at(data, slots, value)

    def parameter_vjp(self, kin, theta, lam, out):
        out[0] += lam @ kin.q**3
        out[1] += (2.0 if self.fault == "vjp" else 1.0) * (lam @ kin.v**2)

    def parameter_jvp(self, kin, theta, theta_dot, out):
        out += theta_dot[0] * kin.q**3
        if self.fault != "jvp":
            out += theta_dot[1] * kin.v**2
        if self.fault == "argument":
            theta_dot[0] = kin.q[0] = 0.0

    def energy(self, kin, theta):
        return theta[0] * float((kin.q**4).sum()) / (5.0 if self.fault == "energy" else 4.0)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("factor", "weight q"),
        ("weight", "weight v"),
        ("pattern", "pattern lacks"),
        ("depends", "reads a"),
        ("overwrite", "add"),
        ("set", "does not add"),
        ("slots", "slots"),
        ("vjp", "parameter_vjp by theta"),
        ("jvp", "parameter_jvp by theta"),
        ("argument", "argument"),
        ("energy", "energy"),
    ],
)
def test_checks_find_faults(fault: str, message: str, rng: np.random.Generator) -> None:
    term = _Spring()
    term.fault = fault
    v = np.zeros(6) if fault == "energy" else rng.normal(size=6)
    kin = Kinematics(rng.normal(size=6), v, rng.normal(size=6), 0.0, 0)
    theta = np.array([1.3, 0.0 if fault in ("", "energy") else 0.7])
    if not fault:
        found = check_term(term, kin, theta, rng=rng, energy=True)
        assert found.q > 0.0 and found.v == 0.0 and found.parameters == (0, 1)
        return
    with pytest.raises(AssertionError, match=message):
        check_term(term, kin, theta, rng=rng, energy=fault == "energy")
