"""The process that compiles beside a run which is the first of its kind (`add.commands.ahead`), begun and ended.

It loads nothing heavy: where no kernel is kept, the process is begun while the run itself still loads what it needs.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from add.machine.files import available_memory, idle_cores

#: Free memory from which on each of two processes may keep the 0.4 GB that compilation leaves [bytes].
_PLENTY = 4e9
#: Cores without work from which on two processes do not take each other's time, one of them asking.
_IDLE = 1.5


def nothing_kept() -> bool:
    """Return whether no kernel is kept on disk: whatever is run then is the first of its kind."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    place = Path(elsewhere) if elsewhere else Path(__file__).parents[1] / "kernels" / "__pycache__"
    return next(place.rglob("*.nbi"), None) is None


def begin(path: str) -> subprocess.Popen[bytes] | None:
    """Start the process for the scene of a file; not where there is no idle core for it."""
    leave_garbage()
    if idle_cores() < _IDLE:
        return None
    silent: dict[str, Any] = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
    try:
        # -P: what lies in the folder of the user is no module of the program.
        return subprocess.Popen([sys.executable, "-P", "-m", "add.commands.ahead", path, str(os.getpid())], **silent)
    except OSError:  # no process to be had: the run compiles alone
        return None


def ended(process: subprocess.Popen[bytes]) -> None:
    """End the process, whatever it is at: files of kernels are written as wholes."""
    process.kill()
    process.wait()


def leave_garbage() -> None:
    """Collect no cycles of what compilation makes, a twelfth of its time, where there is memory for them."""
    if available_memory() > _PLENTY:
        gc.set_threshold(20_000_000)
