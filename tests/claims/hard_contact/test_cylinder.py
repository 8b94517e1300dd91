"""The cylinder of ADD's Fig. 2 with hard contact; `scripts/hard_reference.py` has the whole comparison."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.hard_contact_cases import check_contacts, exact

from add.hard_contact import Branch, ExactOptions, with_exact_contact
from scripts import hard_reference
from scripts.hard_reference import SCENE, build, measure, shares

GRAVITY = np.array([3.3552, 0.0, -9.2184])


def _mass(built) -> float:
    inertia = built.model.system.terms[0]
    return float(np.sum(inertia.mass[:, 2] * built.theta[inertia.density]))


def test_landing() -> None:
    """Free fall, impact and the slide after it: all laws at every step, and the momentum of the whole body."""
    built = build(SCENE, "linear", None, 1)
    found = exact(built.simulation, n_steps=32)
    assert check_contacts(found, built.theta) > 200
    mass, (first, share) = _mass(built), shares(built)
    assert mass == pytest.approx(0.0084, rel=0.01)
    assert first == 0
    for record in found.records:
        change = mass * share @ record.kin.a.reshape(-1, 3)
        np.testing.assert_allclose(change, mass * GRAVITY + record.force.sum(axis=0), atol=1e-9)
    assert found.records[-1].count(Branch.SLIP) > 10
    assert all(record.report.status.success for record in found.records)
    assert max(record.report.iterations for record in found.records) < 60


def test_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A short run: table, file, and a penalty that is close when it is stiff."""
    out = tmp_path / "runs.npz"
    arguments = ["--steps", "22", "--laws", "linear", "--stiffness", "1e2", "1e4", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["hard_reference.py", *arguments])
    hard_reference.main()
    printed = capsys.readouterr().out
    assert printed.count("| linear |") == 2
    with np.load(out) as kept:
        assert kept["hard/centre"].shape == (23, 3)
        off = [np.abs(kept[f"linear_{k}/centre"] - kept["hard/centre"]).max() for k in ("100", "10000")]
    print(f"largest distance from the hard run at 1e2 and 1e4 N/m: {off} m")
    assert off[1] < 0.1 * off[0]


@pytest.mark.slow
def test_rest_on_the_incline() -> None:
    """It ends at rest, where penalties would leave it at infinite stiffness: they are off by a share of 1/k_n."""
    built = build(SCENE, "linear", None, 1)
    found = exact(built.simulation)
    check_contacts(found, built.theta)
    assert found.t[-1] == pytest.approx(2.5)
    _, share = shares(built)
    centre = share @ found.q[-1].reshape(-1, 3)
    print(f"ends at {centre}, fastest coordinate {np.abs(found.v[-1]).max():.1e} m/s")
    np.testing.assert_allclose(centre, [0.017141, 0.0, -0.040083], atol=1e-5)
    # The authors' program with hybrid friction, which creeps no more but sinks in by the weight over 74 k_n.
    np.testing.assert_allclose(centre, [0.0172, 0.0, -0.0401], atol=1e-4)
    assert np.abs(found.v[-1]).max() < 1e-9
    last = found.records[-1]
    assert last.count(Branch.STICK) == last.branch.size
    assert np.linalg.norm(last.tangential_velocity, axis=1).max() < 1e-12
    np.testing.assert_allclose(last.force.sum(axis=0), -_mass(built) * GRAVITY, atol=1e-8)

    runs = {k: measure(SCENE, "linear", k) for k in (1e2, 1e3, 1e4)}
    off = {k: run.centre[-1] - centre for k, run in runs.items()}
    print({k: (x, np.linalg.norm(runs[k].velocity[-1])) for k, x in off.items()})
    for softer, stiffer in ((1e2, 1e3), (1e3, 1e4)):
        assert off[softer][0] / off[stiffer][0] == pytest.approx(10.0, rel=0.2)
    # It rests deeper by its weight over the stiffness of all nodes that bear it.
    depth = _mass(built) * 9.2184 / (last.branch.size * 1e2)
    assert -off[1e2][2] == pytest.approx(depth, rel=0.2)


def test_settings_are_kept() -> None:
    """A run takes step, order and tolerances from the scene's stepper."""
    simulation = build(SCENE, "linear", None, 2).simulation
    stepper = with_exact_contact(simulation).stepper
    assert stepper.step_size == pytest.approx(0.0025)
    assert stepper.bdf_order == 1
    assert stepper.options.newton == simulation.stepper.newton
    other = replace(stepper.options, gap=1e-9)
    options = ExactOptions(gap=1e-9, newton=stepper.options.newton)
    assert with_exact_contact(simulation, options).stepper.options == other
