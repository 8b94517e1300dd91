"""The resources that this machine has left: memory, and room on its disks."""

from __future__ import annotations

import shutil
from os import PathLike
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> float:
    """Return the free memory [bytes], caches that can be dropped included; infinite where the system does not say.

    In a container, what its own limit leaves.
    """
    return min(_system(), _group())


def _system() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return float("inf")


def _group() -> float:
    try:
        limit = float((_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" where there is none
        used = float((_GROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0.0, limit - used + float(stat.get("inactive_file", 0.0)))
    except (OSError, ValueError):
        return float("inf")


def free_disk(folder: str | PathLike[str]) -> float:
    """Return the free room where a folder is, or will be made [bytes]; infinite where the system does not say."""
    place = Path(folder).absolute()
    for path in (place, *place.parents):
        if path.is_dir():
            try:
                return float(shutil.disk_usage(path).free)
            except OSError:
                break
    return float("inf")
