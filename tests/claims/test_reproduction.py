"""The entries of the reproduction pack in their short form: each runs, draws, and says something true."""

import json

import matplotlib.image
import numpy as np
import pytest
from support.tiers import long_case

from scripts.reproduce import main
from scripts.reproduction import cma_counts
from scripts.reproduction.bunny import bunny_scene
from scripts.reproduction.entries import ENTRIES
from scripts.reproduction.entry import Context, Row, Skipped
from scripts.reproduction.fig03_landscape import lowest, roughness
from scripts.reproduction.fig11a_starts import solutions
from scripts.reproduction.friction_ladder import orders
from scripts.reproduction.page import Pack
from scripts.reproduction.published import PUBLISHED
from scripts.reproduction.running import LAWS, scene, with_law
from scripts.reproduction.tasks import Tasks
from scripts.reproduction.tennis_chain import arrival

pytestmark = pytest.mark.usefixtures("roughly_drawn")


def outcome_of(key, images, values):
    """Run an entry; its rows say something, and its pictures show something."""
    outcome = ENTRIES[key].run(Context(True, images, values))
    assert outcome.rows and all(row.ours for row in outcome.rows)
    for name in outcome.images:
        assert matplotlib.image.imread(images / name).std() > 0.01
    return outcome


@pytest.fixture
def run(tmp_path):
    return lambda key, values=None: outcome_of(key, tmp_path / "images", values or {})


@pytest.fixture(scope="module")
def fig6(tmp_path_factory):
    return outcome_of("fig6", tmp_path_factory.mktemp("fig6") / "images", {}).values


def row(outcome, start):
    (found,) = [item for item in outcome.rows if item.quantity.startswith(start)]
    return found


def test_there_is_an_entry_for_every_figure_and_table():
    figures = [
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "fig7_sliding",
        "fig8",
        "fig8_sliding",
        "fig9",
        "fig10a",
        "fig10b",
        "fig11a",
        "fig11b",
        "fig12",
        "fig14",
        "tennis",
    ]
    short = [key for key, entry in ENTRIES.items() if not entry.long]
    hard, robots = ([f"{name}{k}" for k in range(1, n)] for name, n in (("hard", 6), ("robots", 9)))
    soft, cloth = [f"soft{k}" for k in range(1, 6)], [f"cloth{k}" for k in range(1, 11)]
    assert short == [*figures, "cma", "table1", "table2", *hard, *robots, *soft, *cloth]
    assert set(ENTRIES) - set(short) == {"fig11a_starts", "fig11b_search", "cma_counts"}


def test_cylinder_slides_and_tanh_creeps_faster(run):
    outcome = run("fig2")
    speeds = [outcome.values[f"speed.{law}"] for law in ("tanh", "linear", "hybrid")]
    assert speeds[0] > speeds[1] > speeds[2] >= 0.0
    # The last drop of a residual is better than linear, whatever the law.
    assert all(outcome.values[f"order.{law}"] > 1.2 for law in ("linear", "tanh"))


def test_one_depth_camera_finds_the_throw(run):
    outcome = run("fig9")
    assert row(outcome, "velocity").ours.startswith("3.2, 0.3, -0.7 -> 3.")


@pytest.mark.slow
def test_landscape_has_a_lowest_place_within_reach(run):
    outcome = run("fig3")
    assert 0.0 < outcome.values["linear.1000.lowest"] < 0.2
    for law in ("linear", "hybrid"):
        for stiffness in (100, 1000):
            (found,) = outcome.values[f"{law}.{stiffness}.minima"]
            assert found["distance"] < 0.2 and found["bounces"] >= 0 and len(found["velocity"]) == 2


def test_samples_without_a_lower_neighbour_are_found():
    plane = np.array([[3.0, 2.0, 3.0, 4.0], [3.0, 3.0, np.nan, 4.0], [4.0, 4.0, 4.0, 1.0]])
    assert lowest(plane) == [(2, 3), (0, 1)]


@pytest.mark.slow
def test_tori_settle_under_every_law(run):
    outcome = run("fig5")
    assert all(1.0 < outcome.values[f"iterations.{law}"] < 15.0 for law in ("linear", "tanh"))
    assert all(item.ours == "0" for item in outcome.rows if "normal path" in item.quantity)


def test_bounces_keep_energy_with_the_second_order_formula(fig6):
    values = fig6
    assert values["BDF1.1"] < 0.5 < 0.9 < values["BDF2.1"] < 1.01
    assert values["BDF2, half the step.1"] > values["BDF2.1"]


def test_dampings_take_what_eq_22_says(fig6):
    """Of contact that may pull, flat; of contact that may not, what its own formula says."""
    values = fig6
    for ratio in ("0", "0.01", "0.03", "0.1", "0.3"):
        assert values[f"{ratio}.fine"] == pytest.approx(values[f"{ratio}.eq22"], abs=0.015)
        assert values[f"{ratio}.fine, clipped"] == pytest.approx(values[f"{ratio}.clipped"], abs=0.02)
    assert values["0.3.eq22"] < 0.15 < 0.8 < values["0.03.eq22"]
    assert values["0.1.tilted"] < values["0.01.tilted"]


@pytest.mark.parametrize("key", ["fig7", "fig8"])
def test_recordings_are_approached(run, key):
    values = run(key).values
    assert values["rms"] < 0.02
    assert values["simulations"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("key", ["fig7_sliding", "fig8_sliding"])
def test_second_throws_are_predicted(run, key):
    values = run(key).values
    assert set(values["second"]) == {"found", "guess", "truth"}
    assert values["second"]["truth"]["flight"] < 5.0, "the flight is fitted, whatever the material"
    assert all(set(item) == {"markers", "points"} for item in values["errors"].values())


@pytest.mark.slow
def test_material_is_carried_to_a_throw_and_the_throw_to_the_wall(run):
    values = run("tennis").values
    assert set(values) == {"world", "guess"}
    assert all(0.0 < error < 0.2 for error in values.values())


def test_arrival_is_where_the_path_passes_the_plane():
    path = np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 2.0], [3.0, 1.5, 0.0]])
    there = arrival(np.array([0.0, 0.1, 0.2]), path, np.array([2.0, 1.0, 4.0]))
    assert there.time == pytest.approx(0.15) and there.error == pytest.approx(3.0)
    with pytest.raises(ValueError, match="does not come"):
        arrival(np.array([0.0, 0.1, 0.2]), path, np.array([4.0, 1.0, 4.0]))


def test_throws_arrive(run):
    outcome = run("fig10a")
    assert outcome.values["distance.0"] < 1e-6
    assert len(outcome.values[f"velocity.{0}"]) == 3
    assert row(outcome, "no bounce, Gauss-Newton: simulations").ours == "3"


@pytest.mark.slow  # fig10a throws with bounces, fig11a by way of a wall
def test_throw_to_a_line_comes_nearer(run):
    outcome = run("fig10b")
    first, last = map(float, row(outcome, "Gauss-Newton from backspin: distance").ours.split(","))
    assert last < 0.9 * first


@pytest.mark.slow  # 18 s, most of them compilation by JAX
def test_network_learns_to_throw(run):
    values = run("fig12").values
    assert values["tests"][1] < 0.6 * values["tests"][0]  # 0.52 after the few steps of the short form


def test_throw_by_way_of_a_wall_comes_nearer(run):
    outcome = run("fig11a")
    first = float(row(outcome, "Gauss-Newton from").ours.split(",")[0])
    assert outcome.values["distance"] < 0.2 * first


@pytest.mark.slow
def test_throws_from_many_starts_are_told_apart(run):
    outcome = run("fig11a_starts")
    for law in ("linear", "tanh"):
        values = outcome.values[law]
        assert len(values["distances"]) == len(values["orders"]) == 2
        assert all(set(order.split(", ")) <= {"floor", "wall", "no contact"} for order in values["orders"])


def test_solutions_are_groups_of_one_order_and_velocity():
    def thrown(velocity, order, distance=0.0):
        return {"velocity": velocity, "order": order, "distance": distance}

    found = [thrown([1, 2, 3], "wall"), thrown([1.01, 2, 3], "wall"), thrown([1, 2, 3], "floor, wall")]
    groups = solutions([*found, thrown([5, 5, 5], "wall"), thrown([1, 2, 3], "wall", 0.1)])
    assert [(len(g), g[0]["order"]) for g in groups] == [(2, "wall"), (1, "floor, wall"), (1, "wall")]


def test_tasks_that_are_done_do_not_run_again(tmp_path):
    path, ran = tmp_path / "long" / "tasks.jsonl", []

    def task(k):
        ran.append(k)
        return {"k": k, "value": 0.1 * k}

    first = Tasks(path)
    assert first("a", lambda: task(1)) == first("a", lambda: task(2)) == {"k": 1, "value": 0.1}
    with path.open("a", encoding="utf-8") as file:
        file.write('["b", {"k"')  # stopped while it wrote
    again = Tasks(path)
    assert again("a", lambda: task(3)) == {"k": 1, "value": 0.1} and again("b", lambda: task(4))["k"] == 4
    assert ran == [1, 4] and Tasks(path)("b", lambda: task(5))["k"] == 4


@pytest.mark.parametrize("key", [long_case("fig4"), "fig11b"])
def test_bunny_flies(run, key, data_root):
    values = run(key).values
    if key == "fig4":
        assert values["continuation.objective"] > 0.0 and values["direct.simulations"] >= 2
    else:
        assert 0.0 < values["error"] < 0.5 and 0.0 <= values["tilt"] <= 180.0


def test_only_fig_11b_has_a_wall(data_root, tmp_path):
    short = {"time.steps": 2}
    target = {}
    for wall in (False, True):
        thrown = bunny_scene(tmp_path, short, 2, wall=wall, ahead=0.0 if wall else 0.3)
        assert set(thrown.raw["obstacles"]) == ({"floor", "wall"} if wall else {"floor"})
        target[wall] = np.loadtxt(thrown.raw["objective"][0]["positions_file"])
    np.testing.assert_allclose(
        target[False] - target[True], np.tile([0.0, 0.3, 0.0], (len(target[True]), 1)), atol=1e-9
    )


def test_bunny_is_skipped_without_its_mesh(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ADD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(Skipped, match="ADD_DATA"):
        run("fig4")


@pytest.mark.slow
def test_cma_asks_for_more_than_gradients(run):
    pytest.importorskip("cma")
    outcome = run("cma")
    assert outcome.values["simulations"] >= 12
    reduction = [float(item.ours) for item in outcome.rows if "Phi/Phi_0" in item.quantity and item.ours[0].isdigit()]
    assert min(reduction) < 1e-3


@pytest.mark.slow
def test_cma_goes_on_where_it_was_stopped(run, monkeypatch):
    """The samples follow from the seed and the values: the second search takes every value from the first."""
    pytest.importorskip("cma")
    tasks = Tasks()
    monkeypatch.setattr(Context, "tasks", lambda self, key: tasks)
    first = run("cma_counts")
    assert first.values["strings.CMA-ES"]["simulations"] >= 12
    assert first.values["strings.gauss-newton"]["reduction"] < 0.9

    def never(*arguments):
        raise AssertionError("a simulation ran again")

    search = cma_counts.SEARCHES[1]
    problem = search.scene(True).inverse_problem()
    monkeypatch.setattr(type(problem), "value", never)
    values, _ = cma_counts.cma_values(problem, search, 12, tasks)
    assert values.size >= 12


def test_table_1_collects_what_the_figures_found(run):
    values = {"fig2": {"seconds.linear": 1.25}, "fig10a": {"simulations": {"1": 14}}}
    outcome = run("table1", values)
    assert row(outcome, "Fig. 2, linear").ours == "1.25"
    assert row(outcome, "Fig. 10a, 1 bounces: simulations").ours == "14"
    assert len(outcome.rows) == 2


@pytest.mark.slow
def test_table_2_halves_the_objective(run):
    start, end = map(float, row(run("table2"), "strings_cube: objective").ours.split(" -> "))
    assert end < 0.5 * start


def test_pages_keep_the_entries_that_did_not_run_again(tmp_path, capsys):
    for key in ("hard2", "table1"):
        assert main(["--short", "--output", str(tmp_path), "--only", key]) == 0
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "numbers say nothing" in page
    assert "| cone: spread of the way over the angle, relative |" in page and "| Fig. " not in page
    assert "Not run yet" in page
    assert "table1" in capsys.readouterr().out


def test_committed_page_is_that_of_the_committed_results(tmp_path):
    """Nothing on the page is typed by hand, and every result comes from a full run."""
    committed = Pack.committed()
    copy = Pack(committed.results, committed.images, tmp_path / "page.md", committed.link)
    copy.write_page()
    assert copy.page.read_text(encoding="utf-8") == committed.page.read_text(encoding="utf-8")
    for path in committed.results.glob("*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert path.stem in ENTRIES and not kept["short"]
        assert all((committed.images / name).is_file() for name in kept.get("images", {}))


def test_rows_name_published_numbers_that_exist():
    with pytest.raises(KeyError):
        Row("something", "1", "fig99.nothing")
    assert all(item.source for item in PUBLISHED.values())


def test_orders_see_a_quadratic_tail_above_round_off():
    quadratic = (1e-1, 1e-2, 1e-4, 1e-8, 1e-16)
    linear = (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-16)
    assert orders([quadratic]) == pytest.approx([2.0])
    assert orders([linear]) == pytest.approx([1.0])
    assert orders([(1e-8, 1e-16)]) == []


def test_roughness_is_that_of_what_is_not_a_parabola():
    s = np.linspace(-1.0, 1.0, 41)
    smooth = 1.0 + s + 0.3 * s**2
    assert roughness(smooth) < 1e-12
    assert 0.01 < roughness(smooth + 0.05 * np.sign(np.sin(40.0 * s))) < 0.1


def test_laws_that_are_missing_are_named():
    assert with_law(scene("fig2_cylinder_linear"), "no such law") is None
    assert with_law(scene("fig2_cylinder_linear"), "tanh").contact.friction_law == "tanh"
    assert LAWS[0] == "linear"


def test_cone_is_isotropic_and_the_pyramid_is_biased(run):
    outcome = run("hard2")
    ways, found = np.array(outcome.values["ways"]), outcome.values["estimates"]
    assert np.ptp(ways) < 1e-12
    np.testing.assert_allclose(found, [0.2, 0.2 / np.sqrt(2.0), 0.2], atol=1e-9)


@pytest.mark.slow
def test_known_gradients_of_hard_contact(run):
    outcome = run("hard4")
    assert abs(outcome.values["rests: half its weight"]) < 1e-12
    assert outcome.values["takes off: 1.2 times it"] == pytest.approx(0.0915, abs=1e-9)
    balls = {law: np.array(found) for law, found in outcome.values["two_balls"].items()}
    np.testing.assert_allclose(balls["linear"], [[1.0, 0.0, 1.0, 0.0]] * 3, atol=1e-10)
    assert np.abs(balls["step"] - [1.0, 0.0, 1.0, 0.0]).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("key", ["hard1", "hard3"])
def test_numbers_are_identified(run, key):
    """Near the truth; of one body whatever the start (two that meet jump where the impact changes its step)."""
    outcome = run(key)
    if key == "hard1":
        assert outcome.values["spread"] < 1e-6
        assert np.abs(np.array(outcome.values["known"]) - 0.2).max() < 3 * 2.516e-4
        assert abs(outcome.values["single"]["exact states"][0] - 0.2) < 1e-6
    else:
        assert outcome.values["alone"][1] < 1e-6 < 10.0 < outcome.values["both"][2]
        errors = np.abs(np.array(outcome.values["found"]) / [0.2, 0.5, 0.6] - 1.0)
        assert np.all(errors < 3.0 * np.array(outcome.values["bounds"]))
        best = np.abs(outcome.values["ideal"])  # the best estimator at the same noise
        assert np.all(errors < best + 0.1 * np.array(outcome.values["bounds"]))


def test_layers_agree_or_are_skipped(run):
    try:
        outcome = run("hard5")
    except Skipped as reason:
        pytest.skip(str(reason))
    assert set(outcome.values["seconds"]) == {1, 4}


@pytest.fixture
def robots(run):
    def run_or_skip(key):
        try:
            return run(key)
        except Skipped as reason:
            pytest.skip(str(reason))

    return run_or_skip


def test_jacobians_of_robots_are_those_of_their_steps(robots):
    for found in robots("robots1").values.values():
        assert found["near"] >= 2 and found["sticking"] >= 1 and found["error"] < 1e-6
        assert found["differences"] > 0.0 and found["jacobians"] > 0.0  # times are for benchmarks


@pytest.mark.slow
def test_drone_is_moved_by_the_relaxed_and_the_explored_gradient_alone(robots):
    values = robots("robots2").values
    assert values["plain slope"] < 1e-12 and values["platform slope"] == 0.0
    exact, relaxed = values["curves"]["exact"], values["curves"]["relaxed"]
    assert exact[-1] == exact[0] and relaxed[-1] < 0.99 * relaxed[0]
    assert values["curves"]["explored"][-1] < 0.95 * exact[0]


@pytest.mark.slow
def test_worm_jumps_higher_than_it_began(robots):
    values = robots("robots3").values
    assert values["last"][0] > max(values["first"][0], values["begin"]) + 0.02


@pytest.mark.slow
def test_catapult_is_aimed_by_gradients(robots):
    values = robots("robots4").values
    assert values["error"] < 1e-6
    assert values["found"]["Gauss-Newton"]["value"] < 0.2 * values["first"]
    assert values["found"]["iLQR"]["value"] < 1e-4, "within 1 cm: the last torques do not have to do all of it"
    assert values["found"]["multiple shooting"]["value"] < 0.2 * values["first"]


@pytest.mark.slow
def test_marble_is_thrown_and_ball_is_hit(robots):
    for found in robots("robots5").values.values():
        assert found["error"] < 1e-6 and found["last"] < 0.9 * found["first"]


@pytest.mark.slow
def test_tool_drags_the_cube(run):
    """One tool, three displacements and three rotations a step: three evaluations do for the longer way."""
    values = run("fig14").values
    assert values["11 cm"]["last"] < 0.1 * values["11 cm"]["first"]
    assert values["5 cm"]["last"] < 1.01 * values["5 cm"]["first"]


@pytest.mark.slow
def test_friction_of_tyres_is_found(run):
    values = run("robots6").values
    assert values["error"] < 1e-6
    assert values["friction alone"]["spread"] < 1e-4
    assert abs(values["friction alone"]["found"][0] - 0.6) < 3e-3


@pytest.mark.slow
def test_gait_fails_on_soft_motors_until_it_is_found_again(run):
    values = run("robots7").values
    assert values["100"]["way"] < values["100000"]["way"]
    assert values["100"]["bend"] > 5.0 > 1.0 > values["100000"]["bend"], "degrees"
    assert values["1000 again"]["way"] > values["1000"]["way"]
    assert values["soft 100000"]["bend"] < 1.0


@pytest.mark.slow
def test_jump_of_atlas_is_found_by_exact_gradients(robots):
    """60 steps with three evaluations: the feet are not up yet."""
    values = robots("robots8").values
    assert values["error"] < 1e-6 and values["objective"][1] < values["objective"][0]
    assert max(values["depth"]) < 2e-3


@pytest.mark.slow
def test_bridges_come_down_by_gradients(run):
    """Both bridges in full, CMA-ES of the small one."""
    outcome = run("soft1")
    assert 0 < outcome.values["small.needed"] < 15 and 0 < outcome.values["large.needed"] < 15
    assert outcome.values["small.cma.1"] > 0.5


@pytest.mark.slow
def test_memory_of_a_gradient(run):
    values = run("soft2").values
    assert set(values) == {"all", "states", "checkpoints"}
    cases = [case for found in values.values() for case in found]
    assert all(modules < six <= peak < modules + 0.1 for modules, six, peak in cases)


@pytest.mark.slow
def test_the_fish_swims(run):
    assert run("soft3").values["last"] < 10.0


@pytest.mark.slow
def test_the_octopus_swims_and_the_gripper_closes(run):
    """A few steps with three evaluations: what they do lowers the distance."""
    assert run("soft4").values["last"] < 1.2
    assert run("soft5").values["last"] < 1.2


@pytest.mark.slow
def test_the_marble_is_pushed_to_its_place(run):
    assert run("cloth1").values["last"] < 1e-6


@pytest.mark.slow
def test_bodies_and_cloth_move_each_other(run):
    """Momentum to round-off, nothing crosses, gradients of both ways exact, and a mass from a momentum."""
    values = run("cloth3").values
    assert values["momentum"] < 1e-13 and values["mass"]["error"] < 1e-6 and values["mass"]["runs"] < 10
    for name in ("ball in a free sheet", "trampoline", "dominoes"):
        assert values[name]["crossing"] == 0 and values[name]["error"] < 1e-6


@pytest.mark.slow
def test_crumpled_cloth_and_its_share_of_contact(run):
    found = run("cloth2").values["8"]
    assert found["touching"] > 20 and 0.0 < found["contact"] and found["backward"] > 0.0


@pytest.mark.slow
def test_material_is_seen_in_the_wind(run):
    values = run("cloth4").values
    assert values["density"][0] < 0.01 and values["linear stretch"][0] < 0.1 < values["bending"][0]


@pytest.mark.slow
def test_cubes_lie_on_the_floor(run):
    values = run("cloth5").values
    assert len(values["forward"]) == 2 and min(values["forward"] + values["backward"]) > 0.0


@pytest.mark.slow
def test_a_cloth_is_thrown(run):
    values = run("cloth7").values
    assert values["errors"][-1] < 5.0 and values["crossing"] == 0


@pytest.mark.slow
def test_a_step_by_impact_zones(run):
    """Its derivative by QR is that of its active set; it ends a skin apart, and contact slows what falls in both."""
    values = run("cloth8").values
    freely, zones, ours = values["heights"]
    assert (
        max(values["error"], values["whole"]) < 1e-6
        and values["gaps"][0] < values["gaps"][2] < values["gaps"][1] + 1e-9
    )
    assert abs(values["gaps"][1]) < 1e-8 and freely > zones > 0.0 and freely > ours > 0.0


@pytest.mark.slow
def test_zones_and_sizes(run):
    """Zones of one scene end where scenes of one zone do."""
    values = run("cloth6").values
    assert values["20"]["error"] < 1e-8 and values["20"]["factors"][1] > values["20"]["factors"][2]
    assert len(values["sizes"]) == 2 and values["marble"]["best"][-1] < values["marble"]["best"][0]


@pytest.mark.slow
def test_cloth_lies_on_a_ball_and_on_itself(run):
    values = run("cloth9").values
    assert [found["crossing"] for found in values.values()] == [0, 0]
    assert min(found["touching"] for found in values.values()) > 10


@pytest.mark.slow
def test_a_cube_is_lifted_by_a_cloth_and_carried_by_sticks(run):
    values = run("cloth10").values
    assert all(max(values[kind]["ends"]) < 1e-3 < min(values[kind]["starts"]) for kind in ("cloth", "sticks"))
    assert values["cloth"]["crossing"] == 0
