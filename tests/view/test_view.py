"""Pictures and films without a display."""

import dataclasses

import imageio.v3 as imageio
import numpy as np
import pytest
from view.sample_run import sample_run

from add.errors import InputError
from add.view import COLOURS, export_html, movie, screenshot, show
from add.view.scene3d import framing_points

SMALL = (240, 160)


@pytest.fixture(scope="module")
def data():
    return sample_run(16, (3, 2, 2))


def picture(path):
    image = imageio.imread(path)[..., :3].astype(float)
    assert image.shape == (SMALL[1], SMALL[0], 3)
    assert image.std() > 10.0, "blank"
    return image


def test_every_colour(tmp_path, data):
    pictures = []
    for colour in COLOURS:
        path = screenshot(data, tmp_path / f"{colour}.png", time=0.3, colour=colour, size=SMALL)
        pictures.append(picture(path))
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).mean() > 0.3, "two colours look the same"


def test_time_moves_the_picture(tmp_path, data):
    start, end = (picture(screenshot(data, tmp_path / "a.png", time=t, size=SMALL)) for t in (0.0, None))
    assert np.abs(start - end).mean() > 2.0


def test_the_whole_motion_is_in_view(tmp_path, data):
    """Bodies in black on white, start and end: nothing touches the frame."""
    import pyvista

    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    bare = dataclasses.replace(data, obstacles=(), markers={}, targets={})
    for size in ((320, 160), (160, 320)):
        with _off_screen(size) as plotter:
            scene = Scene3D(bare, plotter)
            assert isinstance(plotter, pyvista.Plotter)
            for points in (framing_points(bare), bare.positions(bare.bodies[0], 7)):
                for point in points:
                    plotter.renderer.SetWorldPoint(*point, 1.0)
                    plotter.renderer.WorldToView()
                    assert (np.abs(plotter.renderer.GetViewPoint()[:2]) < 0.98).all()
            assert scene.time == 0.0


def test_no_bodies_and_one_state(tmp_path, data):
    n = 1
    empty = dataclasses.replace(
        data, t=data.t[:n], q=np.zeros((n, 0)), v=np.zeros((n, 0)), contact_force=np.zeros((n, 0)), bodies=(),
        energy={}, newton_iterations=[], newton_residual=[], markers={}, targets={},
    )  # fmt: skip
    picture(screenshot(empty, tmp_path / "a.png", size=SMALL, colour="contact"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio's reader leaves its pipes open
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_movie(tmp_path, data, suffix):
    path = movie(data, tmp_path / f"a{suffix}", fps=10.0, speed=0.5, size=(161, 120), colour="speed")
    frames = np.stack([frame[..., :3] for frame in imageio.imiter(path)]).astype(float)
    assert frames.shape == (13, 120, 160, 3)  # 0.6 s at half the speed, both ends
    assert np.abs(frames[0] - frames[-1]).mean() > 2.0
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_errors(tmp_path, data, monkeypatch):
    with pytest.raises(InputError, match=r"a\.bmp: unknown kind of file"):
        screenshot(data, tmp_path / "a.bmp")
    with pytest.raises(InputError, match="no such folder"):
        screenshot(data, tmp_path / "missing" / "a.png")
    with pytest.raises(InputError, match="impossible speed"):
        movie(data, tmp_path / "a.mp4", speed=0.0)
    with pytest.raises(InputError, match="unknown colour"):
        screenshot(data, tmp_path / "a.png", colour="red")
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(InputError, match="no display"):
        show(data)


def test_html_says_what_it_needs(tmp_path, data):
    pytest.importorskip("pyvista")
    try:
        import trame  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="trame"):
            export_html(data, tmp_path / "a.html")


def test_player(data):
    """The window's actions, on a plotter that is never shown."""
    from add.view.render import _off_screen
    from add.view.window import Player

    with _off_screen(SMALL) as plotter:
        player = Player(data, plotter)
        keys = player.keys()
        assert set(keys) == {"space", "r", "Left", "Right", "1", "2", "3", "4"}
        keys["Right"]()
        assert player.scene.time == data.t[1]
        keys["Left"]()
        keys["Left"]()
        assert player.scene.time == 0.0
        keys["3"]()
        assert "stress" in player.scene.quantity.title
        keys["space"]()
        assert player.playing
        player._last -= 0.1
        player.tick()
        assert 0.1 <= player.scene.time < 0.5
        player._last -= 10.0
        player.tick()
        assert player.scene.time == data.t[-1]
        assert not player.playing, "stops at the end"
        keys["space"]()
        assert player.scene.time == 0.0, "and starts over"
        player.seek(0.25)
        keys["r"]()
        assert not player.playing
        assert player.scene.time == 0.0
