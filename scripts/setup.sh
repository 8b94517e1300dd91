#!/usr/bin/env bash
# Make the virtual environment $VENV and install this checkout in it, editable. Cheap when nothing changed.
#
#   VENV    where (default .venv in the checkout)        PYTHON  interpreter to build it with (default: the first >= 3.11)
#   EXTRAS  extras of pyproject.toml (default test)
#   CONSTRAINTS  versions for pip (default constraints.txt, those that the tests run with)
#   APT=no  never asks apt-get for a missing library; without it, that is done for root alone (nothing here calls sudo)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=${VENV:-.venv}
extras=${EXTRAS:-test}
constraints=${CONSTRAINTS:-constraints.txt}
python="$venv/bin/python"
stamp="$venv/.add-setup"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

apt_install() {  # reason, packages: adds what is missing; never upgrades or removes anything. 0 if something was added
    local name missing=() reason=$1
    shift
    [ "${APT:-yes}" != no ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 1
    say "$reason; you are root, so now: apt-get update, apt-get install ${missing[*]} (APT=no leaves this to you)"
    # The list of packages may be old or absent; apt-get's own messages go to stderr, so that stdout stays ours.
    apt-get update -qq >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        --no-upgrade --no-remove "${missing[@]}" </dev/null >&2
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

make_venv() {
    local base version
    if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
        die "$venv exists and is not a virtual environment; choose another place with VENV=..."
    fi
    base=$(find_python) || die "needs Python 3.11 or newer${PYTHON:+ (PYTHON=$PYTHON is not)}; on Debian or Ubuntu: apt-get install python3.11 python3.11-venv"
    version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "making $venv with Python $version ($(command -v "$base"))"
    # Debian and Ubuntu keep ensurepip, without which venv makes no pip, in a package of its own.
    if ! "$base" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "Python $version has no ensurepip, which makes environments" "python$version-venv" || say "no ensurepip, and python$version-venv could not be installed"
    fi
    if "$base" -c 'import ensurepip, venv' 2>/dev/null; then
        "$base" -m venv --clear "$venv"
    elif "$base" -m virtualenv --version >/dev/null 2>&1; then
        "$base" -m virtualenv --clear -q "$venv"
    elif command -v virtualenv >/dev/null; then
        virtualenv --clear -q -p "$base" "$venv"
    else
        die "cannot make a virtual environment: Python $version has no ensurepip and there is no virtualenv." \
            "On Debian or Ubuntu: apt-get install python$version-venv"
    fi
}

can_render() {  # in a process of its own, since a missing driver may end it
    timeout 120 "$python" - >/dev/null 2>&1 <<'PY'
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(64, 64))
plotter.add_mesh(pyvista.Sphere())
image = plotter.screenshot(return_img=True)
raise SystemExit(int(image.std() == 0))  # SystemExit takes numpy's False for a failure
PY
}

# One set-up at a time; the lock is on this file, so that none is left behind.
if command -v flock >/dev/null; then
    exec 9<"$root/scripts/setup.sh"
    flock 9
fi

if ! "$python" -m pip --version >/dev/null 2>&1; then
    make_venv
fi

cholmod_h() {  # the header that CHOLMOD's extra is built against, where SuiteSparse's development files are
    local folder
    for folder in ${SUITESPARSE_INCLUDE_DIR:-} /usr/include/suitesparse /usr/include /usr/local/include/suitesparse \
        /usr/local/include /opt/homebrew/include/suitesparse "${CONDA_PREFIX:-/nowhere}/include/suitesparse"; do
        if [ -f "$folder/cholmod.h" ]; then
            echo "$folder/cholmod.h"
            return
        fi
    done
}

suitesparse=$(cholmod_h)
want=$({ echo "$root $extras $suitesparse"; "$python" --version; cat pyproject.toml setup.cfg "$constraints"; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    exit 0
fi

say "installing the package and its dependencies [$extras] in $venv"
"$python" -m pip install --quiet --editable ".[$extras]" --constraint "$constraints"

# Optional: without it scenes that ask for CHOLMOD are refused, and its tests are skipped.
if [ -n "$suitesparse" ] && ! "$python" -c 'import sksparse.cholmod' 2>/dev/null; then
    say "SuiteSparse is here ($suitesparse): building the extra cholmod"
    "$python" -m pip install --quiet --editable ".[cholmod]" --constraint "$constraints" ||
        say "the extra cholmod could not be built; everything else is fine"
fi

# VTK's wheel imports without any system library; to draw without a display it loads EGL or OSMesa at run time.
if ! can_render; then
    missing="a picture could not be drawn without a display, for want of a system library"
    if apt_install "$missing" libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libxrender1 && can_render; then
        say "off-screen rendering works now"
    else
        say "off-screen rendering does not work: pictures and films will fail, everything else is fine." \
            "On Debian or Ubuntu: apt-get install libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libxrender1"
    fi
fi

echo "$want" >"$stamp"
say "done"
