"""`add next`: the motion that narrows a fit most, against the closed form of a fall."""

import json

import numpy as np
import pytest
from commands.test_predict import fit, run, scene  # noqa: F401  (a fixture)

from add.commands.other_motions import narrowed
from add.errors import InputError


def test_covariance_of_both_is_that_of_all_samples(rng):
    """By the inverse of the sum of information; a number without an error keeps none."""
    S, T = rng.normal(size=(9, 3)), rng.normal(size=(6, 3))
    first = np.linalg.inv(S.T @ S)
    np.testing.assert_allclose(narrowed(first, T), np.linalg.inv(S.T @ S + T.T @ T), rtol=1e-9, atol=1e-12)
    fixed = np.diag([2.0, 0.0, 1.0])
    after = narrowed(fixed, T)
    assert not after[1].any() and 0.0 < after[0, 0] < 2.0


def test_a_longer_fall_shows_more(fit, tmp_path):  # noqa: F811
    """z = g t^2 / 2 sees g with the slope t^2 / 2 at each step; the noise is what the fit left over."""
    result = json.loads((fit / "run" / "result.json").read_text())
    before = result["parameters"]["gravity[2]"]["standard_error"]
    noise = result["fit"]["rms"] / np.sqrt(3.0)
    files = [scene(tmp_path, name, duration=duration) for name, duration in (("short", 0.2), ("long", 0.6))]
    asked = run("next", fit / "run", *files, "--json")
    assert asked.exit_code == 0, asked.output
    found = json.loads(asked.stdout)
    assert [item["name"] for item in found] == ["long", "short"]
    for item, duration in zip(found, (0.6, 0.2), strict=True):
        t = 0.005 * np.arange(1, round(duration / 0.005) + 1)
        both = (before**-2 + (t**4 / 4).sum() / noise**2) ** -0.5
        # The steps of the scene meet the fall within its 1e-4.
        assert item["errors"]["gravity[2]"] == {"before": pytest.approx(before), "after": pytest.approx(both, rel=2e-2)}
        assert item["narrowing"] == pytest.approx(both / before, rel=2e-2)


def test_variations_and_what_is_refused(fit, tmp_path):  # noqa: F811
    file = scene(tmp_path, "fall")
    asked = run("next", fit / "run", file, "--vary", "time.duration=0.1,0.5", "--for", "gravity[2]")
    assert asked.exit_code == 0, asked.output
    assert asked.output.index("fall, time.duration = 0.5") < asked.output.index("fall, time.duration = 0.1")
    asked = run("next", fit / "run", file, "--for", "mass")
    assert isinstance(asked.exception, InputError)
    assert "the fit has no such number (found 'mass'; expected gravity[2])" in str(asked.exception)
    asked = run("next", fit / "run", file, "--vary", "time.duration=a")
    assert asked.exit_code == 2 and "--vary time.duration=a" in asked.output
