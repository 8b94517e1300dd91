"""Runs in which surfaces must not pass through each other, counted by a test of its own."""

from dataclasses import replace

import numpy as np
import pytest
from support.crossings import crossing_pairs

from add.contact import MeshContact
from add.scene import scene_from_dict


def fast_ball(speed, dt):
    """Return a scene of a soft ball thrown at a sheet of 12 x 12 cells that is pinned at two sides."""
    side = {"min": [-1, -1, -1], "max": [-0.119, 1, 1]}, {"min": [0.119, -1, -1], "max": [1, 1, 1]}
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "gravity": [0, 0, 0],
            "time": {"dt": dt, "steps": 6, "integrator": "bdf1"},
            "bodies": {
                "sheet": {
                    "type": "mass-spring",
                    "mesh": {"shape": "sheet", "size": [0.24, 0.24], "divisions": [12, 12]},
                    "mass": 0.1,
                    "stiffness": 2000,
                    "damping": 0.5,
                    "pins": [{"where": {"box": box}} for box in side],
                },
                "ball": {
                    "type": "soft",
                    "mesh": {"shape": "sphere", "radius": 0.03, "edge": 0.02},
                    "material": {"young": 1e5, "poisson": 0.3, "density": 300, "viscosity": 5},
                    "position": [0.003, 0.002, 0.06],
                    "velocity": [0, 0, -speed],
                },
            },
            "contact": {"friction": 0.2, "damping": 5, "mesh": {"thickness": 0.004, "stiffness": 1e9}},
        }
    )


def crossings_between(surface, x):
    """Return how many edges of one of two bodies pass through faces of the other."""
    first = surface.body[surface.faces[:, 0]] == surface.body[0]
    one, other = surface.faces[first], surface.faces[~first]
    return len(crossing_pairs(x, one, other)) + len(crossing_pairs(x, other, one))


def test_a_ball_that_moves_ten_edges_a_step_does_not_pass_a_sheet():
    """At 20 m/s, 0.2 m a step, edges of 0.02 m: the ball ends on its side of the sheet, and nothing ever crosses."""
    built = fast_ball(20.0, 0.01).build()
    (term,) = built.model.term(MeshContact)
    surface, simulation = term.surface, built.simulation
    trajectory = simulation.run()
    places = [surface.places(q, simulation.theta) for q in trajectory.q]
    ball = int(np.argmax([places[0][surface.body == k, 2].mean() for k in (0, 1)]))

    def above(x):
        """Return how far the middle of the ball is above that of the sheet."""
        return x[surface.body == ball, 2].mean() - x[surface.body != ball, 2].mean()

    assert not any(crossings_between(surface, x) for x in places)
    assert above(places[1]) < 0.03 < above(places[-1]), "it did not hit the sheet and come back"
    free = replace(simulation, system=replace(simulation.system, limit=None))
    state, assembler = free.state(trajectory.q[0], trajectory.v[0]), free.assembler()
    state, _ = free.step(state, assembler=assembler)
    x = surface.places(state.q[0], simulation.theta)
    assert crossings_between(surface, x) or above(x) < 0.0, "without a limit it would not have passed either"


def dropped_sheet(n, over_sphere, steps):
    """Return a scene of a sheet of n x n cells that meets itself: dropped over a ball, or standing, on its edge."""
    half = 0.46 * np.pi / 2.0
    pose = {"position": [0.01, 0.013, 0.19], "velocity": [0, 0, -1.5]}
    if not over_sphere:
        pose = {"position": [0, 0, 0.165], "velocity": [0, 0, -1], "orientation": [np.cos(half), np.sin(half), 0, 0]}
    ball = {"ball": {"shape": "sphere", "center": [0, 0, 0.1], "radius": 0.08}} if over_sphere else {}
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.004, "steps": steps, "integrator": "bdf1"},
            "bodies": {
                "sheet": {
                    "type": "mass-spring",
                    "mesh": {"shape": "sheet", "size": [0.32, 0.32], "divisions": [n, n]},
                    "mass": 0.2,
                    "stiffness": 20,
                    "damping": 0.3,
                    "rayleigh_mass": 4.0,
                    "contact": {"self": True},
                    **pose,
                }
            },
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}, **ball},
            "contact": {
                "stiffness": 200,
                "friction": 0.3,
                "onset": 0.002,
                "friction_law": "tanh",
                "mesh": {"thickness": 0.1024 / n, "stiffness": 1e7},
            },
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("over_sphere", "steps"), [(False, 66), (True, 60)], ids=["itself", "sphere"])
def test_a_sheet_that_falls_never_crosses_itself(over_sphere, steps):
    built = dropped_sheet(32, over_sphere, steps).build()
    (term,) = built.model.term(MeshContact)
    surface, simulation = term.surface, built.simulation
    number = built.model.system.deciding.index(term)
    trajectory = simulation.run()
    touching = [term.describe(record.decisions[number])["touching"] for record in trajectory.records]
    crossed = [len(crossing_pairs(surface.places(q, simulation.theta), surface.faces)) for q in trajectory.q]
    assert crossed == [0] * (steps + 1)
    assert over_sphere or max(touching) > 300
