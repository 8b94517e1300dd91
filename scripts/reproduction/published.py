"""The published numbers, in one place.

*Paper*: Geilinger, Hahn, Zehnder, Bächer, Thomaszewski, Coros, "ADD: analytically differentiable dynamics for
multi-body systems with frictional contact", ACM TOG 39(6):190, 2020; times on four cores at 3.5 GHz. *Original
program*: the authors' C++ program on the meshes of this repository (its own were never published), one thread at 2.5
GHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

TABLE_1, TABLE_2, TEXT = "paper, Table 1", "paper, Table 2", "paper, text"
ORIGINAL = "original program"
LE_LIDEC, NIMBLE = "Le Lidec et al. 2021", "nimblephysics, issue 97"
QIAO = "Qiao et al. 2021"
QIAO_SCALABLE, LIANG = "Qiao et al. 2020", "Liang et al. 2019"
QIAO_SOFT = "Qiao et al., NeurIPS 2021"
WERLING, WERLING_FIGURE = "Werling et al. 2021, Table III", "Werling et al. 2021, Fig. 7"


@final
@dataclass(frozen=True)
class Published:
    """A number as it was printed, and where."""

    text: str
    source: str


def _table(source: str, numbers: dict[str, str]) -> dict[str, Published]:
    return {key: Published(text, source) for key, text in numbers.items()}


PUBLISHED: dict[str, Published] = {
    **_table(
        TABLE_1,
        {
            "fig2.seconds.linear": "26.24",
            "fig2.seconds.tanh": "30.86",
            "fig2.seconds.hybrid": "31.2",
            "fig2.seconds.sqp": "66.78",
            "fig5.seconds.linear": "119.2",
            "fig5.seconds.tanh": "178.5",
            "fig5.seconds.hybrid": "180.8",
            "fig10a.seconds.0": "6.92",
            "fig10a.seconds.1": "8.65",
            "fig10a.seconds.2": "8.62",
            "fig10a.optimisation.0": "27.3",
            "fig10a.optimisation.1": "222.5",
            "fig10a.optimisation.2": "265.2",
            "fig10a.simulations.0": "4",
            "fig10a.simulations.1": "24",
            "fig10a.simulations.2": "28",
            "fig10b.seconds": "8.21",
            "fig10b.optimisation": "3671 (1:01:11)",
            "fig10b.simulations": "453",
            "fig11b.seconds": "71.3",
            "fig11b.optimisation": "21572 (5:59:32)",
            "fig11b.simulations": "322",
            "fig11b.elements": "2729",
            "fig7.seconds": "38.35",
            "fig7.optimisation": "18522 (5:08:42)",
            "fig7.simulations": "586",
            "fig7.elements": "1351",
            "fig8.seconds": "421.7",
            "fig8.optimisation": "25102 (6:58:22)",
            "fig8.simulations": "350",
            "fig8.elements": "1501",
            "second.sphere.seconds": "13.38",
            "second.sphere.optimisation": "158",
            "second.sphere.simulations": "105",
            "second.cube.seconds": "1.89",
            "second.cube.optimisation": "430",
            "second.cube.simulations": "112",
            "fig7.E": "2.1e5 -> 3.3e4",
            "fig7.viscosity": "0.025 -> 6.225 (times 64: 1.6 -> 398)",
            "fig7.friction": "0.4 -> 0.47",
            "fig8.E": "2.0e4 -> 1.5e4",
            "fig8.viscosity": "0.525 -> 0.7183 (times 64: 33.6 -> 46.0)",
            "fig8.friction": "0.4 -> 1.16",
        },
    ),
    **_table(
        TABLE_2,
        {
            "table2.size.strings_cube": "12, 6, 60",
            "table2.size.sheet_flip": "75, 6, 120",
            "table2.size.robot_rigid": "78, 12, 192",
            "table2.size.robot_soft_feet": "414, 12, 144",
            "table2.seconds.strings_cube": "0.044",
            "table2.seconds.sheet_flip": "0.109",
            "table2.seconds.robot_rigid": "0.550",
            "table2.seconds.robot_soft_feet": "1.552",
            "table2.optimisation.strings_cube": "3.3",
            "table2.optimisation.sheet_flip": "54",
            "table2.optimisation.robot_rigid": "1161",
            "table2.optimisation.robot_soft_feet": "1674",
            "table2.iterations.strings_cube": "20",
            "table2.iterations.sheet_flip": "25",
            "table2.iterations.robot_rigid": "60",
            "table2.iterations.robot_soft_feet": "17",
        },
    ),
    **_table(
        TEXT,
        {
            "fig12.epoch": "450",
            "fig2.newton": "quadratic",
            "fig6.energy": "little numerical damping",
            "fig10a.reduction": "< 1e-25",
            "cma.simulations": "1042 (to 1e-6)",
            "cma.bunny": "not in 8000 (to 1e-2)",
            "fig11b.reduction": "4e-4 (after 319)",
            "cma.seconds": "8100 (2 h 15 min, to 1e-6)",
            "cma.reduction": "1e-6 (after 1042)",
            "cma.strings": "none in hours (a trajectory optimisation)",
            "cma.lbfgs": "28 (two bounces, to < 1e-25)",
            "fig4.stages": "100, 200, 400, 800, 1000",
            "fig4.better": "yes",
            "robots7.nominal": "fails",
            "robots7.again": "walks",
        },
    ),
    **_table(LE_LIDEC, {"hard2.pyramid": "0.141", "hard5.forward": "211", "hard5.backward": "7"}),
    **_table(NIMBLE, {"hard4.nimble": "(0.75, 0.25, 0.91, 0.08)"}),
    **_table(
        WERLING,
        {
            "robots1.atlas": "8.53",
            "robots1.atlas.differences": "749; 87.8",
            "robots1.cheetah": "0.395",
            "robots1.cheetah.differences": "8.64; 21.9",
            "robots1.worm": "0.256",
            "robots1.worm.differences": "3.82; 14.9",
            "robots1.catapult": "0.265",
            "robots1.catapult.differences": "4.36; 16.5",
        },
    ),
    **_table(WERLING_FIGURE, {"robots2.plain": "no progress", "robots2.explored": "to zero within 50 iterations"}),
    **_table(QIAO, {"robots5.episodes": "60 episodes", "robots5.search": "an order of magnitude slower"}),
    **_table(QIAO, {"robots6.friction": "converges"}),
    **_table(
        QIAO_SOFT,
        {
            "soft1.iterations": "a tenth of those of CMA-ES",
            "soft2.stored": "0.9, 1.4, 6.9, 15.7",
            "soft2.checkpoints": "0.1 throughout",
            "soft3.distance": "reaches the target, CMA-ES does not",
            "soft4.distance": "reaches the target, CMA-ES does not",
            "soft5.distance": "reaches the target, CMA-ES and MBPO do not",
        },
    ),
    **_table(
        QIAO_SCALABLE,
        {"cloth1.runs": "a tenth of those of CMA-ES", "cloth5.linear": "linear", "cloth6.size": "constant time"},
    ),
    **_table(
        LIANG,
        {
            "cloth2.16": "13",
            "cloth2.32": "11",
            "cloth2.64": "72",
            "cloth4.density": "1.8 +- 2.0",
            "cloth4.linear stretch": "45 +- 41",
            "cloth4.non-linear stretch": "57 +- 29",
            "cloth4.bending": "77 +- 36",
            "cloth4.simulation": "1.6 +- 1.4",
            "cloth4.seconds": "2.03",
            "cloth7.error": "17; 53 runs",
            "cloth8.whole": "330 +- 130, 599 +- 76 rows; 25",
        },
    ),
    **_table(WERLING_FIGURE, {"robots4.gradient": "converges much faster", "robots4.search": "a curve"}),
    **_table(
        ORIGINAL,
        {
            "fig2.original.seconds.linear": "43.9",
            "fig2.original.seconds.tanh": "44.1",
            "fig2.original.seconds.hybrid": "55.8",
            "fig2.original.iterations.linear": "8.7",
            "fig2.original.iterations.tanh": "7.6",
            "fig2.original.iterations.hybrid": "9.1",
            "fig2.original.speed.linear": "0.94",
            "fig2.original.speed.tanh": "1.51",
            "fig2.original.speed.hybrid": "0",
            "fig2.original.centre.linear": "0.0198",
            "fig2.original.centre.tanh": "0.0215",
            "fig2.original.centre.hybrid": "0.0172",
            "fig5.original.seconds.linear": "81 (200 steps)",
            "fig5.original.iterations.linear": "6.2",
            "fig5.original.iterations.tanh": "8.0",
            "fig5.original.iterations.hybrid": "9.3",
            "fig10a.original.seconds.linear": "8.4",
            "fig10a.original.seconds.tanh": "8.9",
            "fig10a.original.seconds.hybrid": "11.7",
            "fig10a.original.iterations.linear": "3.2",
            "fig10a.original.iterations.tanh": "3.3",
            "fig10a.original.iterations.hybrid": "4.5",
            "fig10a.original.gradient": "0.31 to 0.41",
            "fig10a.original.distance.0": "",
            "fig10a.original.distance.1": "2e-4 to 6e-4",
            "fig10a.original.distance.2": "2e-4 to 6e-4",
            "fig10a.original.velocity.0": "(0.400, 0, 1.121)",
            "fig10a.original.velocity.1": "(0.487, 0, 0.175)",
            "fig10a.original.velocity.2": "(0.50 to 0.52, 0, 0.060)",
        },
    ),
}
