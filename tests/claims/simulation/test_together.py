"""Features that are each tested alone, together."""

import numpy as np

import add


def test_a_step_is_not_solved_where_the_matrix_alone_is_huge() -> None:
    """A rope's node a rounding beside the axis of a bar, where contact is 1e17 N/m stiff: no step keeps its forces."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": 2},
        "bodies": {
            "rope": {
                "type": "rod",
                "mesh": {"points": [[0.5, 0, 0.2 - 2.8e-17], [0.54, 0, 0.2], [0.58, 0, 0.2]]},
                "density": 0.05,
                "stretching": 200,
            }
        },
        "obstacles": {
            "bar": {
                "shape": "capsule",
                "center": [0.5, 0, 0.2],
                "orientation": [np.sqrt(0.5), np.sqrt(0.5), 0, 0],
                "half_length": 0.1,
                "radius": 0.015,
            }
        },
        "contact": {"stiffness": 2e3, "friction_law": "none"},
    }
    run = add.scene_from_dict(scene).build().run()
    assert max(record.report.residual for record in run.records) < 1e-6
