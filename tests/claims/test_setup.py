"""`scripts/setup.sh` and what it installs: apt-get is asked for a missing library only, and versions are bounded."""

import os
import re
import stat
import subprocess
import sys
import tomllib

import pytest
from support.places import ROOT

#: Plays the environment's Python: it installs nothing, and draws only where a file says that the library is there.
PYTHON = """#!/bin/bash
case "$*" in
  -) cat >/dev/null; [ -e "$FAKE/drawable" ] ;;
  --version) echo "Python 3.99.0" ;;
  "-c import sksparse.cholmod") [ -e "$FAKE/sksparse" ] ;;
  *) echo "$*" >>"$FAKE/python.log" ;;
esac
"""
APT = '#!/bin/bash\necho "$*" >>"$FAKE/apt.log"; [ "$1" = update ] || touch "$FAKE/drawable"\n'


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def setup(tmp_path):
    """Run setup.sh with an environment, apt-get, dpkg-query and id that only pretend."""
    script(tmp_path / "venv" / "bin" / "python", PYTHON)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    script(tmp_path / "bin" / "apt-get", APT)
    script(tmp_path / "bin" / "dpkg-query", "#!/bin/bash\nexit 1\n")

    def run(user=0, **variables):
        script(tmp_path / "bin" / "id", f"#!/bin/bash\necho {user}\n")
        env = os.environ | {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "VENV": str(tmp_path / "venv"),
            "FAKE": str(tmp_path),
        }
        done = subprocess.run(["bash", ROOT / "scripts" / "setup.sh"], env=env | variables, capture_output=True,
                              text=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, done.stderr
        log = tmp_path / "apt.log"
        return done.stderr, log.read_text().splitlines() if log.exists() else []

    return run


def test_nothing_is_asked_of_apt_where_nothing_is_missing(setup, tmp_path):
    (tmp_path / "drawable").touch()
    (tmp_path / "sksparse").touch()
    said, asked = setup()
    assert asked == [] and "apt-get" not in said
    installed = (tmp_path / "python.log").read_text()
    assert "--constraint constraints.txt" in installed
    said, _ = setup()
    assert said == "" and (tmp_path / "python.log").read_text().count("install") == 1, "nothing changed, nothing to do"


def test_a_missing_library_is_announced_before_it_is_installed(setup):
    said, asked = setup()
    assert [line.split()[0] for line in asked] == ["update", "install"]
    assert "for want of a system library; you are root, so now: apt-get update, apt-get install libegl1" in said
    assert said.index("you are root") < said.index("off-screen rendering works now")


@pytest.mark.parametrize(("user", "variables"), [(1000, {}), (0, {"APT": "no"})], ids=["not root", "APT=no"])
def test_apt_is_left_alone_where_the_user_did_not_choose_it(setup, user, variables):
    said, asked = setup(user, **variables)
    assert asked == []
    assert "off-screen rendering does not work" in said and "apt-get install libegl1" in said, "the remedy is named"


@pytest.mark.parametrize("built", [True, False])
def test_cholmod_is_built_where_suitesparse_is(setup, tmp_path, built):
    """And only there; where that fails, everything else is as it was."""
    (tmp_path / "drawable").touch()
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "cholmod.h").touch()
    if not built:
        python = (tmp_path / "venv" / "bin" / "python").read_text()
        script(tmp_path / "venv" / "bin" / "python", python.replace("  *)", "  *.[[]cholmod*) exit 1 ;;\n  *)"))
    said, _ = setup(SUITESPARSE_INCLUDE_DIR=str(tmp_path / "headers"))
    assert f"SuiteSparse is here ({tmp_path / 'headers' / 'cholmod.h'}): building the extra cholmod" in said
    assert ("could not be built; everything else is fine" in said) is not built
    log = (tmp_path / "python.log").read_text()
    assert (".[cholmod] --constraint constraints.txt" in log) is built
    assert said.endswith("setup: done\n")


def test_cholmod_that_is_there_is_left_alone(setup, tmp_path):
    (tmp_path / "drawable").touch()
    (tmp_path / "sksparse").touch()
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "cholmod.h").touch()
    said, _ = setup(SUITESPARSE_INCLUDE_DIR=str(tmp_path / "headers"))
    assert "SuiteSparse" not in said and ".[cholmod]" not in (tmp_path / "python.log").read_text()


def test_every_dependency_has_bounds_and_a_tested_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(item for extra in extras for item in extra)]
    pinned = dict(re.findall(r"(?m)^([\w.-]+)==(.+)$", (ROOT / "constraints.txt").read_text().lower()))
    for item in wanted:
        if item.startswith("add-sim"):
            continue
        name, low, high = re.fullmatch(r"([\w-]+)>=([\d.]+),<([\d.]+)", item).groups()
        if name == "line_profiler":  # for developers alone
            continue
        version = [int(x) for x in re.findall(r"\d+", pinned[name])[:3]]
        assert [int(x) for x in low.split(".")] <= version < [int(x) for x in high.split(".")], item


def test_minimum_versions_are_the_lower_bounds():
    found = subprocess.run([sys.executable, ROOT / "scripts" / "minimum_versions.py"], capture_output=True, text=True,
                           check=True, timeout=60).stdout.split()  # fmt: skip
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert len(found) == len([*project["dependencies"], *extras["dask"], *extras["robots"], *extras["view"]])
    assert all(f"{name}>={low}," in str(project) for name, low in (item.split("==") for item in found))
