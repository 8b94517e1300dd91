"""Scenes and processes of the tests that cut runs."""

import json
import os
import subprocess
import sys

import numpy as np
from support.processes import Forked, signals_as_usual

import add
from add.io.trajectory_file import read_run


def scene(steps=60, **more):
    """Return a box that falls on its corner, rolls and slides, with friction, a spring and a marker."""
    box = {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1, 0.12, 0.14]}}
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": steps, "integrator": "bdf2"},
        "bodies": {
            "a": box | {"position": [0, 0, 0.1], "velocity": [0.5, 0.1, -0.3], "orientation": [0.8, 0.6, 0, 0]},
            "b": box | {"position": [0.4, 0, 0.1], "angular_velocity": [3.0, 1.0, 8.0]},
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 2e4, "friction": 0.4, "damping": 5.0, "damping_ramp": 0.002, "onset": 0.002},
        "couplings": {
            "s": {"type": "spring", "a": {"body": "a", "at": [0, 0, 0]}, "b": {"body": "b"}, "stiffness": 20.0}
        },
        "markers": {"m": {"body": "a", "point": [0.05, 0, 0]}},
        **more,
    }


FIT = {
    "objective": [{"type": "point", "marker": "m", "target": [0.2, 0.1, 0.1], "time": "end"}],
    "parameters": [{"path": "bodies.a.velocity"}, {"path": "contact.friction", "bounds": [0.05, 1.0]}],
    "optimizer": {"max_evaluations": 12},
}


def command(*arguments):
    return [sys.executable, "-m", "add", *map(str, arguments)]


def begun(folder, *arguments, **options):
    """Start a command of add in an interpreter of its own; `Forked` does where that is not asked for."""
    env = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(add.__file__)), "OMP_NUM_THREADS": "1"}
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "preexec_fn": signals_as_usual}
    options = usual | options
    return subprocess.Popen(command(*arguments), cwd=folder, env=env, **options)


def ran(folder, *arguments, **options):
    """Run a command of add; return exit code, output and errors."""
    process = begun(folder, *arguments, **options) if options else Forked(folder, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def same_run(one, other):
    """Refuse runs whose trajectories or results differ in any bit, times aside."""
    a, b = (read_run(folder / "trajectory.h5") for folder in (one, other))
    for name in ("t", "q", "v", "newton_iterations", "newton_residual", "contact_force"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("energy", "markers"):
        left, right = getattr(a, name), getattr(b, name)
        assert left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left), name
    for key, line in a.lines.items():
        assert np.array_equal(line.tension, b.lines[key].tension) and np.array_equal(line.ends, b.lines[key].ends)
    assert np.array_equal(a.contacts.offsets, b.contacts.offsets)
    assert np.array_equal(a.contacts.forces, b.contacts.forces)
    assert timeless(one) == timeless(other)


def timeless(folder):
    """Return the result of a run without what depends on the clock."""
    result = json.loads((folder / "result.json").read_text())
    for key in ("seconds", "kernel_seconds", "replayed_evaluations", "scene", "checks"):
        result.pop(key, None)
    return json.loads(json.dumps(result))
