"""Processes that are forked beside those of `--jobs`."""

import multiprocessing
import time

import pytest

from add.commands.parallel.workers import LocalProcesses


class Doubling:
    def prepare(self):
        return lambda x: 2 * x


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="nothing is forked here")
def test_processes_of_others_end_where_they_are_told_to():
    """They are forked from the same process, which was started deaf to SIGTERM."""
    with LocalProcesses(2).session(Doubling()) as session:
        assert sorted(session.spread([1, 2, 3])) == [(1, 2), (2, 4), (3, 6)]
    other = multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(60,))
    other.start()
    other.terminate()
    other.join(10)
    assert other.exitcode == -15
