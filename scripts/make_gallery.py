"""Draw the scenes of `scenes/` and write `docs/gallery.md`: `python -m scripts.make_gallery [NAME ...]` draws some.

Scenes of up to `CHEAP` coordinates times steps are run as they are and drawn in the middle; larger ones as they start.
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
SIZE = (480, 300)
COLOURS = 96
HEAD = """# Gallery

Every scene of the repository, drawn by `python -m scripts.make_gallery`: small ones as they are after two fifths of
their run, before anything is fitted or optimised, large ones as they start. `add simulate scenes/NAME.json`, then
`add view runs/NAME`; where a scene asks for something to be found, `add optimize scenes/NAME.json`. Scenes with real
recordings need `ADD_DATA` ([recordings](recordings.md)).
"""


def page() -> str:
    """Return the page, from the scenes' own names and descriptions."""
    parts = [HEAD]
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
    steps = round(SHARE * n) if built.model.system.n * n <= CHEAP else 0
    data = run_data(built, built.run(n_steps=steps), built.theta)
    PICTURES.mkdir(exist_ok=True)
    path = screenshot(data, PICTURES / f"{name}.png", look=Look(), size=SIZE)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"{name}: {steps} steps", flush=True)


def main() -> None:
    os.environ.setdefault("ADD_DATA", str(ROOT / "data"))
    for name in sys.argv[1:] or sorted(path.stem for path in SCENES.glob("*.json")):
        draw(name)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
