"""The code in the documentation runs: every block of a page, in order, as one module."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

PAGES = (
    "README.md", "docs/python-api.md", "docs/cones.md", "docs/control.md", "docs/extensions.md",
    "docs/gradients.md", "docs/learning.md", "docs/robots.md",
)  # fmt: skip


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


#: Page -> what it leaves behind.
TUTORIALS = {
    "docs/my-silicone-specimen.md": ("start.png", "specimen.png", "runs/specimen/report.html", "prediction.csv"),
    "docs/my-robot.md": ("arm.png", "reach.png", "angles.csv", "swing.png", "runs/swing/report.html"),
    "docs/two-soft-bodies.md": ("touch.png", "runs/shot/report.html", "runs/spin/report.html"),
}


@pytest.mark.parametrize("page", PAGES)
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file, since numba caches by it; from the checkout's root, as the pages say."""
    code = blocks(page, "python")
    assert code
    path = tmp_path / f"{Path(page).stem.replace('-', '_')}_example.py"
    path.write_text("\n".join(code), encoding="utf-8")
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorials(page: str, tmp_path: Path) -> None:
    """Every block of a page, shell or Python, in order, in an empty folder, as a reader runs them."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, _ in found} == {"sh", "python"}
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "add").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m add "$@"\n')
    (programs / "add").chmod(0o755)
    folder = tmp_path / "reader"
    folder.mkdir()
    env = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]), "PYTHONPATH": str(ROOT)}
    for number, (language, code) in enumerate(found):
        command = ["bash", "-e", "-c", code] if language == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"block {number}:\n{code}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    for name in TUTORIALS[page]:
        assert (folder / name).stat().st_size > 500, name


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/rigid-bodies.md"])
def test_scenes_are_valid(page: str) -> None:
    """Every complete scene on a page builds, and what it asks to optimise exists."""
    from add import scene_from_dict

    scenes = [json.loads(text) for text in blocks(page, "json") if '"schema"' in text]
    assert scenes
    for raw in scenes:
        scene = scene_from_dict(raw, folder=ROOT)
        scene.build()
        if scene.objective and scene.parameters:
            scene.inverse_problem()


@pytest.mark.parametrize(
    "path", ["README.md", *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md")))]
)
def test_links_lead_somewhere(path: str) -> None:
    """Relative links of the pages name files that exist, and headings in them."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?[^)]*\)", text):
        if "://" in target:
            continue
        place = (ROOT / path).parent / target if target else ROOT / path
        assert place.exists(), f"{path}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{path}: {target}#{anchor}"


def test_quickstart_shows_the_error_that_is_printed(tmp_path: Path) -> None:
    """A misspelt key of the page's scene: the message lists the keys of this version."""
    from add import InputError, load_scene

    page = "docs/quickstart.md"
    path = tmp_path / "bad.json"
    path.write_text(blocks(page, "json")[0].replace('"young"', '"yuong"'), encoding="utf-8")
    shown = re.search(r"error: bad\.json: (.*?)\n\n", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert shown
    with pytest.raises(InputError) as refused:
        load_scene(path)
    assert str(refused.value).split("bad.json: ")[1] == " ".join(shown[1].split())
