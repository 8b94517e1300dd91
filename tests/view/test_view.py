"""Pictures and films without a display."""

import dataclasses
import itertools

import imageio.v3 as imageio
import numpy as np
import pytest
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.errors import InputError
from add.io.trajectory import ContactData, SolidData
from add.view import COLOURS, export_html, movie, screenshot, show
from add.view.framing import framing_points
from add.view.hulls import solid_hull
from add.view.joints import coil
from add.view.parts import Moment
from add.view.shapes import solid_meshes
from add.view.solids import pose_between

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


@pytest.mark.parametrize("colour", COLOURS)
def test_solids_links_and_goals(tmp_path, colour):
    data = solids_run(9)
    start, end = (picture(screenshot(data, tmp_path / "a.png", t, colour=colour, size=SMALL)) for t in (0.0, 0.55))
    assert np.abs(start - end).mean() > 0.5


def test_one_thing_at_a_time(tmp_path):
    """Scenes of a single rigid body, sheet, rope, link or joint have a picture."""
    data = solids_run(3)
    bare = dataclasses.replace(
        data, solids=(), sheets=(), lines={}, joints={}, goals={}, obstacles=(), markers={}, contacts=ContactData()
    )
    cases = [{"solids": (solid,)} for solid in data.solids] + [{"sheets": (sheet,)} for sheet in data.sheets]
    cases += [{"lines": {name: line}} for name, line in data.lines.items()]
    cases += [{"joints": {name: joint}} for name, joint in data.joints.items()]
    cases += [{"goals": {"spot": data.goals["spot"]}}, {"contacts": data.contacts, "solids": data.solids[:1]}]
    for case in cases:
        path = screenshot(dataclasses.replace(bare, **case), tmp_path / "a.png", 0.4, size=(160, 120), arrows=True)
        image = imageio.imread(path)[30:, :130, :3]  # without time and scalar bar
        assert image.min() < 220, case


def test_solids_turn_between_states():
    """Half way between two states a body has turned half way, also across a jump of its rotation vector."""
    full = 2.0 * np.pi
    q = np.zeros((2, 6))
    q[:, 5] = 3.0, 3.4 - full
    data = dataclasses.replace(
        solids_run(2), q=q, v=0 * q, contact_force=0 * q, sheets=(), solids=(SolidData("a", 0, centre=[0.1, 0, 0]),),
        lines={}, joints={}, contacts=ContactData(), markers={}, goals={},
    )  # fmt: skip
    matrix = pose_between(data, data.solids[0], Moment(0.5, 0, 1, 0.5))
    np.testing.assert_allclose(matrix[:2, 0], [np.cos(3.2), np.sin(3.2)], atol=1e-12)
    np.testing.assert_allclose(matrix @ [0.1, 0, 0, 1], [0, 0, 0, 1], atol=1e-12)


def test_coils_reach_both_ends():
    ends = np.array([[0.0, 0.1, 0.2], [0.3, -0.4, 0.2]])
    points = coil(ends, 0.02)
    np.testing.assert_array_equal(points[[0, -1]], ends)
    assert len(coil(ends[[0, 0]], 0.02)) == 2


def test_hulls_hold_the_bodies():
    data = solids_run(3)
    for solid in data.solids[:6]:
        surface, _ = solid_meshes(solid, 0.1)
        found, wanted = solid_hull(solid), np.asarray(surface.points)
        np.testing.assert_allclose(np.abs(found).max(axis=0), np.abs(wanted).max(axis=0), rtol=0.02)


def test_time_moves_the_picture(tmp_path, data):
    start, end = (picture(screenshot(data, tmp_path / "a.png", time=t, size=SMALL)) for t in (0.0, None))
    assert np.abs(start - end).mean() > 2.0


def test_the_whole_motion_is_in_view(tmp_path, data):
    """Bodies in black on white, start and end: nothing touches the frame."""
    import pyvista

    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    bare = dataclasses.replace(data, obstacles=(), markers={}, targets={})
    solid = solids_run(9)
    rotation, position = solid.pose(solid.solids[0], 4)
    seen = [(bare, bare.positions(bare.bodies[0], 7)), (solid, solid_hull(solid.solids[0]) @ rotation.T + position)]
    for size, (run, places) in itertools.product(((320, 160), (160, 320)), seen):
        with _off_screen(size) as plotter:
            scene = Scene3D(run, plotter)
            assert isinstance(plotter, pyvista.Plotter)
            for points in (framing_points(run), places):
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
