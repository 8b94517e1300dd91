"""Contact classes: whose coefficients are whose, which rows win, what is refused."""

import numpy as np
import pytest

from add import InputError, scene_from_dict
from add.contact import BodyContact

BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 1.0}


def scene(pairs=(), classes=(None, None, None), **contact):
    """Return a scene of three boxes, "a", "b" and "c", of these classes, over a floor."""
    bodies = {
        name: BOX | {"position": [0.3 * k, 0, 0.06]} | ({"contact": {"class": label}} if label else {})
        for k, (name, label) in enumerate(zip("abc", classes, strict=True))
    }
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 2},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction": 0.4, "pairs": list(pairs), **contact},
    }


def friction(raw):
    """Return the coefficient of points of one body on the shape of another, by their names; None where they pass."""
    built = scene_from_dict(raw).build()
    (term,) = built.model.term(BodyContact)
    shapes = ["floor", "a", "b", "c"]
    out = {}
    for i, name in enumerate("abc"):
        row = term.group[term.owner == i][0]
        for o, other in enumerate(shapes):
            if other != name:
                index = term.pairs.c_f[row, term.shape_group[o]]
                out[name + other] = float(built.theta[index]) if o in term.met_shapes()[i] else None
    return built, out


def test_bodies_that_nobody_names_share_a_class():
    built, found = friction(scene())
    names = {e.name.rsplit(".", 1)[0] for e in built.model.system.parameters.entries if e.name.startswith("contact.")}
    assert names == {"contact.*.floor", "contact.*.*"}
    assert set(found.values()) == {0.4} and len(found) == 9


def test_a_body_alone_is_its_own_class():
    raw = scene()
    raw["bodies"] = {"a": raw["bodies"]["a"]}
    built = scene_from_dict(raw).build()
    assert "contact.a.floor.k_n" in built.model.system.parameters


def test_between_is_for_both_ways_and_body_with_obstacle_for_one():
    _, both = friction(scene([{"between": ["b", "a"], "friction": 0.1}]))
    assert both["ab"] == both["ba"] == 0.1
    assert {x for pair, x in both.items() if pair not in ("ab", "ba")} == {0.4}
    _, one = friction(scene([{"body": "a", "obstacle": "b", "friction": 0.1}]))
    assert one["ab"] == 0.1 and one["ba"] == 0.4


def test_a_class_stands_for_its_bodies_and_later_rows_win():
    rows = [
        {"between": ["wood", "wood"], "friction": 0.1},
        {"between": ["wood", "floor"], "friction": 0.2},
        {"between": ["floor", "b"], "friction": 0.9},
        {"between": ["a", "c"], "enabled": False},
    ]
    _, found = friction(scene(rows, ("wood", "wood", None)))
    assert found["ab"] == found["ba"] == 0.1
    assert (found["afloor"], found["bfloor"], found["cfloor"]) == (0.2, 0.9, 0.4)
    assert found["ac"] is None is found["ca"] and found["bc"] == found["cb"] == 0.4
    _, other = friction(scene([rows[2], rows[1]], ("wood", "wood", None)))
    assert other["bfloor"] == 0.2


def test_a_class_may_be_let_through_or_let_in():
    _, found = friction(scene([{"between": ["wood", "wood"], "enabled": False}], ("wood", "wood", None)))
    assert found["ab"] is None is found["ba"] and found["ac"] == found["cb"] == 0.4
    rows = [{"between": ["wood", "wood"]}]
    _, found = friction(scene(rows, ("wood", "wood", None), between_bodies=False))
    assert found["ab"] == found["ba"] == found["cfloor"] == 0.4 and found["ac"] is None is found["cb"]


def test_a_row_moves_the_parameters_of_its_classes():
    """The number of a row is one parameter, whatever many pairs it serves."""
    built, _ = friction(scene([{"between": ["wood", "floor"], "friction": 0.2}], ("wood", "wood", None)))
    numbers, layout = built.numbers, built.model.system.parameters
    dot = np.zeros(numbers.layout.n)
    dot[numbers.resolve("contact.pairs.0.friction")[0]] = 1.0
    moved = numbers.ties.pushforward(numbers.values, dot)
    names = {layout.describe(int(i)) for i in np.flatnonzero(moved)}
    assert names == {"contact.wood.floor.c_f"}


def test_bodies_on_a_joint_pass_unless_a_row_names_the_two():
    raw = scene([{"between": ["wood", "wood"], "friction": 0.1}], ("wood", "wood", None))
    raw["couplings"] = {"joint": {"type": "ball", "a": {"body": "a", "at": [0.1, 0, 0]}, "b": {"body": "b"},
                                  "stiffness": 100.0}}  # fmt: skip
    _, found = friction(raw)
    assert found["ab"] is None is found["ba"] and found["ac"] == 0.4
    raw["contact"]["pairs"] = [{"between": ["a", "b"]}]
    _, found = friction(raw)
    assert found["ab"] == found["ba"] == 0.4


@pytest.mark.parametrize(
    ("pairs", "classes", "place", "words"),
    [
        ([{"between": ["a", "wod"]}], ("wood", "wood", None), "contact.pairs.0.between", "'wood'"),
        ([{"between": ["a", "a"]}], (None,) * 3, "contact.pairs.0.between", "can meet a shape"),
        ([{"between": ["a", "b"], "body": "a"}], (None,) * 3, "contact.pairs.0", "two sides"),
        ([{"body": "a"}], (None,) * 3, "contact.pairs.0", "two sides"),
        ([{"between": ["a", "b"]}, {"between": ["b", "a"]}], (None,) * 3, "contact.pairs.1", "appears twice"),
        ([], ("b", None, None), "bodies.a.contact.class", "name of a body"),
        ([{"between": ["wood", "floor"], "restitution": 0.5}], ("wood", "wood", None), "contact.pairs.0.restitution",
         "two masses"),
    ],
)  # fmt: skip
def test_what_is_refused(pairs, classes, place, words):
    with pytest.raises(InputError) as error:
        scene_from_dict(scene(pairs, classes))
    assert place in str(error.value) and words in str(error.value)


def test_a_restitution_between_two_bodies():
    """Both ways, from both masses; a damping in a later row takes it away."""
    built, _ = friction(scene([{"between": ["a", "b"], "restitution": 0.5}]))
    view, theta = built.model.system.parameters.view, built.theta
    assert view(theta, "contact.a.b.k_d") == view(theta, "contact.b.a.k_d") > 0.0
    rows = [{"between": ["a", "floor"], "restitution": 0.5}, {"body": "a", "obstacle": "floor", "damping": 3.0}]
    built, _ = friction(scene(rows))
    assert built.model.system.parameters.view(built.theta, "contact.a.floor.k_d") == 3.0
