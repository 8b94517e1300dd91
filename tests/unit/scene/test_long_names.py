"""Names of any length do not make an error of any length."""

import pytest

from add.errors import InputError
from add.scene import scene_from_dict


@pytest.mark.parametrize("path", ["a" * 5000, "bodies." + "b" * 5000, "bodies.p." + ".".join("c" * 3000)])
def test_an_error_stays_readable(path):
    body = {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"p": body}}
    with pytest.raises(InputError) as found:
        scene_from_dict(raw | {"parameters": [{"path": path}]})
    assert "no such path" in str(found.value) and len(str(found.value)) < 3000
