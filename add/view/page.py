"""A run as one interactive page: geometry and viewer in one file, without a network."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from add.view.scene3d import COLOUR_MAPS, Scene3D

MOST_FRAMES = 120
_MOST_NUMBERS = 4_000_000
"""Coordinates in a page: about 20 MB of text."""
_LEFT_OUT = ("contact forces",)
"""Parts whose number of points changes with the time."""


def page(scene: Scene3D, title: str, time: float | None, progress: Callable[[int, int], None]) -> str:
    """Return the page of a run: all of it, or one moment.

    Parameters
    ----------
    scene : with its plotter
    title : of the page
    time : the moment [s]; None: the whole run, at most `MOST_FRAMES` moments, which begins with the first
    progress : called after each moment with how many are drawn and how many there are
    """
    import jinja2
    from markupsafe import Markup

    data = scene.data
    n = 1 if time is not None else min(data.n_states, MOST_FRAMES)
    actors = _actors(scene)
    points = sum(mesh.n_points for _, mesh in actors)
    n = max(1, min(n, _MOST_NUMBERS // max(3 * points, 1)))
    times = np.array([time]) if time is not None else np.linspace(data.t[0], data.t[-1], n)
    parts: list[dict[str, Any]] = [_part(actor, mesh) for actor, mesh in actors]
    for done, moment in enumerate(times, start=1):
        scene.set_time(float(moment))
        for part, (actor, mesh) in zip(parts, actors, strict=True):
            part["places"].append(_places(actor, mesh))
            part["tints"].append(_tints(actor, mesh))
        progress(done, len(times))
    for part in parts:
        part["places"] = [_text(item) for item in _constant(part["places"])]
        part["tints"] = [_text(item) for item in _constant(part["tints"])]
    camera, quantity = scene.plotter.camera, scene.quantity
    content = {
        "parts": parts, "times": times.tolist(), "focus": list(camera.focal_point), "eye": list(camera.position),
        "angle": float(np.radians(camera.view_angle)), "span": scene.span,
    }  # fmt: skip
    file = Path(__file__).with_name("page.html.jinja")
    template = jinja2.Environment(autoescape=True).from_string(file.read_text(encoding="utf-8"))
    shown = quantity.shown and scene.coloured
    return template.render(
        title=title, scene=Markup(json.dumps(content).replace("</", "<\\/")),
        ramp=_ramp(scene.look.colour) if shown else [], quantity=quantity.title, low=f"{quantity.range[0]:g}",
        high=f"{quantity.range[1]:g}", first=0, last=len(times) - 1,
    )  # fmt: skip


def _actors(scene: Scene3D) -> list[tuple[Any, Any]]:
    """Return the actors of the scene with surfaces, lines or points, and what they show."""
    return [
        (scene.plotter.actors[name], mesh)
        for name, mesh in scene.meshes.items()
        if name in scene.plotter.actors and mesh.n_points and name not in _LEFT_OUT
    ]


def _part(actor: Any, mesh: Any) -> dict[str, Any]:
    """Return what does not change: cells and style."""
    cells: dict[str, str] = {}
    if len(mesh.faces):
        cells["triangles"] = _text(mesh.triangulate().regular_faces.astype(np.uint32))
    segments = [line[[k, k + 1]] for line in _lines(mesh) for k in range(len(line) - 1)]
    if actor.prop.show_edges and not mesh.is_all_triangles:  # the grid of a floor
        faces = mesh.regular_faces
        segments += list(np.concatenate([faces[:, [k, (k + 1) % faces.shape[1]]] for k in range(faces.shape[1])]))
    if segments:
        cells["lines"] = _text(np.array(segments, dtype=np.uint32))
    if not cells:
        cells["points"] = _text(np.arange(mesh.n_points, dtype=np.uint32))
    lit = bool(actor.prop.lighting)
    return {
        "cells": cells, "lit": lit, "opacity": float(actor.prop.opacity), "size": float(actor.prop.point_size) / 2.0,
        "places": [], "tints": [],
    }  # fmt: skip


def _lines(mesh: Any) -> list[Any]:
    found, lines, k = [], np.asarray(mesh.lines), 0
    while k < len(lines):
        found.append(lines[k + 1 : k + 1 + lines[k]])
        k += 1 + int(lines[k])
    return found


def _places(actor: Any, mesh: Any) -> Any:
    matrix = np.asarray(actor.user_matrix)
    moved = np.asarray(mesh.points, dtype=float) @ matrix[:3, :3].T + matrix[:3, 3] + np.asarray(actor.position)
    return np.nan_to_num(moved).astype(np.float32)


def _tints(actor: Any, mesh: Any) -> Any:
    """Return colours (n, 3) of the points, 0 to 255."""
    mapper = actor.mapper
    if mapper.scalar_visibility and "value" in mesh.point_data:
        low, high = mapper.scalar_range
        values = np.asarray(mesh.point_data["value"], dtype=float)
        share = np.clip((values - low) / max(high - low, 1e-300), 0.0, 1.0)
        table = np.asarray(mapper.lookup_table.values)[:, :3]
        neutral = np.array(mapper.lookup_table.nan_color.int_rgb)
        rows = np.nan_to_num(share * (len(table) - 1)).round().astype(int)
        return np.where(np.isnan(share)[:, None], neutral, table[rows]).astype(np.uint8)
    rgb = (255.0 * np.asarray(actor.prop.color.float_rgb)).astype(np.uint8)
    return np.tile(rgb, (mesh.n_points, 1))


def _constant(frames: list[Any]) -> list[Any]:
    """Return one frame for those that are all the same."""
    same = all(np.array_equal(frame, frames[0]) for frame in frames[1:])
    return frames[:1] if same else frames


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _ramp(colour: str) -> list[str]:
    import matplotlib

    table = matplotlib.colormaps[COLOUR_MAPS[colour]](np.linspace(0.0, 1.0, 32))
    return [str(matplotlib.colors.to_hex(row)) for row in table]
