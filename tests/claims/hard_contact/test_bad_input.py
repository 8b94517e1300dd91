"""One clear error each: friction, restitution, joints that contradict each other, bodies that start in each other."""

import json

import pytest
from support.impulse_scenes import CUBE, scene

from add.commands.cli import main
from add.errors import InputError
from add.scene import scene_from_dict

BLOCK = {
    "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]}, "position": [0, 0, 0.2],
    "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 500},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"friction": -0.1}, "contact.friction"),
        ({"pairs": [{"body": "body", "obstacle": "floor", "friction": -0.1}]}, "contact.pairs.0.friction"),
        ({"pairs": [{"body": "body", "obstacle": "floor", "restitution": 1.01}]}, "contact.pairs.0.restitution"),
        ({"pairs": [{"body": "body", "obstacle": "floor", "restitution": -0.5}]}, "contact.pairs.0.restitution"),
    ],
)
def test_coefficients(change: dict, place: str) -> None:
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["contact"] |= change
    with pytest.raises(InputError) as caught:
        scene_from_dict(raw)
    assert caught.value.place == place


@pytest.mark.parametrize("command", ["simulate", "check"])
def test_start_inside_another_body(command: str, tmp_path, capsys) -> None:
    """Named with the depth, before anything is computed; exit code 2 and no traceback."""
    raw = scene(CUBE | {"position": [0, 0, -0.02]}, dt=0.01, steps=3)
    (tmp_path / "s.json").write_text(json.dumps(raw))
    folder = ["-o", str(tmp_path / "run")] if command == "simulate" else []
    with pytest.raises(SystemExit) as caught:
        main([command, str(tmp_path / "s.json"), *folder])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert "bodies.body" in text and "0.12 m deep inside floor" in text and "Traceback" not in text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "more",
    [
        {"anchors": [{"at": [0, 0, 0], "place": [0, 0, 0.2]}, {"at": [0, 0, 0], "place": [0, 0.1, 0.2]}]},
        {
            "anchors": [{"at": [0.05, 0.05, 0.05]}],
            "pins": [{"where": {"box": {"min": [None, None, 0.04]}}, "axes": "y"}],
        },
    ],
    ids=["twice", "pinned"],
)
def test_contradictory_joints(more: dict) -> None:
    """A point that two joints hold: not a singular matrix later on."""
    raw = scene({}, dt=0.01, steps=3)
    raw["bodies"] = {"block": BLOCK | more}
    with pytest.raises(InputError, match="already held along") as caught:
        scene_from_dict(raw).build()
    assert caught.value.place == f"bodies.block.anchors.{len(more['anchors']) - 1}"
