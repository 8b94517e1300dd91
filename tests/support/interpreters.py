"""Programs in interpreters that have loaded numba and nothing of `add`: each start saves half a second.

They are forked from one process and have its seed of hashes: what might depend on that asks a new interpreter, too.
"""

import json
import os
import subprocess
import sys

_SERVER = """
import json, os, sys, tempfile, traceback
import numba
for line in sys.stdin:
    folder, code = json.loads(line)
    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if not child:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.chdir(folder)
                sys.path.insert(0, folder)
                exec(code, {"__name__": "__main__"})
                status = 0
            except BaseException:
                traceback.print_exc(file=sys.stdout)
            finally:
                sys.stdout.flush()
                os._exit(status)
        status = os.waitpid(child, 0)[1]
        out.seek(0)
        print(json.dumps([status, out.read()]), flush=True)
"""


class Interpreters:
    """The process that they are forked from."""

    def __init__(self):
        env = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
        command = [sys.executable, "-P", "-c", _SERVER]
        self._server = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def printed(self, folder, code):
        """Run a program in a folder; return the words that it prints."""
        self._server.stdin.write(json.dumps([str(folder), code]) + "\n")
        self._server.stdin.flush()
        status, text = json.loads(self._server.stdout.readline())
        assert status == 0, text
        return text.split()

    def end(self):
        self._server.communicate()
