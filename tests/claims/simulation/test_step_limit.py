"""Newton's method and its first guesses under a bound on trials."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.crossings import crossing_pairs
from support.static_part import static_part
from support.surfaces import sheet

from add.compiled.newton import MOST_SHORTENED
from add.contact.limits import CollisionLimit
from add.contact.surfaces import ContactSurface, SurfacePart
from add.equations.lifted import StepLimit
from add.errors import SolverError
from add.scene import scene_from_dict
from add.solve.step_equations import StepEquations

NONE = np.zeros((0, 2), dtype=np.int64)
CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
FACES = np.array(
    [(0, 2, 1), (1, 2, 3), (4, 5, 6), (5, 7, 6), (0, 1, 4), (1, 5, 4), (2, 6, 3), (3, 6, 7), (0, 4, 2), (2, 4, 6)]
)


def thrown(height, limited=True, stiffness=2e3):
    """Return the simulation of a box that falls past a floor it may touch, and onto a sheet that does not push."""
    built = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "steps": 4},
            "bodies": {
                "box": {
                    "type": "rigid",
                    "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]},
                    "density": 500,
                    "position": [0, 0, 0.055],
                    "velocity": [0, 0.2, -2.0],
                    "angular_velocity": [9, 3, 1],
                }
            },
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
            "contact": {"stiffness": stiffness, "friction": 0.3, "friction_law": "tanh"},
        }
    ).build()
    simulation = built.simulation
    x, faces = sheet(6, (-0.5, -0.5, height), wave=0.0)
    index = simulation.system.parameters["bodies.box.centre"].indices
    part = SurfacePart(0.05 * CORNERS, FACES, NONE, 0, None, index, 0, 0.0)
    surface = ContactSurface.of([part, static_part(x, faces, 0, 0.0)])
    if limited:
        simulation = replace(simulation, system=replace(simulation.system, limit=CollisionLimit(surface)))
    return simulation, surface


def test_a_limit_far_away_changes_no_number():
    simulation, _ = thrown(-3.0)
    free, _ = thrown(-3.0, limited=False)
    np.testing.assert_array_equal(simulation.run().q, free.run().q)
    np.testing.assert_array_equal(by_terms(simulation).run().q, by_terms(free).run().q)


def test_what_does_not_push_back_ends_the_step():
    """Without a force of the sheet the step has no solution on this side: an error, not a box that went through."""
    simulation, surface = thrown(-0.02, stiffness=1.0)
    free = thrown(-0.02, limited=False, stiffness=1.0)[0].run()
    x = surface.places(free.q[-1], simulation.theta)
    assert len(crossing_pairs(x, surface.faces[:10], surface.faces[10:])), "the box would not have met the sheet"
    with pytest.raises(SolverError, match="surfaces are in the way"):
        simulation.run()


@dataclass
class Wall(StepLimit):
    """Coordinate 0 may not pass coordinate 1."""

    asked: int = 0

    def share(self, q0, q1, theta):
        self.asked += 1
        gap, way = q0[1] - q0[0], (q1[0] - q0[0]) - (q1[1] - q0[1])
        return 1.0 if way < 0.95 * gap else max(0.9 * gap / way, 0.0)


def equations(n=2):
    return StepEquations(np.zeros(n), np.zeros(n), 100.0, 0.01, 1, np.zeros(0), 0.01)


def test_a_first_guess_stops_before_the_wall():
    wall = Wall()
    u = equations().reached(wall, np.array([0.0, 1.0]), np.array([5.0, 1.0]), np.arange(2), np.zeros(0))
    assert 0.85 < u[0] < 0.95 and u[1] == 1.0 and wall.asked == 1


def test_a_wall_that_moves_goes_all_its_way():
    wall = Wall()
    u = equations().reached(wall, np.array([0.0, 1.0]), np.array([5.0, 0.5]), np.array([0]), np.zeros(0))
    assert 0.0 <= u[0] < 0.5 and u[1] == 0.5


def test_a_wall_that_moves_through_is_an_error():
    wall = Wall()
    with pytest.raises(SolverError, match="given motion passes through others"):
        equations().reached(wall, np.array([0.0, 1.0]), np.array([5.0, -0.5]), np.array([0]), np.zeros(0))
    assert wall.asked == MOST_SHORTENED + 1
