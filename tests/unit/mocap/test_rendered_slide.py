"""The slide that is rendered to images: the camera, the pose from an image, the friction from every start."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from scripts.rendered_slide import CAMERA, STARTS, TRUTH, corners, fitted, found_corners, posed, rendered, tag_cells

SIZE = np.array([0.12, 0.08, 0.04])
PLACE, TURN = np.array([0.1, 0.02, 0.02]), Rotation.from_rotvec([0.0, 0.0, 0.3]).as_matrix()


def test_camera_has_the_slopes_of_what_it_sees():
    points = corners(0.02) @ TURN.T + PLACE
    slopes = CAMERA.slopes(points)
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        differences = (CAMERA.seen(points + step) - CAMERA.seen(points - step)) / 2e-6
        np.testing.assert_allclose(slopes[:, :, k], differences, rtol=1e-6)


def test_rays_meet_what_is_there():
    """The middle of the tag, the border of the lid and the table beside the block."""
    tag = np.full((8, 8), 0.95)
    tag[1:-1, 1:-1] = 0.05
    image = rendered(CAMERA, PLACE, TURN, SIZE, tag)
    for point, grey in (([0, 0, 0.02], 0.05), ([0.034, 0.0, 0.02], 0.95), ([0.055, 0.03, 0.02], 0.7)):
        u, v = np.round(CAMERA.seen((PLACE + TURN @ np.array(point))[None])[0]).astype(int)
        assert image[v, u] == pytest.approx(grey, abs=0.05)
    u, v = np.round(CAMERA.seen(np.array([[0.1, -0.15, 0.0]]))[0]).astype(int)
    assert image[v, u] in (pytest.approx(0.45), pytest.approx(0.55))


def test_pose_from_an_image():
    pytest.importorskip("cv2")
    image = rendered(CAMERA, PLACE, TURN, SIZE, tag_cells())
    pixels, points = found_corners(image), corners(0.02)
    np.testing.assert_allclose(pixels, CAMERA.seen(points @ TURN.T + PLACE), atol=0.25)
    place, turn, shape, _ = posed(CAMERA, pixels, points)
    turned = Rotation.from_matrix(turn @ TURN.T).as_rotvec()
    assert (np.abs([*(place - PLACE), *turned]) < 4.0 * 0.15 * np.sqrt(np.diag(shape))).all()
    exact, _, _, squares = posed(CAMERA, CAMERA.seen(points @ TURN.T + PLACE), points)
    np.testing.assert_allclose(exact, PLACE, atol=1e-6)
    assert squares < 1e-10
    assert found_corners(np.full_like(image, 0.5)) is None


@pytest.mark.slow
def test_friction_is_found_from_every_start():
    found = [fitted(start)["parameters"]["contact.friction"] for start in STARTS]
    assert np.ptp([entry["value"] for entry in found]) < 1e-5
    for entry in found:
        assert entry["interval_lower"] < TRUTH["contact.friction"] < entry["interval_upper"]
