"""Commands of add in processes of their own, forked from one that has imported it: each start saves a second or two.

They are stopped and killed like others. What asks how an interpreter begins and ends starts one.
"""

import multiprocessing
import os
import signal
import time

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["add.commands.cli", "add.commands.simulate", "add.commands.optimize", "add.commands.report", "add.scene"]
)


def signals_as_usual():
    """Answer signals as from a terminal: a test run in the background may have been told to ignore them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _main(folder, arguments, out, err, stepped):
    """Run a command in a folder with these ends of pipes; touch the file ``stepped`` once a step is done."""
    for end, number in ((out, 1), (err, 2)):
        os.dup2(end.fileno(), number)
        end.close()
    os.chdir(folder)
    signals_as_usual()
    from add.commands.cli import main

    if stepped is not None:
        from support.says_stepped import say_stepped

        say_stepped(stepped)
    main(arguments)


class Forked:
    """A command that is at work; the methods are those of `subprocess.Popen`."""

    def __init__(self, folder, *arguments, stepped=None):
        readers, writers = zip(*(multiprocessing.Pipe(duplex=False) for _ in range(2)), strict=True)
        texts = [str(argument) for argument in arguments]
        self._process = FORKS.Process(target=_main, args=(str(folder), texts, *writers, stepped), daemon=True)
        self._process.start()
        for end in writers:
            end.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno()), encoding="utf-8") for end in readers)
        for end in readers:
            end.close()

    @property
    def pid(self):
        return self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=None):
        """Wait for its end; return what it has printed."""
        self._process.join(timeout)
        assert self.poll() is not None, f"still at work after {timeout} s"
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()


def wait_until(condition, process, limit=300.0):
    """Wait until something holds while a process is at work."""
    end = time.monotonic() + limit
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise AssertionError(f"too late: {process.communicate()}")
        time.sleep(0.002)
