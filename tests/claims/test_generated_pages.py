"""The pages of parameters and pictures are those of the scenes, and every scene says where its schema is."""

import json

import pytest
from support.places import ROOT, SCENES

from scripts.make_parameter_page import PAGE, pattern, words


@pytest.mark.slow
def test_the_page_is_up_to_date(data_root):
    from scripts.make_parameter_page import page

    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m scripts.make_parameter_page"


def test_words_are_those_of_the_format():
    assert pattern("bodies.ball.joints.upper.value") == "bodies.<body>.joints.<joint>.value"
    assert pattern("contact.pairs.3.friction") == "contact.pairs.<k>.friction"
    assert "Young's modulus" in words("bodies.<body>.material.young")
    assert not words("bodies.<body>.material.yuong")


@pytest.mark.parametrize("path", sorted(SCENES.glob("*.json")), ids=lambda path: path.stem)
def test_scenes_name_their_schema(path):
    """As the first key, so that editors complete everything after it."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert next(iter(raw)) == "$schema"
    assert (path.parent / raw["$schema"]).resolve() == (ROOT / "docs" / "add-scene-1.schema.json").resolve()


def test_gallery_shows_every_scene():
    from scripts.make_gallery import PAGE as GALLERY, PICTURES, page

    assert GALLERY.read_text(encoding="utf-8") == page(), "run python -m scripts.make_gallery"
    scenes = {path.stem for path in (SCENES).glob("*.json")}
    assert {path.stem for path in PICTURES.glob("*.png")} == scenes
