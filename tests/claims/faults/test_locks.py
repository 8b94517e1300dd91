"""One process at a time works in a run folder; one that was killed leaves no lock behind."""

import json
import os
import signal

import pytest
from faults.runs import FIT, scene
from support.processes import Forked, wait_until

from add.commands.cli import main
from add.commands.folders import remains
from add.commands.simulate import simulate_scene
from add.errors import InputError
from add.io.lock import LOCK, Holder, holder_of
from add.io.runfolder import RunFolder
from add.scene import scene_from_dict


def other(folder, command="sweep"):
    """Take the lock of a folder as another process would: by a lock of its own on the file."""
    lock = RunFolder(folder, overwrite=True)
    return lock.locked(command)


def test_a_second_process_is_told_who_works_there(tmp_path):
    with other(tmp_path / "run"):
        again = RunFolder(tmp_path / "run")
        with pytest.raises(InputError, match=rf"in use by `add sweep`, process {os.getpid()} of .* since 2"):
            simulate_scene(scene_from_dict(scene(3)), again)
        assert holder_of(tmp_path / "run").command == "sweep"
    assert not (tmp_path / "run" / LOCK).exists() and holder_of(tmp_path / "run") is None
    simulate_scene(scene_from_dict(scene(3)), again)


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "scene.json", "--force"),
        ("simulate", "scene.json", "--resume"),
        ("optimize", "scene.json", "--force"),
        ("optimize", "scene.json", "--resume"),
        ("sweep", "scene.json", "--parameter", "contact.friction=0.1:0.5:2"),
    ],
)
def test_every_command_asks(tmp_path, arguments, monkeypatch):
    from click.testing import CliRunner

    from add.commands.cli import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.json").write_text(json.dumps(scene(3) | FIT))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "scene.json").write_text("{}")
    with other(tmp_path / "run", "optimize"):
        end = CliRunner().invoke(cli, [*arguments, "-o", "run"])
    assert end.exception.exit_code == 2 and "in use by `add optimize`" in str(end.exception)
    assert (tmp_path / "run" / "scene.json").read_text() == "{}", "nothing was removed"


def test_a_run_that_has_only_half_a_file_yet(tmp_path):
    """It is no run, and not in the way either: somebody works there."""
    with other(tmp_path):
        (tmp_path / ".half of scene.json").touch()
        with pytest.raises(InputError, match="in use by `add sweep`"):
            RunFolder(tmp_path)
        read = RunFolder(tmp_path, create=False)
        assert read.command is None and remains(read).kept == "nothing yet"
    with pytest.raises(InputError, match="not the folder of a run"):
        RunFolder(tmp_path, create=False)
    with pytest.raises(InputError, match="holds other things than a run"):
        RunFolder(tmp_path)


def test_a_lock_that_was_left_is_free(tmp_path):
    """The file says something, but nobody holds it."""
    (tmp_path / LOCK).write_text(json.dumps(Holder.this_process("optimize")._asdict() | {"pid": 1}))
    assert holder_of(tmp_path) is None
    with RunFolder(tmp_path).locked("simulate"):
        assert holder_of(tmp_path).command == "simulate"


@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"pid": "x"}'])
def test_a_damaged_lock_is_free(tmp_path, content):
    (tmp_path / LOCK).write_text(content)
    assert holder_of(tmp_path) is None
    with RunFolder(tmp_path).locked("simulate"):
        pass


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match="is a link"), RunFolder(tmp_path / "run").locked("simulate"):
        pass
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_run_that_was_killed_at_its_first_file_is_replaced(tmp_path):
    """It has left its lock and what it was writing."""
    (tmp_path / LOCK).touch()
    (tmp_path / ".add-95200f4318fc6d11.5bce00005cd3.scene.json").touch()
    RunFolder(tmp_path, overwrite=True)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="other things"):
        RunFolder(tmp_path, overwrite=True)


def test_two_processes(tmp_path, monkeypatch, capsys):
    """The second is refused while the first works, and may begin when the first is killed."""
    monkeypatch.chdir(tmp_path)

    def ended(*arguments):
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        return end.value.code, *capsys.readouterr()

    (tmp_path / "scene.json").write_text(json.dumps(scene(200_000)))
    first = Forked(tmp_path, "simulate", "scene.json", "-o", "run", "-q")
    try:
        wait_until(lambda: holder_of(tmp_path / "run") is not None, first)
        assert holder_of(tmp_path / "run").pid == first.pid
        code, out, err = ended("simulate", "scene.json", "-o", "run", "--force", "-q")
        assert (code, out) == (2, "") and f"in use by `add simulate`, process {first.pid}" in err
        code, out, _ = ended("info", "run")
        assert code == 0 and f"running: `add simulate`, process {first.pid}" in out
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert holder_of(tmp_path / "run") is None and (tmp_path / "run" / LOCK).exists()
    (tmp_path / "scene.json").write_text(json.dumps(scene(3)))
    assert ended("simulate", "scene.json", "-o", "run", "--force", "-q")[0] == 0
