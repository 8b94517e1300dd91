"""Steps of an impact and what they do to its restitution: the rule against runs, and what is said of it."""

import json

import numpy as np
import pytest
from support.tiers import long_case

from add.commands.pair_logs import ImpactLog
from add.commands.report import write_report
from add.commands.report_texts import warn_of_contacts
from add.contact.restitution import clipped_damping_from_restitution, damping_from_restitution
from add.model.impacts import Impact, impact_duration, restitution_error, restitution_of_law
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.doubts import warn

MASS, K_N, SPEED = 0.5, 1e5, 6.3
#: Without any ramp the force jumps, and some steps have no solution; this one is a hundredth of the depth.
RAMP = 1e-4


def _shortest(built: BuiltScene) -> list[Impact]:
    """Return the shortest impact of every pair that meets in a run."""
    log = ImpactLog()
    log.add(built, built.run(), built.theta)
    return log.shortest(built, built.theta)


def _bounce(
    e: float,
    dt: float,
    order: int = 2,
    phase: float = 0.0,
    ramp: float = RAMP,
    adhesive_damping: bool = False,
    steps: int = 80,
) -> BuiltScene:
    """A ball without weight that meets the floor after three steps and a part of one."""
    height = 0.05 + SPEED * dt * (3.0 + phase)
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": dt, "steps": steps, "integrator": f"bdf{order}"},
            "gravity": [0, 0, 0],
            "bodies": {
                "ball": {
                    "type": "rigid",
                    "geometry": {"shape": "sphere", "radius": 0.05},
                    "mass": MASS,
                    "position": [0, 0, height],
                    "velocity": [0, 0, -SPEED],
                }
            },
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
            "contact": {
                "stiffness": K_N,
                "friction": 0,
                "damping_ramp": ramp,
                "adhesive_damping": adhesive_damping,
                "pairs": [{"body": "ball", "obstacle": "floor", "restitution": e}],
            },
        }
    ).build()


def _duration(e: float) -> float:
    return impact_duration(clipped_damping_from_restitution(e, K_N, MASS), K_N, MASS)


@pytest.mark.parametrize("e", [0.05, 0.2, 0.39, 0.8, 1.0])
@pytest.mark.parametrize("adhesive_damping", [False, True])
def test_duration(e: float, adhesive_damping: bool) -> None:
    """That of the formula is that of a run with steps as small as a four-hundredth of it."""
    formula = damping_from_restitution if adhesive_damping else clipped_damping_from_restitution
    duration = impact_duration(formula(e, K_N, MASS), K_N, MASS, adhesive_damping=adhesive_damping)
    built = _bounce(e, duration / 400, adhesive_damping=adhesive_damping, steps=420)
    (impact,) = _shortest(built) or [None]
    assert impact is not None
    assert impact.steps == pytest.approx(400, abs=3)
    assert impact.speed == pytest.approx(SPEED)


def test_duration_where_overdamped() -> None:
    """The formulas of both sides of zeta = 1 meet there."""
    critical = 2.0 * np.sqrt(K_N * MASS)
    low, middle, high = (impact_duration(critical * z, K_N, MASS) for z in (1.0 - 1e-6, 1.0, 1.0 + 1e-6))
    assert low == pytest.approx(middle, rel=1e-5)
    assert high == pytest.approx(middle, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "e", "order"),
    [
        (pytest.param if (k + j + order) % 2 else long_case)(n, e, order)
        for k, n in enumerate((6, 9, 20, 60))
        for j, e in enumerate((0.1, 0.39, 0.7, 0.95))
        for order in (1, 2)
    ],
)
def test_error_of_restitution(order: int, e: float, n: int) -> None:
    """It depends on where in a step the impact begins, stays within the rule, and is not far below it."""
    errors = []
    for phase in np.linspace(0.0, 1.0, 9)[:-1]:
        run = _bounce(e, _duration(e) / n, order, phase, steps=3 * n + 20).run()
        errors.append(run.v[-1, 2] / SPEED - e)
    bound = restitution_error(e, n, order)
    assert max(map(abs, errors)) <= bound
    assert max(map(abs, errors)) >= 0.25 * bound
    assert np.ptp(errors) > 1e-4


@pytest.mark.parametrize("ramp", [1e-4, 0.002, 0.01])
def test_restitution_of_law(ramp: float) -> None:
    """A ramp raises the restitution whatever the step; what is said of it is that of a run with small steps."""
    damping = clipped_damping_from_restitution(0.39, K_N, MASS)
    law = restitution_of_law(SPEED, damping, K_N, MASS, ramp=ramp)
    run = _bounce(0.39, _duration(0.39) / 1500, ramp=ramp, steps=2500).run()
    assert run.v[-1, 2] / SPEED == pytest.approx(law, abs=1e-3)
    assert law == pytest.approx(0.39, abs=2e-3) if ramp == RAMP else law > 0.40
    assert restitution_of_law(SPEED, damping, K_N, MASS) == pytest.approx(0.39, abs=1e-5)


def test_few_steps_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Before a run by the formula, after it by what it had; with enough steps neither warns."""
    few, many = _bounce(0.39, _duration(0.39) / 9), _bounce(0.39, _duration(0.39) / 40)
    (text,) = warn({"few": few})
    assert text in caplog.text
    for part in ("ball on floor", "about 9 steps", "0.39", "+- 0.078", "below 20 steps", "time.dt ="):
        assert part in text
    assert warn({"many": many}) == []
    assert "about 40 steps" in many.expected_impacts()[0].text()


def test_said_after_a_run(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    """`simulate` keeps it in the result and warns; the report of a run has it."""
    from add.commands.simulate import simulate_scene
    from add.io.runfolder import RESULT, RunFolder

    for n in (9, 40):
        caplog.clear()
        folder = RunFolder(tmp_path / str(n))
        result = simulate_scene(_bounce(0.39, _duration(0.39) / n, phase=0.5).scene, folder)
        (impact,) = json.loads(folder.path.joinpath(RESULT).read_text())["impacts"]
        assert impact["steps"] == pytest.approx(n, abs=1)
        assert impact["error"] == pytest.approx(restitution_error(0.39, impact["steps"], 2))
        warn_of_contacts(result)
        assert caplog.text.count("below 20 steps") == (n < 20)
        report = write_report(folder, draw=False).read_text()
        assert "## Impacts" in report
        assert f"lasted {impact['steps']:.0f} steps" in report


def test_damping_alone_is_said_only_below_twenty_steps() -> None:
    """It asks for no restitution: nothing is warned of."""
    raw = _bounce(0.39, _duration(0.39) / 9).scene.raw
    damping = clipped_damping_from_restitution(0.39, K_N, MASS)
    for n, said in ((9, 1), (40, 0)):
        contact = raw["contact"] | {"damping": damping, "pairs": []}
        time = raw["time"] | {"dt": _duration(0.39) / n, "steps": 60}
        built = scene_from_dict(raw | {"contact": contact, "time": time}).build()
        assert warn({"scene": built}) == []
        assert sum(impact.few for impact in _shortest(built)) == said
