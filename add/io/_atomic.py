"""Files that are there whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path in the same folder; on success it replaces ``path``, on an exception it is removed."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")  # keeps the suffix, by which writers choose a format
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
