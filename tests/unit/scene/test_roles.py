"""The scene format says of every number that can be a parameter whether it is a property, or of one motion alone."""

import re
from typing import get_args

import numpy as np
import pytest

from add.errors import InputError
from add.scene.spec.common import Role, Spec
from add.scene.spec.contact import ContactSpec
from add.scene.spec.couplings import SpringSpec
from add.scene.spec.rigid import RigidBodySpec
from add.scene.spec.roles import limits, role_of
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


def _kinds(of):
    """Every class of the format below one."""
    for kind in of.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _is_numeric(annotation):
    return annotation is float or any(map(_is_numeric, get_args(annotation)))


def test_numbers_say_their_units():
    """What makes numbers of a scene reads units from the format: a field without one is no number, or says whose."""
    silent = [
        f"{kind.__name__}.{key}: {field.description}"
        for kind in {*_kinds(Spec)}
        if kind.role is not None and kind.__module__.startswith("add.")
        for key, field in kind.model_fields.items()
        if _is_numeric(field.annotation) and field.description and not kind.unit_of(key)
    ]
    whose = re.compile("in the unit of|numbers of the formula|direction")
    assert [text for text in silent if not whose.search(text)] == []
    assert len(silent) > 10
    assert SpringSpec.unit_of("stiffness") == "N/m"
    assert RigidBodySpec.unit_of("inertia") == "kg m^2"


def test_numbers_in_lists_have_limits():
    """A restitution, in a row of `pairs`, stays within (0, 1] as a friction above zero."""
    contact = ContactSpec.model_validate({"pairs": [{"body": "a", "obstacle": "b", "restitution": 0.5}]})
    assert limits(contact, "pairs.0.restitution")[:3] == (0.0, 1.0, True)
    assert limits(contact, "friction")[:3] == (0.0, np.inf, False)
