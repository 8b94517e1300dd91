"""Steps by hand: from the states of a run, from a given history, from coordinates that another program gives."""

import numpy as np
import pytest

from add.errors import InputError, SolverError
from add.scene import scene_from_dict

BALL = {
    "type": "rigid",
    "geometry": {"shape": "sphere", "radius": 0.05},
    "density": 500,
    "position": [0, 0, 0.06],
    "velocity": [0.4, 0, -0.5],
    "angular_velocity": [0, 3, 1],
}


def built(integrator):
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.004, "steps": 12, "integrator": integrator},
            "bodies": {"ball": BALL},
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
            "contact": {"stiffness": 2e3, "friction": 0.3, "damping": 1.0, "friction_law": "tanh"},
        }
    ).build()


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_steps_by_hand_are_those_of_the_run(integrator):
    simulation = built(integrator).simulation
    whole = simulation.run()
    assert whole.q[:, 2].min() < 0.05, "the ball has to touch the floor"
    state, assembler = simulation.state(whole.q[0], whole.v[0]), simulation.assembler()
    for k in range(12):
        state, record = simulation.step(state, assembler=assembler)
        assert np.array_equal(state.q[0], whole.q[k + 1])
        assert record.report.status.success
    assert state.t == whole.t[-1]


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_a_given_history_goes_on(integrator):
    simulation = built(integrator).simulation
    whole = simulation.run()
    state = simulation.state(whole.q[[7, 6]], whole.v[[7, 6]], step=7)
    assert np.array_equal(simulation.step(state)[0].q[0], whole.q[8])
    assert np.array_equal(simulation.run(state=state).q, whole.q[7:])
    with pytest.raises(InputError, match=r"n_steps: ends before the state .found 6; expected >= 7"):
        simulation.run(n_steps=6, state=state)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_a_run_that_leaves_every_scale_ends(integrator):
    """Each step of a body that falls for ever is solved: it ends where light would be slower, with what was before."""
    raw = {"schema": "add-scene/1", "time": {"dt": 1e-4, "steps": 70, "integrator": integrator, "substeps": "off"}}
    raw |= {"gravity": [0, 0, -5e11], "bodies": {"ball": BALL}}
    with pytest.raises(SolverError, match=r"^step \d+ \(t=0.00\d+ s\).*ball/position/z.*try weaker loads") as error:
        scene_from_dict(raw).build().run()
    assert 10 < error.value.trajectory.n_steps < 25
    assert 0.9e9 < -error.value.trajectory.v[-1, 2] <= 1e9
    raw["gravity"] = [0, 0, -1e11]
    assert scene_from_dict(raw).build().run().n_steps == 70


def test_one_pair_later_begins_with_a_step_of_bdf1():
    simulation = built("bdf2").simulation
    q, v = np.arange(6.0), np.ones(6)
    state = simulation.state(q, v, step=3)
    assert state.step == 3 and state.t == 3 * 0.004
    after, record = simulation.step(state)
    assert np.array_equal(record.alpha, [1.0]) and len(simulation.step(after)[1].alpha) == 2


@pytest.mark.parametrize("q", [np.zeros(5), np.zeros((3, 6)), np.zeros((1, 2, 6))])
def test_shapes_that_do_not_fit_are_refused(q):
    with pytest.raises(InputError, match=r"coordinates and velocities.*\(6,\) or \(2, 6\)"):
        built("bdf2").simulation.state(q, q)


def test_representations_are_short():
    some = built("bdf2")
    run = some.run(n_steps=2)
    for item in (some.scene, some, some.simulation, some.simulation.system, some.model, run, some.simulation.run):
        assert len(repr(item).splitlines()) <= 14, type(item)
        assert "ball" in repr(item) or item is run
    assert "<table>" in some._repr_html_() and "<table>" in some.scene._repr_html_()
