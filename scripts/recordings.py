"""The recordings that a study works on: those of its folder, or the files and folders that the command line names."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import add
from add.errors import InputError

SCENES = Path(__file__).parents[1] / "scenes"


@final
@dataclass(frozen=True)
class Recordings:
    """CSV files, told apart by how they were named.

    Attributes
    ----------
    named : files that were named one by one
    found : files of folders that were named, sorted in each folder
    """

    named: tuple[Path, ...]
    found: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return self.named + self.found

    def unseen(self, fitted: Mapping[str, str]) -> list[Path]:
        """Return what is to be predicted: files named one by one, and those of folders that were not fitted.

        Parameters
        ----------
        fitted : name -> `mark` of the files of a fit

        Raises
        ------
        InputError
            If nothing is left.
        """
        marks = set(fitted.values())
        left = [*self.named, *(file for file in self.found if mark(file) not in marks)]
        if not left:
            raise InputError(f"all {len(self.found)} recordings were fitted, and none is left to predict")
        return left


def usual(*folders: str) -> Path:
    """Return a folder below the environment variable ADD_DATA.

    Raises
    ------
    InputError
        Without the variable.
    """
    root = os.environ.get("ADD_DATA")
    if not root:
        raise InputError("set ADD_DATA to the folder of the recordings, or name files or folders")
    return Path(root).joinpath(*folders)


def recordings(named: Sequence[Path], *folders: str) -> Recordings:
    """Return the recordings in ``named`` files and folders; without any, those of the `usual` folder.

    Raises
    ------
    InputError
        If a path is not there, a folder has no ``*.csv``, or ADD_DATA is needed and not set.
    """
    files, found = [], []
    for path in (path.resolve() for path in named or [usual(*folders)]):
        if path.is_dir():
            inside = sorted(path.glob("*.csv"))
            if not inside:
                raise InputError("no recordings", file=path, found="a folder without *.csv", expected="CSV files")
            found += inside
        elif path.is_file():
            files.append(path)
        else:
            raise InputError("no recordings", file=path, found="nothing of this name", expected="a file or a folder")
    return Recordings(tuple(files), tuple(found))


def scene_of_study(name: str, file: Path) -> add.Scene:
    """Return a scene of the repository with a recording of the study in place of its own, which need not be there."""
    raw = json.loads((SCENES / f"{name}.json").read_text(encoding="utf-8"))
    raw["recording"]["file"] = str(file)
    return add.scene_from_dict(raw, folder=SCENES)


def mark(file: Path) -> str:
    """Return a short hash of a file's content, by which it is known again wherever it lies."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def marks(files: Sequence[Path]) -> dict[str, str]:
    """Return name -> `mark` of files."""
    return {file.stem: mark(file) for file in files}


def read_result(result: Path) -> tuple[dict[str, float], dict[str, str]]:
    """Return the values that a fit left in a file, and the `marks` of what it was fitted to.

    Raises
    ------
    InputError
        If the file is not there, or is not that of a fit.
    """
    if not result.is_file():
        raise InputError("no result of a fit: run `fit` first, or name its file with --result", file=result)
    values = json.loads(result.read_text(encoding="utf-8"))
    fitted = values.pop("fitted", None) if isinstance(values, dict) else None
    if not isinstance(fitted, dict):
        raise InputError("not the result of a fit", file=result, place="fitted", found=type(fitted).__name__,
                         expected="an object with a name and a mark for each recording")  # fmt: skip
    return values, fitted


def arguments(doc: str | None, result: Path) -> argparse.ArgumentParser:
    """Return the command line of a study that fits and predicts.

    Parameters
    ----------
    doc : its description
    result : where what was found is kept if ``--result`` does not say
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("fit", "predict"), help="fit, then predict; or predict alone")
    parser.add_argument("recordings", nargs="*", type=Path, metavar="RECORDING", help="CSV file, or folder of them")
    parser.add_argument("--result", type=Path, default=result, help="file of what was found (default %(default)s)")
    return parser
