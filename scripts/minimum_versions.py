"""Print the lower bounds of pyproject.toml as constraints for pip: `numpy>=2.0,<3` becomes `numpy==2.0`."""

import re
import tomllib
from pathlib import Path


def minimum_versions(text: str) -> list[str]:
    """Return one constraint for each dependency of the package and of its tests, without its own extras."""
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dask"], *extras["robots"], *extras["view"]]
    found = [re.match(r"([A-Za-z0-9_.-]+)(?:\[.*\])?>=([0-9.]+)", item) for item in wanted]
    return sorted(f"{match[1]}=={match[2]}" for match in found if match)


if __name__ == "__main__":
    pyproject = Path(__file__).resolve().parents[1] / "pyproject.toml"
    print("\n".join(minimum_versions(pyproject.read_text(encoding="utf-8"))))
