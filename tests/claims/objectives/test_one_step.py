"""Single steps from recorded states: exact gradients for any law, fits, and what does not fit."""

import numpy as np
import pytest
from support.impulse_scenes import CUBE, scene
from support.run_checks import check_gradient_of_run

from add.adjoint import evaluate
from add.commands.check_gradient import check_gradients
from add.commands.simulate import simulate_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.targets import judged_simulation, one_step_objective

STEPS = 40


def thrown(law: str = "impulse", **time) -> dict:
    """A cube that is thrown onto the floor, turns, slides and stops."""
    body = CUBE | {"position": [0, 0, 0.13], "velocity": [1.0, 0.3, -0.5], "angular_velocity": [2.0, 3.0, 1.0]}
    raw = scene(body, dt=0.005, steps=STEPS, friction=0.3)
    raw["time"] |= time
    raw["contact"] |= {"friction_law": law}
    if law != "impulse":
        raw["contact"] |= {"stiffness": 2e3, "damping": 2.0, "damping_ramp": 1e-3}
    return raw


def judged(tmp_path, raw: dict, noise: float = 0.0, speeds: bool = True, **weights) -> dict:
    """Return the scene with the objective, its own run being the recording, and friction as parameter."""
    run = scene_from_dict(raw).build().run()
    rng = np.random.default_rng(4)
    arrays = {"t": run.t, "q": run.q + noise * rng.normal(size=run.q.shape)}
    arrays |= {"v": run.v} if speeds else {}
    np.savez(tmp_path / "states.npz", **arrays)
    return raw | {
        "objective": [{"type": "one-step", "file": str(tmp_path / "states.npz"), **weights}],
        "parameters": [{"path": "contact.friction"}],
        "optimizer": {
            "method": "gauss-newton",
            "max_evaluations": 30,
            "objective_tolerance": 0.0,
            "gradient_tolerance": 1e-14,
        },
    }


@pytest.mark.parametrize(
    ("law", "time"), [("impulse", {}), ("linear", {"integrator": "bdf2"}), ("hybrid", {"integrator": "bdf1"})]
)
def test_gradient_by_every_law(law: str, time: dict, tmp_path) -> None:
    """Reverse = forward = replayed differences, where the truth is not: by every number, through contact."""
    raw = judged(tmp_path, thrown(law, **time), q=2.0, v=0.5, a=1e-4)
    other = scene_from_dict(raw | {"contact": raw["contact"] | {"friction": 0.2}})
    built = other.build()
    simulation = judged_simulation(other, built)
    objective = one_step_objective(other.objective[0], built, "objective.0")
    assert evaluate(simulation, objective)[0] > 0.0
    check_gradient_of_run(simulation, objective)


def test_truth_is_found_from_anywhere(tmp_path) -> None:
    """Without noise the objective is zero at the truth, whose steps are those of the recording."""
    raw = judged(tmp_path, thrown())
    for start in (0.05, 0.8):
        other = scene_from_dict(raw | {"parameters": [{"path": "contact.friction", "start": start, "scale": 1.0}]})
        x = other.build_optimizer().run(other.inverse_problem()).x
        assert x[0] == pytest.approx(0.3, abs=1e-6)


def test_recording_by_a_run(tmp_path) -> None:
    """`trajectory.h5` of a run, with steps of a fifth: those at the scene's own steps count."""
    raw = thrown()
    fine = scene_from_dict(raw | {"time": raw["time"] | {"dt": 0.001, "steps": 5 * STEPS}})
    folder = RunFolder(tmp_path / "run")
    simulate_scene(fine, folder)
    other = scene_from_dict(raw | {"objective": [{"type": "one-step", "file": str(folder.trajectory)}]})
    simulation = judged_simulation(other, other.build())
    assert simulation.n_steps == STEPS
    recorded = simulation.stepper.recorded
    np.testing.assert_array_equal(recorded.q, fine.build().run().q[::5])
    run = simulation.run()
    # Each prediction ends near the recorded state, and the next begins there, not at the prediction.
    assert 0.0 < np.abs(run.q[1:] - recorded.q[1:]).max() < 0.01


def test_check_of_the_command(tmp_path) -> None:
    raw = judged(tmp_path, thrown())
    (found,) = check_gradients(apply_overrides(scene_from_dict(raw), {"contact.friction": 0.2}), n_steps=15, free=False)
    assert found.passed and found.value > 0.0


def test_velocities_are_differences(tmp_path) -> None:
    """Where none are recorded."""
    raw = judged(tmp_path, thrown(), speeds=False)
    simulation = judged_simulation(scene_from_dict(raw), scene_from_dict(raw).build())
    recorded = simulation.stepper.recorded
    np.testing.assert_allclose(recorded.v[5], (recorded.q[5] - recorded.q[4]) / 0.005, atol=1e-12)


def test_bad_recordings(tmp_path) -> None:
    raw = judged(tmp_path, thrown())
    file = tmp_path / "states.npz"
    good = dict(np.load(file))
    for change, message in (
        ({"q": good["q"][:, :5]}, "no states of this scene"),
        ({"t": good["t"] * 1.3}, "needed at each step"),
        ({"t": good["t"][:1], "q": good["q"][:1], "v": good["v"][:1]}, "needed at each step"),
        ({"q": good["q"] * np.nan}, "not finite"),
    ):
        np.savez(file, **(good | change))
        with pytest.raises(InputError, match=message) as caught:
            scene_from_dict(raw).inverse_problem()
        assert caught.value.place == "objective.0.file"
    np.savez(file, t=good["t"])
    with pytest.raises(InputError, match="these arrays are needed"):
        scene_from_dict(raw).inverse_problem()
    file.write_text("no arrays")
    with pytest.raises(InputError, match="no arrays of numbers"):
        scene_from_dict(raw).inverse_problem()
    np.savez(file, **good)
    marker = {"c": {"body": "body", "center_of_mass": True}}
    both = [*raw["objective"], {"type": "point", "marker": "c", "target": [0, 0, 0], "time": "end"}]
    with pytest.raises(InputError, match="by 'one-step' alone"):
        scene_from_dict(raw | {"markers": marker, "objective": both}).inverse_problem()
