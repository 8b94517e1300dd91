"""The nonsmooth equation of a contact: what it says, and its derivatives on every branch."""

from dataclasses import replace

import numpy as np
import pytest

from add.hard_contact import law
from add.hard_contact.law import Branch, Contacts

M = 40

READS = {
    Branch.SEPARATE: {"force"},
    Branch.STICK: {"gap", "normal", "velocity"},
    Branch.SLIP: {"force", "gap", "normal", "velocity"},
}


def contacts(branch: Branch, rng: np.random.Generator, c_f: float = 0.5) -> Contacts:
    """Random contacts well inside a branch."""
    n = rng.normal(size=(M, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    tangent = np.cross(n, rng.normal(size=(M, 3)))
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    normal = {Branch.SEPARATE: -1.0, Branch.STICK: 5.0, Branch.SLIP: 0.4}[branch]
    force = (normal + 0.1 * rng.random(M))[:, None] * n + 0.3 * tangent
    velocity = rng.normal(size=(M, 3)) * 0.1
    if branch is Branch.SLIP:
        velocity -= 2.0 * tangent
    gap = 0.01 * rng.normal(size=M)
    return Contacts(force, gap, n, velocity, np.full(M, c_f), 3.0 + rng.random(M), 1.0 + rng.random(M))


@pytest.mark.parametrize(
    ("branch", "c_f"), [*((branch, 0.5) for branch in Branch), (Branch.SEPARATE, 0.0), (Branch.SLIP, 0.0)]
)
@pytest.mark.parametrize("name", ["force", "gap", "normal", "velocity"])
def test_derivatives(branch: Branch, c_f: float, name: str, rng: np.random.Generator) -> None:
    """Without friction nothing sticks."""
    at = contacts(branch, rng, c_f)
    decided = law.decide(at)
    assert np.all(decided == branch)
    derivative = getattr(law.derivatives(at, decided), f"by_{name}")
    value, h = getattr(at, name), 1e-6
    dot = rng.normal(size=value.shape)
    ends = [replace(at, **{name: value + s * h * dot}) for s in (1.0, -1.0)]
    for end in ends:
        assert np.array_equal(law.decide(end), decided)
    numeric = (law.residual(ends[0], decided) - law.residual(ends[1], decided)) / (2.0 * h)
    exact = derivative * dot[:, None] if name == "gap" else np.einsum("mij,mj->mi", derivative, dot)
    if c_f:
        assert exact.any() == (name in READS[branch])
    np.testing.assert_allclose(exact, numeric, atol=1e-8)


def test_continuous_between_branches(rng: np.random.Generator) -> None:
    """phi does not jump where a contact changes its branch; a wrong branch would."""
    at = contacts(Branch.STICK, rng)
    other = contacts(Branch.SLIP, rng)
    apart = contacts(Branch.SEPARATE, rng)
    for a, b in ((at, other), (other, apart)):
        low, high = np.zeros(M), np.ones(M)
        ends = replace(b, normal=a.normal, rho_n=a.rho_n, rho_t=a.rho_t)

        def between(s: np.ndarray, a: Contacts = a, ends: Contacts = ends) -> Contacts:
            mixed = {
                name: (1.0 - s)[:, None] * getattr(a, name) + s[:, None] * getattr(ends, name)
                for name in ("force", "velocity")
            }
            return replace(a, gap=(1.0 - s) * a.gap + s * ends.gap, **mixed)

        first = law.decide(a)
        crosses = first != law.decide(ends)
        assert crosses.sum() > 5
        for _ in range(50):
            middle = 0.5 * (low + high)
            same = law.decide(between(middle)) == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        before, after = (law.residual(between(s), law.decide(between(s))) for s in (low, high))
        np.testing.assert_allclose(before[crosses], after[crosses], atol=1e-10)


def test_solutions() -> None:
    """phi = 0 at a separate, a sticking and a sliding contact that obey the law, and nowhere beside them."""
    n = np.tile([0.0, 0.0, 1.0], (5, 1))
    force = np.array([[0, 0, 0], [0.3, -0.2, 1], [-0.5, 0, 1], [-0.6, 0, 1], [0.5, 0, 1.0]])
    velocity = np.array([[1, 0, -1], [0, 0, 0], [2, 0, 0], [0, 0, 0], [2, 0, 0.0]])
    gap = np.array([0.1, 0, 0, 0, 0])
    at = Contacts(force, gap, n, velocity, np.full(5, 0.5), np.full(5, 7.0), np.full(5, 3.0))
    phi = law.residual(at, law.decide(at))
    assert law.decide(at).tolist() == [Branch.SEPARATE, Branch.STICK, Branch.SLIP, Branch.SLIP, Branch.SLIP]
    np.testing.assert_allclose(phi[:3], 0.0, atol=1e-15)
    # Beyond the limit; friction that drives.
    assert np.linalg.norm(phi[3]) == pytest.approx(0.1)
    assert np.linalg.norm(phi[4]) == pytest.approx(1.0)


def test_feasible(rng: np.random.Generator) -> None:
    at = contacts(Branch.SLIP, rng)
    force = law.feasible(at, np.full(M, Branch.SLIP))
    normal = np.einsum("mi,mi->m", at.normal, force)
    across = np.linalg.norm(force - normal[:, None] * at.normal, axis=1)
    assert np.all(normal >= 0.0)
    assert np.all(across <= 0.5 * normal * (1.0 + 1e-14))
    assert np.abs(force - at.force).max() > 1e-3
    assert not law.feasible(at, np.full(M, Branch.SEPARATE)).any()
