"""Draw the scenes of `scenes/` and write `docs/gallery.md`: `python -m scripts.make_gallery [NAME ...]` draws some.

Scenes of up to `CHEAP` coordinates times steps are run as they are and drawn in the middle; larger ones as they start;
those of `BEST` larger, when they look best.
"""

import json
import os
import sys
from pathlib import Path

from add import load_scene
from add.scene.build.run_data import run_data
from add.view import Look, screenshot

ROOT = Path(__file__).resolve().parents[1]
SCENES, PICTURES, PAGE = ROOT / "scenes", ROOT / "docs" / "images" / "gallery", ROOT / "docs" / "gallery.md"
CHEAP = 5e5
SHARE = 0.4
"""Of the run, at which it is drawn."""
SIZE, LARGE = (480, 300), (960, 600)
COLOURS = 256
BEST = {
    "ball_in_ring": 0.35, "bands_cubes": 0.4, "cloth_on_block": 1.0, "falling_things": 0.5, "fig11b_bunny": 0.14,
    "fig7_foam_sphere": 0.31, "pile_in_bowl": 0.5, "pneumatic_gripper": 0.6, "reaching_arm": 0.4, "robot_rigid": 0.4,
    "sheet_on_moving_ball": 0.5, "tissue_on_peg": 0.5,
}  # fmt: skip
"""Of pictures for print, and the share of the run at which each is drawn."""
HEAD = """# Gallery

Every scene of the repository, drawn by `python -m scripts.make_gallery`: small ones as they are after two fifths of
their run, before anything is fitted or optimised, large ones as they start. `add simulate scenes/NAME.json`, then
`add view runs/NAME`; where a scene asks for something to be found, `add optimize scenes/NAME.json`. Scenes with real
recordings need `ADD_DATA` ([recordings](recordings.md)).
"""
PRINT = """## Twelve for print

{names} are drawn twice as large, at
moments of their own. Each was looked at in full size by this list; what failed was mended in the viewer, for all:

- nothing passes through: bodies touch where they touch, stand on the floor, and hide what is behind them;
- labels: time, scale and axes can be read, nothing lies on them and they on nothing, no cloud or patch is around them;
- legend: the bar says what colours mean, with its unit and round ends; red is wanted, blue a marker with its path;
- light: shadows lie under what casts them, corners are darker, no face is black or burnt out;
- surfaces are smooth where bodies are, edges sharp where they are; what is wanted is seen through, without patches.
"""


def page() -> str:
    """Return the page, from the scenes' own names and descriptions."""
    parts = [HEAD, PRINT.format(names=", ".join(f"`{name}`" for name in sorted(BEST)))]
    for path in sorted(SCENES.glob("*.json")):
        raw = json.loads(path.read_text(encoding="utf-8"))
        parts.append(
            f"## {raw['name']}\n\n![{path.stem}](images/gallery/{path.stem}.png)\n\n"
            f"{raw['description']} [`scenes/{path.name}`](../scenes/{path.name})\n"
        )
    return "\n".join(parts)


def draw(name: str) -> None:
    """Draw one scene."""
    from PIL import Image

    built = load_scene(SCENES / f"{name}.json").build()
    n = built.simulation.n_steps
    steps = round(BEST.get(name, SHARE) * n) if name in BEST or built.model.system.n * n <= CHEAP else 0
    data = run_data(built, built.run(n_steps=steps), built.theta)
    PICTURES.mkdir(exist_ok=True)
    path = screenshot(data, PICTURES / f"{name}.png", look=Look(), size=LARGE if name in BEST else SIZE)
    with Image.open(path) as image:
        plain = image.convert("RGB")
        (plain if name in BEST else plain.quantize(COLOURS)).save(path, optimize=True)
    print(f"{name}: {steps} steps", flush=True)


def main() -> None:
    os.environ.setdefault("ADD_DATA", str(ROOT / "data"))
    for name in sys.argv[1:] or sorted(path.stem for path in SCENES.glob("*.json")):
        draw(name)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
