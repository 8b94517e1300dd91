"""Pictures and films without a display."""

import base64
import dataclasses
import itertools
import json
import re
import shutil
import subprocess

import imageio.v3 as imageio
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.errors import InputError
from add.geometry import quadrature_geometry
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import ContactData, SolidData
from add.scene import load_scene
from add.scene.build.run_data import run_data, start_data
from add.view import COLOURS, Look, export_html, movie, screenshot, show
from add.view.look import framing_points
from add.view.parts import Moment
from add.view.quantities import solid_hull, stretching
from add.view.shapes import pose_between, solid_meshes
from add.view.surfaces import coil, projected

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
        path = screenshot(data, tmp_path / f"{colour}.png", time=0.3, look=Look(colour=colour), size=SMALL)
        pictures.append(picture(path))
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).mean() > 0.3, "two colours look the same"


def test_solids_links_and_goals(tmp_path):
    """In every colour, at the start or in the end; in one of them both, which differ."""
    data, pictures = solids_run(9), {}
    for k, colour in enumerate(COLOURS):
        for time in (0.0, 0.55)[k % 2 :: 1 if k == 0 else 2]:
            path = screenshot(data, tmp_path / "a.png", time, look=Look(colour=colour), size=SMALL)
            pictures[colour, time] = picture(path)
    assert len(pictures) == len(COLOURS) + 1
    both = [pictures[next(iter(COLOURS)), time] for time in (0.0, 0.55)]
    assert np.abs(both[0] - both[1]).mean() > 0.5


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
        path = screenshot(
            dataclasses.replace(bare, **case), tmp_path / "a.png", 0.4, look=Look(arrows=True), size=(160, 120)
        )
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


@pytest.mark.parametrize("time", [-0.01, 99.0, np.nan])
def test_a_time_outside_the_run_is_no_picture(tmp_path, data, time):
    """Such as milliseconds: the nearest state was drawn without a word."""
    for draw, name in ((screenshot, "a.png"), (export_html, "a.html")):
        with pytest.raises(InputError, match=r"impossible time of a picture \(found .*; expected within \[0, "):
            draw(data, tmp_path / name, time=time)
    assert not list(tmp_path.iterdir())


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
    picture(screenshot(empty, tmp_path / "a.png", size=SMALL, look=Look(colour="contact")))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio's reader leaves its pipes open
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_movie(tmp_path, data, suffix):
    path = movie(data, tmp_path / f"a{suffix}", fps=10.0, speed=0.5, size=(161, 120), look=Look(colour="speed"))
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
        screenshot(data, tmp_path / "a.png", look=Look(colour="red"))
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(InputError, match="no display"):
        show(data)


def test_page(tmp_path, data):
    """One file without a network, with all moments of all parts."""
    path = export_html(data, tmp_path / "a.html", look=Look(colour="strain"))
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"https?://", text)
    scene = json.loads(re.search(r"const scene = (.*);", text).group(1))
    assert scene["times"] == pytest.approx(data.t.tolist())
    moving = [part for part in scene["parts"] if len(part["places"]) > 1]
    assert moving and len(moving[0]["places"]) == data.n_states
    places = np.frombuffer(base64.b64decode(moving[0]["places"][-1]), dtype=np.float32).reshape(-1, 3)
    body = data.positions(data.bodies[0], data.n_states - 1)
    assert np.abs(places.max(axis=0) - body[data.bodies[0].surface.ravel()].max(axis=0)).max() < 1e-6
    tints = [np.frombuffer(base64.b64decode(item), dtype=np.uint8) for item in moving[0]["tints"]]
    assert len(tints) == data.n_states and np.abs(tints[-1].astype(int) - tints[0]).max() > 20
    assert "largest strain" in text
    one = export_html(data, tmp_path / "b.html", 0.3).read_text(encoding="utf-8")
    assert json.loads(re.search(r"const scene = (.*);", one).group(1))["times"] == [0.3]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
@pytest.mark.parametrize("run", ["soft", "solids"])
def test_page_in_a_browser(tmp_path, data, run):
    """It draws, and the console has no errors."""
    page = export_html(data if run == "soft" else solids_run(5), tmp_path / "a.html")
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader",
         "--enable-unsafe-swiftshader", "--enable-logging=stderr", "--virtual-time-budget=3000",
         "--window-size=600,400", f"--screenshot={tmp_path / 'a.png'}", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    image = imageio.imread(tmp_path / "a.png")[60:340, 30:440, :3].astype(float)
    assert image.std() > 10.0 and (np.ptp(image, axis=2) > 20).any(), "blank, or grey"


def test_strain():
    """F = diag(1.2, 1, 0.9) strains by 20 %; a turn does not."""
    body = sample_run(2, (2, 1, 1), "hex8").bodies[0]
    geometry = quadrature_geometry(body.mesh)
    stretched = body.rest * np.array([1.2, 1.0, 0.9])
    assert stretching(body, stretched.ravel(), geometry) == pytest.approx(0.2, abs=1e-12)
    turned = stretched @ Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()
    assert stretching(body, turned.ravel(), geometry) == pytest.approx(0.2, abs=1e-12)


def test_shading_follows_a_body_that_turns(data):
    """Normals point outwards in every state; VTK keeps those of the first if they are not taken away."""
    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    body = data.bodies[0]
    turn = Rotation.from_rotvec([0.0, np.pi, 0.0]).as_matrix()
    q = data.q.copy()
    q[-1, body.entries] = (body.rest @ turn).ravel()
    with _off_screen(SMALL) as plotter:
        scene = Scene3D(dataclasses.replace(data, q=q), plotter)
        scene.set_time(float(data.t[-1]))
        mesh = scene._parts[0]._mesh
        away = mesh.points - mesh.points.mean(axis=0)
        assert ((away * mesh.point_data["Normals"]).sum(axis=1) > 0.0).all()


def test_shadows_are_projections():
    light = np.array([0.0, 0.6, 0.8])
    points = np.array([[0.1, 0.2, 0.5], [0.0, 0.0, 0.0], [0.3, 0.1, -0.2]])
    found = projected(points, np.zeros(3), np.array([0.0, 0.0, 1.0]), light)
    assert found == pytest.approx(np.array([[0.1, 0.2 - 0.375, 0.0], [0.0, 0.0, 0.0], [0.3, 0.1, 0.0]]))


@pytest.mark.parametrize(
    ("camera", "away"),
    [("front", [0, -1, 0]), ("top", [0, 0, 1]), ("follow left", [-1, 0, 0]), ("1,1,0", [2**-0.5, 2**-0.5, 0])],
)
def test_cameras(data, camera, away):
    """They stand where they should, see the bodies, and follow them."""
    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    moved = data.q.copy()
    moved[:, data.bodies[0].entries] += np.outer(data.t, np.tile([3.0, 0.0, 0.0], data.bodies[0].n_nodes))
    run = dataclasses.replace(data, q=moved, markers={}, targets={}, obstacles=())
    with _off_screen((200, 150)) as plotter:
        scene = Scene3D(run, plotter, Look(camera=camera))
        for k in (0, data.n_states - 1):
            scene.set_time(float(data.t[k]))
            assert np.asarray(plotter.camera.direction) == pytest.approx(-np.array(away), abs=1e-12)
            for point in run.positions(run.bodies[0], k):
                plotter.renderer.SetWorldPoint(*point, 1.0)
                plotter.renderer.WorldToView()
                assert (np.abs(plotter.renderer.GetViewPoint()[:2]) < 1.0).all()


def test_nothing_is_cut_open():
    """Both planes of the camera follow bodies that stand elsewhere than they are made, or come towards it."""
    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    solid = SolidData("drum", 0, kind=4, size=[0.06, 0.06, 0])
    q = np.zeros((2, 6))
    q[:, :3] = [[0.0, 0.0, 1.0], [0.0, -0.5, 1.0]]
    run = RunData(
        t=np.array([0.0, 1.0]), q=q, v=0.0 * q, energy={}, newton_iterations=[3], newton_residual=np.zeros(1),
        contact_force=0.0 * q, bodies=(), solids=(solid,),
    )  # fmt: skip
    with _off_screen((200, 150)) as plotter:
        scene = Scene3D(run, plotter, Look(camera="front"))
        for k in range(2):
            scene.set_time(float(k))
            away = (solid_hull(solid) + q[k, :3] - plotter.camera.position) @ plotter.camera.direction
            near, far = plotter.camera.clipping_range
            assert near < away.min() and away.max() < far


def test_residual_lines_and_scale(data):
    """Lines join the markers of a name; the bar is as long as it says."""
    from add.view.render import _off_screen
    from add.view.scene3d import Scene3D

    name, x = next(iter(data.markers.items()))
    targets = {name: (data.t, x + np.array([0.0, 0.0, 0.05]))}
    with _off_screen((400, 300)) as plotter:
        scene = Scene3D(dataclasses.replace(data, targets=targets), plotter)
        scene.set_time(float(data.t[3]))
        ends = np.asarray(plotter.actors["residuals"].mapper.dataset.points)
        assert ends[1] - ends[0] == pytest.approx([0.0, 0.0, 0.05], abs=1e-6)
        scene._scale.move(Moment.of(data.t, 0.0), scene.quantity)
        left, right = scene._scale._line.points[:2, 0]
        value, unit = plotter.actors["scale"].input.split()
        length = float(value) * {"m": 1.0, "mm": 1e-3}[unit]
        camera = plotter.camera
        sideways = np.cross(camera.direction, camera.up)
        middle, seen = np.asarray(camera.focal_point), []
        for point in (middle, middle + length * sideways / np.linalg.norm(sideways)):
            plotter.renderer.SetWorldPoint(*point, 1.0)
            plotter.renderer.WorldToView()
            seen.append(plotter.renderer.GetViewPoint()[0])
        assert right - left == pytest.approx(0.5 * (seen[1] - seen[0]), rel=1e-3)


def test_unknown_camera(tmp_path, data):
    for camera in ("behind", "1,2", "0,0,0", "follow nan,0,0"):
        with pytest.raises(InputError, match="unknown camera"):
            screenshot(data, tmp_path / "a.png", look=Look(camera=camera))


def test_player_follows_a_run_that_goes_on(data):
    """Where it shows the end, it goes on to the new one; else it stays, with its colour and camera."""
    from add.view.render import _off_screen
    from add.view.window import Player

    written = [data, None, dataclasses.replace(data, t=2.0 * data.t)]
    with _off_screen(SMALL) as plotter:
        player = Player(dataclasses.replace(data, t=0.5 * data.t), plotter, more=lambda: written.pop(0))

        def look_again():
            player._looked -= 10.0
            player.tick()

        player.seek(0.5 * data.t[-1])
        player.keys()["4"]()
        place = np.array(plotter.camera.position)
        look_again()
        assert player.scene.time == data.t[-1] and "stress" in player.scene.quantity.title
        np.testing.assert_array_equal(plotter.camera.position, place)
        assert player.slider.GetRepresentation().GetMaximumValue() == pytest.approx(data.t[-1])
        look_again()
        player.seek(0.1)
        look_again()
        assert not written and player.scene.time == 0.1 and player.data.t[-1] == 2.0 * data.t[-1]
        player.tick()  # not yet time to look again


def test_player(data):
    """The window's actions, on a plotter that is never shown."""
    from add.view.render import _off_screen
    from add.view.window import Player

    with _off_screen(SMALL) as plotter:
        player = Player(data, plotter)
        keys = player.keys()
        assert set(keys) == {"space", "r", "Left", "Right", "1", "2", "3", "4", "5"}
        keys["Right"]()
        assert player.scene.time == data.t[1]
        keys["Left"]()
        keys["Left"]()
        assert player.scene.time == 0.0
        keys["4"]()
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


def test_the_start_alone_is_that_of_the_run():
    """Without compiled steps: the same places, and the same forces on what touches."""
    built = load_scene("scenes/sticking_arm.json").build()
    alone, run = start_data(built), run_data(built, built.run(n_steps=0), built.theta)
    assert alone.n_states == 1
    for name in ("t", "q", "v", "contact_force"):
        np.testing.assert_allclose(getattr(alone, name), getattr(run, name), rtol=1e-12, atol=1e-12)
    bare = start_data(built, contacts=False)  # a picture that shows no forces compiles nothing of contact
    assert (bare.q == alone.q).all() and not bare.contacts.forces.size and not bare.energy
