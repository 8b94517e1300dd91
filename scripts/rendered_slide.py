"""A slide rendered to images, its tag tracked in them, and the friction found from the poses, from every start.

A block with a square tag on its lid slides to a stop; a camera at a known place sees it. The images are made here, ray
by ray, with noise; OpenCV (the extra `track`) finds the corners of the tag in them, and a pose with a covariance
follows from each image. `scenes/rendered_slide.json` is fitted to the poses.

    python -m scripts.rendered_slide                  # the fits, from the poses in data/recordings
    python -m scripts.rendered_slide --track          # render and track first; writes the poses and the picture
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.commands.optimize import optimize_scene
from add.io.runfolder import RunFolder
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.typing import FloatArray

ROOT = Path(__file__).resolve().parents[1]
SCENE = ROOT / "scenes" / "rendered_slide.json"
POSES = ROOT / "data" / "recordings" / "rendered_slide.json"
PICTURE = ROOT / "docs" / "images" / "rendered_slide.png"
TRUTH = {
    "contact.friction": 0.25,
    "bodies.block.velocity": [1.3, 0.1, 0.0],
    "bodies.block.angular_velocity": [0.0, 0.0, 1.2],
}
STARTS = (0.05, 0.1, 0.2, 0.4, 0.8)
RATE, SEED = 30.0, 14
#: Steps of the true run an image.
STEPS = 32
#: Side of the tag, at the middle of the block's upper face, and its number [m].
TAG, NUMBER = 0.06, 7
#: Grey levels from 0 to 1: noise of a pixel, rays a pixel along one side.
GREY_NOISE, RAYS = 0.01, 4


@final
@dataclass(frozen=True)
class Camera:
    """A pinhole without distortion.

    Attributes
    ----------
    place : (3,) [m]
    axes : (3, 3) rows: to the right, down and forward in world axes
    focal : [px]
    size : width and height [px]
    """

    place: FloatArray
    axes: FloatArray
    focal: float
    size: tuple[int, int]

    @staticmethod
    def looking(place: FloatArray, at: FloatArray, focal: float, size: tuple[int, int]) -> Camera:
        """Return the camera at a place that looks at a point, with its side level."""
        forward = (at - place) / np.linalg.norm(at - place)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return Camera(place, np.array([right, np.cross(forward, right), forward]), focal, size)

    @property
    def centre(self) -> FloatArray:
        """Middle of the image, where pixel (0, 0) has its middle at (0, 0) [px]."""
        return 0.5 * (np.array(self.size, dtype=float) - 1.0)

    def seen(self, points: FloatArray) -> FloatArray:
        """Return the pixels (n, 2) of points (n, 3) in the world."""
        local = (points - self.place) @ self.axes.T
        return np.asarray(self.focal * local[:, :2] / local[:, 2:] + self.centre)

    def slopes(self, points: FloatArray) -> FloatArray:
        """Return the derivatives (n, 2, 3) of `seen` by the points."""
        local = (points - self.place) @ self.axes.T
        depth = local[:, 2, None, None]
        across = np.concatenate([np.tile(np.eye(2), (len(local), 1, 1)), -local[:, :2, None] / depth], axis=2)
        return np.asarray(self.focal / depth * across @ self.axes)


CAMERA = Camera.looking(np.array([0.05, -0.55, 0.45]), np.array([0.2, 0.0, 0.03]), 800.0, (960, 540))


def corners(height: float) -> FloatArray:
    """Return the corners of the tag (4, 3) in the block's frame, in the order in which OpenCV names them [m]."""
    half = 0.5 * TAG
    return np.array([[-half, half, height], [half, half, height], [half, -half, height], [-half, -half, height]])


def rendered(camera: Camera, place: FloatArray, turn: FloatArray, size: FloatArray, tag: FloatArray) -> FloatArray:
    """Return the image (h, w) of a block on a table, grey levels from 0 to 1, without noise.

    Rays meet the box in its own frame (slabs), or the table z = 0 with its stripes.

    Parameters
    ----------
    camera
    place, turn : of the block: (3,) [m] and R (3, 3)
    size : edges of the block (3,) [m]
    tag : (n, n) cells of the tag with a white border of one cell, first row at +y
    """
    width, height = camera.size

    def greys(u: FloatArray, v: FloatArray) -> FloatArray:
        local = np.stack(
            [(u - camera.centre[0]) / camera.focal, (v - camera.centre[1]) / camera.focal, np.ones_like(u)]
        )
        rays = np.einsum("ihw,ij->hwj", local, camera.axes).reshape(-1, 3)
        return shade(camera.place, rays, place, turn, size, tag).reshape(u.shape)

    image = greys(*np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float)))
    # More rays where the block is.
    box = 0.5 * size * np.array(list(itertools.product((-1, 1), repeat=3)))
    pixels = camera.seen(place + box @ turn.T)
    low = np.maximum(pixels.min(axis=0).astype(int) - 3, 0)
    high = np.minimum(pixels.max(axis=0).astype(int) + 4, camera.size)
    u, v = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
    fine = (np.arange(RAYS) + 0.5) / RAYS - 0.5
    image[low[1] : high[1], low[0] : high[0]] = np.mean([greys(u + du, v + dv) for dv in fine for du in fine], axis=0)
    return np.asarray(image)


def shade(
    eye: FloatArray, rays: FloatArray, place: FloatArray, turn: FloatArray, size: FloatArray, tag: FloatArray
) -> FloatArray:
    """Return the grey level that each ray (n, 3) from the eye meets; see `rendered`."""
    at = eye - eye[2] / rays[:, 2:] * rays
    grey = 0.45 + 0.1 * (np.floor(at[:, 0] / 0.1) % 2)
    start, way = (eye - place) @ turn, rays @ turn
    with np.errstate(divide="ignore"):
        near, far = (np.sort([(-0.5 * size - start) / way, (0.5 * size - start) / way], axis=0)[k] for k in (0, 1))
    hit = near.max(axis=1) < far.min(axis=1)
    face, depth = near[hit].argmax(axis=1), near[hit].max(axis=1)
    met = start + depth[:, None] * way[hit]
    side = np.array([0.25, 0.35, 0.7])[face]
    cell = TAG / (len(tag) - 2)
    column, row = (np.floor((sign * met[:, k]) / cell + 0.5 * len(tag)).astype(int) for k, sign in ((0, 1), (1, -1)))
    inside = (face == 2) & (column >= 0) & (column < len(tag)) & (row >= 0) & (row < len(tag))
    side[inside] = tag[row[inside], column[inside]]
    grey[hit] = side
    return np.asarray(grey)


def tag_cells() -> FloatArray:
    """Return the cells of the tag with a white border, black 0.05 and white 0.95."""
    import cv2

    family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    cells = cv2.aruco.generateImageMarker(family, NUMBER, 6) > 127
    return np.where(np.pad(cells, 1, constant_values=True), 0.95, 0.05)


def found_corners(image: FloatArray) -> FloatArray | None:
    """Return the corners (4, 2) of the tag in an image [px]; None where it is not found."""
    import cv2

    options = cv2.aruco.DetectorParameters()
    options.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_APRILTAG
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50), options)
    places, numbers, _ = detector.detectMarkers(np.round(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8))
    for place, number in zip(places, () if numbers is None else numbers.ravel(), strict=True):
        if number == NUMBER:
            # AprilTag's refinement counts from the corner of the first pixel, the camera from its middle.
            return np.asarray(place[0], dtype=float) - 0.5
    return None


def posed(camera: Camera, pixels: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return place (3,), rotation (3, 3), (J^T J)^-1 (6, 6) and the sum of squares of a body whose points are seen.

    OpenCV gives the start (of the two poses of a square the better one); Gauss-Newton over place and a small rotation
    about the world's axes ends there, J its Jacobian of the pixels. Times the variance of a pixel, (J^T J)^-1 is the
    covariance of the pose.
    """
    import cv2

    matrix = np.array([[camera.focal, 0, camera.centre[0]], [0, camera.focal, camera.centre[1]], [0, 0, 1.0]])
    middle = points - points.mean(axis=0)
    _, turned, moved = cv2.solvePnP(middle, pixels, matrix, None, flags=cv2.SOLVEPNP_IPPE_SQUARE)
    turn = camera.axes.T @ Rotation.from_rotvec(np.ravel(turned)).as_matrix()
    place = camera.place + camera.axes.T @ np.ravel(moved) - turn @ points.mean(axis=0)
    for _ in range(10):
        arms = points @ turn.T
        slopes = camera.slopes(place + arms)
        jacobian = np.concatenate([slopes, np.cross(arms[:, None], slopes)], axis=2).reshape(-1, 6)
        apart = (pixels - camera.seen(place + arms)).ravel()
        step = np.linalg.lstsq(jacobian, apart)[0]
        place, turn = place + step[:3], Rotation.from_rotvec(step[3:]).as_matrix() @ turn
    return place, turn, np.linalg.inv(jacobian.T @ jacobian), float(apart @ apart)


def track() -> dict[str, Any]:
    """Simulate, render, track; return the poses as JSON has them, and the first and the last image."""
    raw = json.loads(SCENE.read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "expect", "check"):
        raw.pop(key, None)
    built = apply_overrides(scene_from_dict(raw), {**TRUTH, "time.dt": 1.0 / RATE / STEPS}).build()
    run, rng, cells = built.run(), np.random.default_rng(SEED), tag_cells()
    size = np.array(raw["bodies"]["block"]["geometry"]["size"])
    points = corners(0.5 * size[2])
    poses, images, squares = [], [], 0.0
    for frame, k in enumerate(range(0, run.n_steps + 1, STEPS)):
        q = run.kinematics(k).q
        image = rendered(CAMERA, q[:3], Rotation.from_rotvec(q[3:6]).as_matrix(), size, cells)
        image += GREY_NOISE * rng.normal(size=image.shape)
        pixels = found_corners(image)
        images.append((image, pixels))
        if pixels is None:
            poses.append((frame / RATE, None))
            continue
        poses.append((frame / RATE, posed(CAMERA, pixels, points)))
        squares += poses[-1][1][3]
    seen = [pose for _, pose in poses if pose is not None]
    # Eight numbers an image, of which a pose takes six.
    variance = squares / (2 * len(seen))
    print(f"{len(seen)} of {len(poses)} tags found; a corner is off by {np.sqrt(variance):.3f} px")
    frames: list[dict[str, Any]] = []
    for time, pose in poses:
        if pose is None:
            frames.append({"time": round(time, 6), "position": None, "quaternion": None})
            continue
        place, turn, shape, _ = pose
        frames.append({
            "time": round(time, 6),
            "position": np.round(place, 7).tolist(),
            "quaternion": np.round(Rotation.from_matrix(turn).as_quat(), 8).tolist(),
            "covariance": [float(f"{x:.6g}") for x in (variance * shape).ravel()],
        })  # fmt: skip
    return {"frames": frames, "images": images}


def fitted(start: float) -> dict[str, Any]:
    """Return the result of the fit from a friction."""
    scene = apply_overrides(load_scene(SCENE), {"contact.friction": start})
    with tempfile.TemporaryDirectory() as name:
        return optimize_scene(scene, RunFolder(Path(name) / "run"))


def draw(images: list[tuple[FloatArray, FloatArray | None]]) -> None:
    """Draw the first and the last image, with the corners that were found in all of them."""
    from scripts.reproduction.drawing import figure

    with figure(PICTURE, 8.2, 2.5) as drawn:
        ends = {"first": images[0], "last": images[-1]}
        for axes, (title, (image, _)) in zip(drawn.subplots(1, 2), ends.items(), strict=True):
            axes.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
            for _, pixels in images:
                if pixels is not None:
                    axes.plot(*pixels[:1].T, "C1.", ms=2.5)
            axes.set_axis_off()
            axes.set_title(f"{title} image, and where a corner was in all")


def main(given: list[str] | None = None) -> int:
    """Track where that is asked for, and fit from every start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--track", action="store_true", help="render and track, and write the poses and the picture")
    if parser.parse_args(given).track:
        found = track()
        rows = ",\n".join("  " + json.dumps(frame) for frame in found["frames"])
        POSES.write_text(f'{{"unit": "m", "quaternion_order": "xyzw", "frames": [\n{rows}\n]}}\n', encoding="utf-8")
        draw(found["images"])
    for start in STARTS:
        result = fitted(start)
        entry = result["parameters"]["contact.friction"]
        interval = f"{entry['interval_lower']:.4f} to {entry['interval_upper']:.4f}"
        print(f"from {start:4g}: friction {entry['value']:.6f} +- {entry['standard_error']:.2g}, 95 % {interval}, "
              f"objective {result['objective']['end']:.3f}, {result['evaluations']} evaluations")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
