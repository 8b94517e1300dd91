"""Write `docs/scene-reference.md` and `docs/add-scene-1.schema.json` from the scene format."""

from pathlib import Path

from add.scene.spec.roles import reference_page, schema_text


def main() -> None:
    docs = Path(__file__).resolve().parents[1] / "docs"
    (docs / "scene-reference.md").write_text(reference_page(), encoding="utf-8")
    (docs / "add-scene-1.schema.json").write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
