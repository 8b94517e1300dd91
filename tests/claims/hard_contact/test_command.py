"""Exact contact as a scene asks for it: results, states that go on, and what it refuses."""

import copy
import json

import numpy as np
import pytest
from faults.runs import same_run
from support.tiers import long_case

from add.commands.cli import main
from add.commands.simulate import simulate_scene
from add.contact import BodyContact
from add.errors import InputError
from add.hard_contact import Branch, CarriedContacts, ExactContact
from add.io.runfolder import RunFolder
from add.io.trajectory_file import read_point, read_run
from add.scene import apply_overrides, scene_from_dict

SCENE = {
    "schema": "add-scene/1",
    "name": "box and block thrown on a floor",
    "time": {"dt": 0.01, "steps": 60, "integrator": "bdf2"},
    "bodies": {
        "box": {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.2, 0.1]}, "mass": 1.0,
                "position": [0, 0, 0.12], "velocity": [0.6, 0.2, 0], "angular_velocity": [0, 2, 0]},
        "block": {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.05], "divisions": [1, 1, 1]},
                  "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 500, "viscosity": 2},
                  "position": [1, 0, 0.04], "velocity": [0.5, 0, 0]},
    },
    "couplings": {"rope": {"type": "cable", "a": {"at": [0, 0, 1.05]}, "b": {"body": "box", "at": [0, 0, 0.05]},
                           "length": 1.0, "stiffness": 50.0, "damping": 2.0}},
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"friction": 0.3, "friction_law": "exact"},
    "markers": {"corner": {"body": "box", "point": [0.1, 0.1, 0.05]}},
}  # fmt: skip
FIT = {
    "objective": [{"type": "point", "marker": "corner", "target": [0.3, 0, 0.1], "time": "end"}],
    "parameters": [{"path": "bodies.box.velocity", "components": [0]}],
    "optimizer": {"max_evaluations": 2},
}


def scene(**sections):
    return scene_from_dict(copy.deepcopy(SCENE) | copy.deepcopy(sections))


def test_results_have_the_contact_forces(tmp_path) -> None:
    """The forces in the folder are those that the steps solved for, and hold the bodies up in the end."""
    built, folder = scene().build(), RunFolder(tmp_path / "run")
    result = simulate_scene(scene(), folder)
    trajectory, data = built.run(), read_run(folder.trajectory)
    stepper, system = built.simulation.stepper, built.simulation.system
    assert isinstance(stepper, ExactContact)
    assert any(isinstance(term, BodyContact) for term in built.model.system.deciding)
    assert not any(isinstance(term, BodyContact) for term in system.deciding) and len(system.deciding) == 1
    np.testing.assert_array_equal(data.q, trajectory.q)
    seen = dict.fromkeys(("touching", "sticking", "slipping"), 0)
    assert not data.contact_force[0].any()
    start = system.dofs["box"].start
    for k, record in enumerate(trajectory.records):
        found = stepper.contact_forces(record, built.theta)
        np.testing.assert_array_equal(data.contact_force[k + 1], found.generalised)
        places, forces = data.contacts.at(k + 1)
        np.testing.assert_array_equal(places, found.places[found.on_rigid])
        # The resultant of the points is the force on the centre of mass.
        np.testing.assert_allclose(forces.sum(axis=0), found.generalised[start : start + 3], atol=1e-12)
        seen = {key: number + found.counts[key] for key, number in seen.items()}
        # The force on every coordinate is what the balance without contact lacks.
        kin, mu = record.kin, record.mu
        balance = system.on_branch(record.decisions).residual(kin, mu, built.theta)[0] - found.generalised
        assert np.abs(balance[system.partition.free]).max() < 1e-8
    assert result["contact"] == seen and seen["sticking"] and seen["slipping"]
    assert result["energy"]["contact"] == 0.0 and not data.energy["contact"].any()
    # The slack rope bears nothing: box and block weigh 1 kg and 0.25 kg.
    nodal = data.contact_force[-1, system.dofs["block"].slice].reshape(-1, 3)
    assert data.contact_force[-1, start + 2] == pytest.approx(9.81, rel=1e-6)
    assert nodal[:, 2].sum() == pytest.approx(0.25 * 9.81, rel=1e-3)
    assert result["couplings"]["slack"] > 0


@pytest.mark.parametrize("integrator", [long_case("bdf1"), "bdf2"])  # which has steps of both
def test_a_step_depends_on_its_state_alone(integrator: str) -> None:
    """From any state of a run, which carries what touched and with what force, the rest comes out again to the bit."""
    built = apply_overrides(scene(), {"time.integrator": integrator}).build()
    whole, orders = built.run(), set()
    impulses = 0
    for k in range(0, 60, 7):
        state = whole.state(k)
        carried = CarriedContacts.of(state.carry)
        assert (carried is None) == (k == 0)
        impulses += 0 if carried is None else int(np.count_nonzero(carried.branch != Branch.SEPARATE))
        again = built.run(state=state)
        np.testing.assert_array_equal(again.q, whole.q[k:])
        np.testing.assert_array_equal(again.v, whole.v[k:])
    orders = {len(record.alpha) for record in whole.records}
    assert impulses > 10 and orders == ({1} if integrator == "bdf1" else {1, 2})


def test_what_is_carried_counts() -> None:
    """Without what a state carries the step after it begins elsewhere: its impact would be a second one."""
    from dataclasses import replace

    from add.equations.kinematics import NO_CARRY

    built = scene().build()
    whole = built.run()
    fresh = [k for k in range(1, 60) if CarriedContacts.of(whole.state(k).carry).calm == 0]
    k = fresh[0]
    assert len(whole.records[k].alpha) == 1
    forgotten = built.run(state=replace(whole.state(k), carry=NO_CARRY), n_steps=k + 1)
    assert len(forgotten.records[0].alpha) == 2
    assert np.abs(forgotten.v[1] - whole.v[k + 1]).max() > 1e-6


@pytest.mark.parametrize("every", [long_case(1), 4])
def test_a_run_in_three_parts_is_the_whole_run(tmp_path, every: int) -> None:
    item = scene(output={"every": every})
    once = RunFolder(tmp_path / "whole")
    simulate_scene(item, once)

    def cut(folder, steps, resume):
        count = iter(range(10**6))

        def stop(state, record):
            if next(count) == steps - 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulate_scene(item, folder, progress=stop, resume=resume)

    folder = RunFolder(tmp_path / "cut")
    cut(folder, 13, False)
    carried = CarriedContacts.of(read_point(folder.trajectory).state.carry)
    assert carried is not None and carried.force.any()
    cut(folder, 22, True)
    result = simulate_scene(item, folder, resume=True)
    assert result["steps"] == 60
    same_run(once.path, folder.path)
    last, other = (read_run(run.trajectory).carry for run in (once, folder))
    np.testing.assert_array_equal(last.memory, other.memory)
    assert last.memory.size and [a.tolist() for a in last.marks] == [b.tolist() for b in other.marks]


@pytest.mark.parametrize("check", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["optimize", "check"])
def test_gradients_are_taken(check: bool, tmp_path, monkeypatch, capsys) -> None:
    """A box and a soft block thrown on the floor, by BDF2: with exact contact as with any law."""
    monkeypatch.chdir(tmp_path)
    short = {"time": SCENE["time"] | {"steps": 8}}
    (tmp_path / "fit.json").write_text(json.dumps(SCENE | FIT | short))
    with pytest.raises(SystemExit) as stop:
        main(["check", "--gradient", "fit.json"] if check else ["optimize", "fit.json"])
    told = capsys.readouterr()
    assert stop.value.code == 0, told.err
    assert ("passed" if check else "objective 0.0") in told.out


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"time": SCENE["time"] | {"initial": "equilibrium"}}, "time.initial"),
        ({"contact": SCENE["contact"] | {"pairs": [{"body": "box", "obstacle": "floor", "restitution": 0.5}]}},
         r"contact.pairs.0.restitution"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_when_read(sections, place) -> None:
    with pytest.raises(InputError, match=place):
        scene(**sections)


def test_plain_check_and_view_know_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.json").write_text(json.dumps(SCENE))
    with pytest.raises(SystemExit) as stop:
        main(["check", "box.json"])
    assert stop.value.code == 0 and "valid" in capsys.readouterr().out
