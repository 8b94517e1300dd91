"""The scene format says of every number that can be a parameter whether it is a property, or of one motion alone."""

import re

import pytest

from add.errors import InputError
from add.scene.spec.common import Role
from add.scene.spec.roles import role_of
from scripts.make_parameter_page import PAGE

#: Words of the format for what is not the same in every motion.
_OF_ONE_MOTION = re.compile(r"where .* starts|where it starts|how fast it starts|initial .*velocity|over time")
#: Every kind of path and its words; `tests/claims/test_generated_pages.py` keeps the page complete.
ROWS = re.findall(r"^\| `([a-z][^`]*)` \| [^|]* \| [^|]* \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)


def test_every_parameter_says_what_it_is():
    assert len(ROWS) > 100
    for path, words in ROWS:
        role = role_of(re.sub(r"<\w+>", "x", path.replace("<k>", "0")))  # raises where the format does not say
        assert not (_OF_ONE_MOTION.search(words) and role is Role.PROPERTY), f"{path} is no property: {words}"


@pytest.mark.parametrize("path", ["bodies.x.colour", "contact.nothing.at.all", "time.dt"])
def test_what_is_no_parameter_has_no_role(path):
    with pytest.raises(InputError, match="scene format"):
        role_of(path)
