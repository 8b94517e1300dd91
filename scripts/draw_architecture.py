"""Draw the rooms of `add/` and the imports between them: docs/architecture.svg, which the tests check.

    python -m scripts.draw_architecture

A room stands above all rooms that it imports. Arrows that follow from others (a -> b -> c makes a -> c) are left out of
the picture, not of its list of imports, which is in the file's metadata.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"

#: A word or two on each room, for the picture; a new room needs one.
ROOMS = {
    "adjoint": "gradients of runs",
    "bodies": "one kind a file",
    "commands": "command line, jobs",
    "compiled": "steps as compiled calls",
    "contact": "penalty contact",
    "control": "iLQR, shooting",
    "equations": "q, theta, terms, system",
    "errors": "errors, exit codes",
    "extensions": "objects from outside",
    "geometry": "meshes, elements, solids",
    "gym": "environments",
    "hard_contact": "exact contact",
    "inverse": "parameters, optimisers",
    "io": "files of runs, meshes",
    "jax": "runs inside JAX",
    "joints": "springs, hinges, motors",
    "kernels": "compiled mathematics",
    "laws": "formulas, derivatives",
    "linalg": "patterns, factorisations",
    "cones": "complementarity",
    "machine": "memory, files, signals",
    "materials": "constitutive laws",
    "mocap": "recordings",
    "model": "bodies into a system",
    "objectives": "minimised quantities",
    "plot": "diagrams",
    "scene": "JSON, Python -> objects",
    "simulation": "steps, runs",
    "solve": "Newton, fallbacks",
    "summary": "short representations",
    "terms": "forces of single bodies",
    "testing": "derivative checks",
    "ties": "numbers -> theta",
    "torch": "runs inside PyTorch",
    "typing": "array aliases",
    "view": "3-D pictures",
}
#: Rooms that every other one may use: drawn without arrows.
EVERYWHERE = ("errors", "typing", "summary")


@cache
def arrows(package: Path = ROOT / "add") -> dict[str, list[str]]:
    """Return room -> rooms that it imports, those inside functions too."""
    found: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        mine = found.setdefault(parts[0], set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            mine |= {name.split(".")[1] for name in names if name.startswith("add.")}
        mine.discard(parts[0])
    return {room: sorted(others) for room, others in sorted(found.items())}


def circle_free(graph: dict[str, list[str]]) -> bool:
    """Return whether no room imports itself by way of others."""
    left = {room: set(others) & set(graph) for room, others in graph.items()}
    while ready := [room for room, others in left.items() if not others]:
        left = {room: others - set(ready) for room, others in left.items() if room not in ready}
    return not left


def floors(graph: dict[str, list[str]]) -> list[list[str]]:
    """Return the rooms by floor, the lowest first: each above all that it imports."""
    level: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in level:
            level[room] = 1 + max((of(other) for other in graph[room]), default=-1)
        return level[room]

    for room in graph:
        of(room)
    return [sorted(room for room in graph if level[room] == k) for k in range(max(level.values()) + 1)]


def needed(graph: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the arrows that do not follow from others (transitive reduction)."""
    reach: dict[str, set[str]] = {}

    def below(room: str) -> set[str]:
        if room not in reach:
            reach[room] = set(graph[room]).union(*(below(other) for other in graph[room]))
        return reach[room]

    return {room: [b for b in others if not any(b in below(c) for c in others)] for room, others in graph.items()}


def stored(picture: Path = PICTURE) -> dict[str, list[str]]:
    """Return the arrows in the metadata of a picture."""
    found = re.search(r"<!-- imports: (.*?) -->", picture.read_text(encoding="utf-8"))
    return json.loads(found.group(1)) if found else {}


def draw() -> str:
    """Return the picture (SVG)."""
    graph = arrows()
    drawn = {
        room: [b for b in others if b not in EVERYWHERE] for room, others in graph.items() if room not in EVERYWHERE
    }
    levels, links = floors(drawn), needed(drawn)
    # Rooms of a floor stand in the order of the mean place of the rooms below that they lean on.
    place: dict[str, float] = {}
    for rooms in levels:
        keys = {r: sum(place[b] for b in links[r]) / len(links[r]) if links[r] else 0.5 for r in rooms}
        rooms.sort(key=lambda room: (keys[room], room))
        # A room that has a floor to itself stands off the middle, by turns, so that arrows pass it.
        off = 0.08 * (-1) ** len(place) if len(rooms) == 1 else 0.0
        place |= {room: (k + 0.5) / len(rooms) + off for k, room in enumerate(rooms)}
    width, high, step = 190, 44, 84
    total_width = 1440
    total = step * len(levels) + 70
    x = {room: total_width * place[room] for room in place}
    y = {room: total - 70 - step * k for k, rooms in enumerate(levels) for room in rooms}
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total}" font-family="sans-serif">',
        f"<!-- imports: {json.dumps(graph)} -->",
        "<title>Rooms of add/ and their imports</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#777"/></marker></defs>',
    ]
    for room, others in links.items():
        for other in others:
            a, b = (x[room], y[room] + high / 2), (x[other], y[other] - high / 2)
            out.append(
                f'<path d="M{a[0]:.0f},{a[1]:.0f} C{a[0]:.0f},{a[1] + 30:.0f} {b[0]:.0f},{b[1] - 30:.0f} '
                f'{b[0]:.0f},{b[1]:.0f}" fill="none" stroke="#999" stroke-width="1.2" marker-end="url(#tip)"/>'
            )
    for room in x:
        left, top = x[room] - width / 2, y[room] - high / 2
        out += [
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width}" height="{high}" rx="6" fill="#eef3fa" stroke="#456"/>',
            f'<text x="{x[room]:.0f}" y="{y[room] - 3:.0f}" text-anchor="middle" font-size="15">{room}</text>',
            f'<text x="{x[room]:.0f}" y="{y[room] + 14:.0f}" text-anchor="middle" font-size="11" fill="#555">'
            f"{ROOMS[room].replace('>', '&gt;')}</text>",
        ]
    everywhere = ", ".join(room for room in EVERYWHERE if room in graph)
    out.append(
        f'<text x="12" y="{total - 12}" font-size="12" fill="#555">An arrow points to what a room imports; arrows that '
        f"follow from others are left out. Used everywhere: {everywhere}.</text>"
    )
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
