"""Results of entries in files, one each, and the page that is written from them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from scripts.reproduction.entry import ROOT, Entry, Outcome
from scripts.reproduction.published import PUBLISHED

HEAD = (
    "# The paper's figures and tables",
    "Written by `scripts/reproduce.py` (`make reproduce`) from the results in `scripts/reproduction/results`; do not "
    "edit.",
    "One section per figure and table of Geilinger, Hahn, Zehnder, Bächer, Thomaszewski, Coros, *ADD*, ACM TOG "
    "39(6):190, 2020, with what was published beside what `add` gives. *Paper*: four cores at 3.5 GHz, C++. *Original "
    "program*: the authors' C++ program on the meshes of this repository, which stand in for the paper's unpublished "
    "ones, one thread at 2.5 GHz. *Ours*: {runs}. Times are processor seconds without compilation; a section says "
    "where a run was bounded. The last sections are experiments with [hard contact](../cones.md) after Le Lidec, "
    "Kalevatykh, Laptev, Schmid, Carpentier, *Differentiable simulation for physical system identification*, RA-L "
    "6(2):3413, 2021, with [robots](../robots.md#articulated-bodies) after Werling, Omens, Lee, Exarchos, Liu, RSS "
    "2021, and Qiao, Liang, Koltun, Lin, ICML 2021, and with [soft robots](../soft-robots.md) after Qiao, Liang, "
    "Koltun, Lin, *Differentiable simulation of soft multi-body systems*, NeurIPS 2021; with [cloth](../cloth.md) and "
    "many bodies after Liang, Lin, Koltun, NeurIPS 2019, and Qiao, Liang, Koltun, Lin, ICML 2020. The programs of "
    "the last two, and those that they are compared with (ChainQueen, networks by DDPG and PPO), are not here and were "
    "not run: beside ours stand published numbers, and one step by impact zones written anew.",
)
FULL = "full runs, one thread on a machine with two cores"
SHORT = "SHORT RUNS, coarse and cut off: the numbers say nothing"


@final
@dataclass(frozen=True)
class Pack:
    """Where results, pictures and page are.

    Attributes
    ----------
    results, images : folders
    page : Path
    link : str
        Of the folder of pictures, as the page says it.
    """

    results: Path
    images: Path
    page: Path
    link: str

    @classmethod
    def committed(cls) -> Pack:
        """Return the pack of the repository."""
        docs = ROOT / "docs" / "studies"
        results = ROOT / "scripts" / "reproduction" / "results"
        return cls(results, docs / "images" / "reproduction", docs / "reproduction.md", "images/reproduction")

    @classmethod
    def in_folder(cls, folder: Path) -> Pack:
        """Return a pack that has a folder to itself."""
        return cls(folder / "results", folder / "images", folder / "reproduction.md", "images")

    def load(self, key: str) -> dict[str, Any] | None:
        """Return what is kept of an entry."""
        path = self.results / f"{key}.json"
        if not path.is_file():
            return None
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return kept

    def values(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the values of every entry that is kept."""
        keys = sorted(path.stem for path in self.results.glob("*.json"))
        return {key: (self.load(key) or {}).get("values", {}) for key in keys}

    def keep(self, entry: Entry, outcome: Outcome, seconds: float, *, short: bool) -> None:
        """Keep what an entry found."""
        self._write(entry, {"short": short, "wall_seconds": round(seconds), **asdict(outcome)})

    def keep_skipped(self, entry: Entry, reason: str) -> None:
        """Keep why an entry did not run, unless it ran before."""
        if self.load(entry.key) is None:
            self._write(entry, {"short": False, "skipped": reason})

    def _write(self, entry: Entry, kept: dict[str, Any]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        text = json.dumps(kept, indent=1, ensure_ascii=False)
        (self.results / f"{entry.key}.json").write_text(text + "\n", encoding="utf-8")

    def write_page(self) -> None:
        """Write the page from what is kept."""
        from scripts.reproduction.entries import ENTRIES

        kept = {key: self.load(key) for key in ENTRIES}
        short = any(item is not None and item["short"] for item in kept.values())
        runs = SHORT if short else FULL
        sections = ["\n\n".join(_wrapped(part.format(runs=runs)) for part in HEAD) + "\n"]
        sections += [self._section(ENTRIES[key], item) for key, item in kept.items()]
        self.page.parent.mkdir(parents=True, exist_ok=True)
        self.page.write_text("\n".join(sections).rstrip() + "\n", encoding="utf-8")

    def _section(self, entry: Entry, kept: dict[str, Any] | None) -> str:
        lines = [f"## {entry.title}", "", _wrapped(entry.about), ""]
        if kept is None:
            return "\n".join([*lines, f"Not run yet: `python -m scripts.reproduce --only {entry.key}`.", ""])
        if "skipped" in kept:
            return "\n".join([*lines, _wrapped(f"Skipped: {kept['skipped']}."), ""])
        if kept["rows"]:
            lines += ["| quantity | published | where | ours |", "|---|---|---|---|"]
            lines += [_line(row) for row in kept["rows"]]
            lines.append("")
        for name, caption in kept["images"].items():
            lines += [f"![{caption}]({self.link}/{name})", "", _wrapped(f"*{caption}*"), ""]
        for note in kept["notes"]:
            lines += [_wrapped(note), ""]
        return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _line(row: Mapping[str, Any]) -> str:
    published = PUBLISHED.get(row["published"] or "")
    text, source = (published.text, published.source) if published else ("", "")
    return f"| {row['quantity']} | {text} | {source} | {row['ours']} |"
