"""The published schema and reference page are those of the format."""

import json

from support.places import ROOT

from add.scene.spec.roles import json_schema, schema_text
from scripts.make_scene_reference import reference_page

DOCS = ROOT / "docs"
REMEDY = "run scripts/make_scene_reference.py"


def test_committed_schema_is_up_to_date():
    assert (DOCS / "add-scene-1.schema.json").read_text(encoding="utf-8") == schema_text(), REMEDY


def test_committed_reference_is_up_to_date():
    assert (DOCS / "scene-reference.md").read_text(encoding="utf-8") == reference_page(), REMEDY


def test_schema_says_which_it_is():
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["$id"] == "urn:add-scene:1"
    assert schema["additionalProperties"] is False


def test_every_field_is_described():
    for name, node in [("Scene", json_schema()), *json_schema()["$defs"].items()]:
        assert node.get("description"), name
        for key, item in node["properties"].items():
            assert item.get("description"), f"{name}.{key}"


def test_references_exist():
    text = json.dumps(json_schema())
    defined = json_schema()["$defs"]
    for part in text.split('"$ref": "#/$defs/')[1:]:
        assert part.split('"')[0] in defined
