"""Small robot files for tests."""

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'


def link(name, inertial=INERTIAL, more=""):
    return f'<link name="{name}">{inertial}{more}</link>'


def inertial(mass=1.0, moments=(0.1, 0.1, 0.1), products=(0, 0, 0), origin=""):
    xx, yy, zz = moments
    xy, xz, yz = products
    return (
        f'<inertial>{origin}<mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial>'
    )


def joint(name, parent, child, kind="revolute", more='<limit lower="-1" upper="1" effort="5" velocity="2"/>'):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{more}</joint>'
    )


def urdf(*parts, name="small"):
    """One element a line, so that errors can name lines: the first part stands in line 2."""
    return "\n".join([f'<robot name="{name}">', *parts, "</robot>"])


def written(folder, text, name="small.urdf"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
