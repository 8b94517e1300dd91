"""Files that are no robots, or were made to do harm: one clear error each, at once."""

import random
import re
import time

import pytest
from support.robot_files import joint, link, urdf, written

from add.errors import InputError
from add.scene.robots import read_robot
from add.scene.robots.xml_file import ELEMENTS, LARGEST

GOOD = urdf(link("base"), link("arm"), joint("turn", "base", "arm"))
BOMB = '<!ENTITY a0 "lol">' + "".join(f'<!ENTITY a{k} "&a{k - 1};&a{k - 1};">' for k in range(1, 40))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not XML: no element found"),
        (b"{}", "line 1: not XML"),
        (b"\x00\x01\x02" * 50, "not XML"),
        (GOOD[: len(GOOD) // 2].encode(), r"line \d: not XML: (no element found|unclosed token)"),
        (f"<!DOCTYPE r [{BOMB}]>{GOOD}".encode(), "line 1: has a document type"),
        (b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>', "line 1: has a document type"),
        (b'<!DOCTYPE robot SYSTEM "http://example.org/x.dtd"><robot/>', "line 1: has a document type"),
        (b'<robot name="&x;"/>', "line 1: not XML: undefined entity"),
        (b'<?xml version="1.0" encoding="klingon"?><robot/>', "not XML: unknown encoding"),
        (b'<robot a="1" a="2"/>', "line 1: not XML: duplicate attribute"),
        (b"<robot></robot><robot/>", "line 1: not XML: junk after document element"),
        (b"<a>" * 200 + b"</a>" * 200, "line 1: too many elements"),
        (b"<robot>" + b"<a/>" * (ELEMENTS + 1) + b"</robot>", "line 1: too many elements"),
        (b"<html/>", "line 1: not a robot's file .found <html>; expected <robot> .URDF., <mujoco> .MJCF. or <sdf>"),
        (b"<sdf/>", "line 1, <sdf>: has 0 models that move"),
        (b"<skel/>", "a SKEL file, which is not read"),
        (b"<robot/>", "robot: has no links"),
    ],
)
def test_one_clear_error(content, message, tmp_path):
    path = tmp_path / "file.urdf"
    path.write_bytes(content)
    start = time.process_time()
    with pytest.raises(InputError) as caught:
        read_robot(path)
    said = str(caught.value)
    assert re.search(message, said) and said.startswith(str(path)) and "\n" not in said and len(said) < 500
    assert time.process_time() - start < 10.0


def test_too_large(tmp_path):
    path = tmp_path / "huge.urdf"
    with path.open("wb") as file:
        file.truncate(int(LARGEST) + 1)
    with pytest.raises(InputError, match="too large"):
        read_robot(path)


def test_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_robot(tmp_path / "a.urdf")
    with pytest.raises(InputError, match="is a folder"):
        read_robot(tmp_path)


def test_the_other_format(tmp_path):
    for text, found in (("<skel/>", "<skel>, a SKEL file"), ("<html/>", "<html>")):
        with pytest.raises(InputError, match=f"not a robot's file .found {found}"):
            read_robot(written(tmp_path, text))
    with pytest.raises(InputError, match="option `srdf` is for URDF files"):
        read_robot(written(tmp_path, "<mujoco/>"), srdf="x")


def test_comments_namespaces_and_encodings(tmp_path):
    """Declarations of namespaces that nothing uses, comments, instructions, marks of byte order are no matter."""
    text = '<?xml version="1.0"?>\n<!-- made by xacro -->\n<?hint x?>\n' + GOOD.replace(
        '<robot name="small">', '<robot name="small" xmlns:xacro="http://ros.org/wiki/xacro"><!-- <link/> -->'
    )
    assert read_robot(written(tmp_path, text)).mass == 1.0
    path = tmp_path / "small.urdf"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_robot(path).mass == 1.0
    path.write_text('<?xml version="1.0" encoding="utf-16"?>' + GOOD, encoding="utf-16")
    assert read_robot(path).mass == 1.0


def test_deep_chains_and_many_links(tmp_path):
    """Neither recursion nor quadratic time in what a file may have: 3000 links in a chain."""
    n = 3000
    parts = [link(f"l{k}") for k in range(n)]
    parts += [joint(f"j{k}", f"l{k}", f"l{k + 1}", "fixed", "") for k in range(n - 1)]
    start = time.process_time()
    robot = read_robot(written(tmp_path, urdf(*reversed(parts))), base="free")
    assert robot.mass == pytest.approx(n) and len(robot.frames) == n - 1
    assert time.process_time() - start < 10.0


def test_damaged_files(tmp_path):
    """300 files with letters changed, dropped or repeated: a robot or an InputError, nothing else."""
    rng = random.Random(1)
    read = 0
    for _ in range(300):
        letters = list(GOOD)
        for _ in range(rng.randint(1, 4)):
            k = rng.randrange(len(letters))
            letters[k] = rng.choice([rng.choice('<>/"0 .-eE&x'), "", letters[k] * 2])
        try:
            read_robot(written(tmp_path, "".join(letters)))
            read += 1
        except InputError as error:
            assert len(str(error)) < 1000
    assert 10 < read < 290
