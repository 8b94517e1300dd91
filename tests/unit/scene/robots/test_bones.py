"""Trees without shapes, and links whose meshes are not there, are drawn by bones."""

import numpy as np

from add.scene import scene_from_dict

ROD = {"mass": 1.0, "inertia": [0.02, 0.02, 0.02, 0, 0, 0], "center_of_mass": [0, 0, -0.3]}
CART = {"mass": 2.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}


def links(**shapes):
    """Build a cart on a slide that carries a rod; return its links."""
    tree = {
        "type": "articulated",
        "links": {"cart": CART, "rod": ROD, "hand": CART} | {name: ROD | more for name, more in shapes.items()},
        "joints": {
            "rail": {"type": "slide", "child": "cart", "axis": [1, 0, 0]},
            "pin": {"parent": "cart", "child": "rod", "axis": [0, 1, 0], "position": [0, 0.1, 0]},
            "wrist": {"parent": "rod", "child": "hand", "axis": [0, 1, 0], "position": [0, 0, -0.5]},
        },
    }
    scene = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"a": tree}}
    model = scene_from_dict(scene).build().model
    return {name: model.body(f"a/{name}") for name in ("cart", "rod", "hand")}


def volume(body):
    return np.linalg.det(body.vertices[body.triangles]).sum() / 6.0


def test_a_bone_leads_to_each_joint():
    found = links()
    assert np.array_equal(found["cart"].vertices[[0, 5]], [[0, 0, 0], [0, 0.1, 0]])
    assert np.array_equal(found["rod"].vertices[[0, 5]], [[0, 0, 0], [0, 0, -0.5]])
    # Nothing further out, and the centre of mass in the joint: as wide as the gyration, sqrt(tr I / 2 m).
    radius = np.sqrt(0.5 * 0.3 / 2.0)
    assert np.allclose(np.linalg.norm(found["hand"].vertices, axis=1), radius)
    assert np.isclose(volume(found["hand"]), 4.0 / 3.0 * radius**3)  # closed, its normals outwards
    assert np.isclose(volume(found["rod"]), 2.0 / 3.0 * 0.04**2 * 0.5)


def test_bones_are_not_drawn_beside_shapes():
    found = links(rod={"shapes": [{"geometry": {"shape": "sphere", "radius": 0.1}}]})
    assert not found["cart"].vertices.size and not found["hand"].vertices.size and len(found["rod"].vertices) > 6


def test_bones_touch_nothing():
    rod = links()["rod"]
    assert not rod.points.size and not rod.shapes and rod.contact_mesh() is None


def test_a_link_whose_mesh_is_not_there_has_a_bone(tmp_path):
    """The shoulder carries a joint where its own is: its bone ends in its centre of mass, however inert it is."""
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    inertial = '<inertial><origin xyz="{}"/><mass value="1"/>' + inertia + "</inertial>"
    seen = '<visual><geometry><mesh filename="package://gone/{}.stl"/></geometry></visual>'
    finger = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    shoulder, arm, hand = inertial.format("0 0 -0.05"), inertial.format("0 0 0.2"), inertial.format("0 0 0")

    def joint(name, parent, child, place):
        limit = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
        ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/>'
        return f'<joint name="{name}" type="revolute">{ends}{limit}</joint>'

    (tmp_path / "r.urdf").write_text(
        f"""<robot name="r"><link name="base"/><link name="shoulder">{shoulder}{seen.format("a")}</link>
        <link name="arm">{arm}{seen.format("b")}</link><link name="hand">{hand}{finger}</link>
        {joint("a", "base", "shoulder", "0 0 1")}{joint("b", "shoulder", "arm", "0 0 0")}
        {joint("c", "arm", "hand", "0 0 0.4")}</robot>"""
    )
    body = {"type": "articulated", "model": str(tmp_path / "r.urdf")}
    scene = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"r": body}}
    model = scene_from_dict(scene).build().model
    drawn = {name: model.body(f"r/{name}").vertices for name in ("shoulder", "arm", "hand")}
    assert np.allclose(drawn["shoulder"][[0, 5]], [[0, 0, 0], [0, 0, -0.05]])
    assert np.allclose(drawn["arm"][[0, 5]], [[0, 0, 0], [0, 0, 0.4]])
    assert np.allclose(np.abs(drawn["hand"]), 0.05)
