"""Functions that must not share a process or a wrap never do, each with its reason."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.choices import Choices
from chiron.scheduler.conflict_rules import find_conflicts
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.schedule import schedule
from chiron.workflow.apart import broken
from chiron.workflow.constraints import NO_CONSTRAINTS, Constraints, read_constraints
from chiron.workflow.dag import parse_dag
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan
from chiron.workflow.profile import IN_CONTAINER
from chiron.wrap.functions.leftovers import THREADS_RUN_ON
from tests.examples import FEWER
from tests.rows import each_row


@pytest.fixture(scope="session")
def facts(profile):
    """Profiles of functions of 10 ms with facts: ``facts(a={"runtime": "python3.11"}, b={})``."""

    def facts(**functions):
        known = profile(**dict.fromkeys(functions, "cpu 10"))
        changed = {
            name: function.model_copy(update=functions[name])
            for name, function in known.functions.items()
        }
        return known.model_copy(update={"functions": changed})

    return facts


def constraints(**fields) -> Constraints:
    return validate(Constraints, {"format": 1, **fields}, "constraints")


@each_row(
    ("a", "b", "reason"),
    [
        (
            {"runtime": "python3.11"},
            {"runtime": "python3.12"},
            "a needs python3.11 and b python3.12",
        ),
        (
            {"requirements": ("numpy==1.26.0",)},
            {"requirements": ("NumPy>=2",)},
            "a needs numpy==1.26.0 and b needs NumPy>=2",
        ),
        (
            {"files_written": ("/tmp/state",)},  # noqa: S108
            {"files_read": ("/tmp/state",)},  # noqa: S108
            "a writes /tmp/state, which b opens too",
        ),
        (
            {"files_read": ("/tmp/state",)},  # noqa: S108
            {"files_written": ("/tmp/state",)},  # noqa: S108
            "b writes /tmp/state, which a opens too",
        ),
        (
            {"files_written": ("/tmp/a/state",)},  # noqa: S108
            {"files_read": ("/tmp/a",)},  # noqa: S108
            "a writes /tmp/a/state, which b lists",
        ),
        (
            {"files_written": ("/tmp/a/**",)},  # noqa: S108
            {"files_read": ("/tmp/a",)},  # noqa: S108
            "a writes /tmp/a/**, which b lists",
        ),
        (
            {"files_written": ("/dev/shm/state",)},  # noqa: S108
            {"files_written": ("/dev/shm/state",)},  # noqa: S108
            "b writes /dev/shm/state, which a opens too",
        ),
        (
            {"requirements": ("numpy>=2,<3",)},
            {"requirements": ("flask", "numpy<2")},
            "a needs numpy<3,>=2 and b needs numpy<2",
        ),
        ({"ports": (8080, 9000)}, {"ports": (9000,)}, "a and b both take port 9000"),
        (
            {"optional_imports": ("yaml",), "requirements": ("flask",)},
            {"requirements": ("PyYAML>=6",)},
            "a uses yaml where it is installed, and b requires it",
        ),
        (
            {"optional_imports": ("cv2",)},
            {"requirements": ("opencv-python-headless",)},
            "a uses cv2 where it is installed, and b requires it",
        ),
    ],
)
def test_what_cannot_share_a_wrap_has_a_reason(facts, a, b, reason):
    conflicts = find_conflicts("ab", facts(a=a, b=b), NO_CONSTRAINTS, {})
    assert conflicts.wrap == {("a", "b"): reason}
    assert conflicts.process == conflicts.wrap


def test_a_function_that_names_its_folder_in_a_container_has_a_wrap_of_its_own(facts):
    conflicts = find_conflicts(
        "ab", facts(a={}, b={"unshareable": (IN_CONTAINER,)}), NO_CONSTRAINTS, {}
    )
    reason = "b names a file where it is alone (a path below /home/app/function)"
    assert conflicts.wrap == {("a", "b"): reason}
    assert conflicts.process == conflicts.wrap  # and tasks of its own share a process


def test_a_thread_that_a_function_leaves_concerns_no_other(facts):
    functions = facts(a={"unshareable": (THREADS_RUN_ON,)}, b={})
    assert find_conflicts("ab", functions, NO_CONSTRAINTS, {}).process == {}


def test_functions_of_two_languages_share_a_wrap_and_no_process(facts):
    functions = facts(a={"runtime": "node"}, b={"runtime": "python3.11"}, c={"runtime": "node"})
    conflicts = find_conflicts("abc", functions, NO_CONSTRAINTS, {})
    assert conflicts.wrap == {}
    assert conflicts.process == {
        ("a", "b"): "a needs node and b python3.11",
        ("b", "c"): "b needs python3.11 and c node",
    }


@each_row(
    ("a", "b"),
    [
        ({"runtime": "python3.11"}, {"runtime": "python3.11"}),
        ({"runtime": "python3.11"}, {"runtime": ""}),
        ({"requirements": ("numpy==2.1.0",)}, {"requirements": ("numpy>=2",)}),
        ({"requirements": ("numpy==2.*",)}, {"requirements": ("numpy==2.1.0",)}),
        ({"requirements": ("numpy>1.4",)}, {"requirements": ("numpy<1.4.1",)}),
        ({"requirements": ("numpy<2",)}, {"requirements": ("numpy!=1.26",)}),
        ({"requirements": ("numpy===old",)}, {"requirements": ("numpy===old",)}),
        ({"ports": (8080,)}, {"ports": (9000,)}),
        (
            {"optional_imports": ("orjson",), "requirements": ("orjson",)},
            {"requirements": ("orjson",)},
        ),
        ({"optional_imports": ("orjson",)}, {"optional_imports": ("orjson",)}),
        (
            {"requirements": ("numpy==1.0; python_version < '3'",)},
            {"requirements": ("numpy==2.0",)},
        ),
        ({"files_read": ("/etc/hosts",)}, {"files_read": ("/etc/hosts",)}),
        ({"files_written": ("/dev/null",)}, {"files_written": ("/dev/null",)}),
        ({"files_written": ("/tmp/**",)}, {"files_written": ("/tmp/**",)}),  # noqa: S108
    ],
)
def test_what_gets_on_is_no_conflict(facts, a, b):
    assert find_conflicts("ab", facts(a=a, b=b), NO_CONSTRAINTS, {}).process == {}


def test_calls_that_concern_a_process_keep_their_function_alone_in_it(workflow, facts, platform):
    """Not even its own tasks share one: the current folder of one would be that of the other."""
    known = workflow("a a b c")
    functions = facts(a={"unshareable": ("os.chdir", "os.umask")}, b={}, c={})
    plan = schedule(known, functions, platform(), 1000.0)
    processes = {frozenset(process) for process in plan.wraps[0].processes}
    assert processes == {frozenset({"s0t0"}), frozenset({"s0t1"}), frozenset({"s0t2", "s0t3"})}
    assert (
        "a shares no process with its own other tasks, b and c: "
        "a changes what its whole process shares (os.chdir, os.umask)"
    ) in plan.why


def test_a_further_process_has_no_tasks_that_conflict_in_whatever_stage(workflow, facts, platform):
    known = workflow("a a", "b b", "a a", "b b")
    functions = facts(a={"unshareable": ("os.chdir",)}, b={})
    plan = schedule(known, functions, platform(), 9.0)
    (wrap,) = plan.wraps
    assert wrap.cpus == 2
    uses = [list(map(known.function_of, process)) for process in wrap.processes]
    assert uses == [["a"], ["a"], ["b"] * 2, ["b"] * 2, ["a"], ["a"]]


def test_the_main_process_has_no_tasks_that_conflict_in_whatever_stage(facts, platform):
    """What one leaves behind, the other finds: in this request, or in the next one."""
    tasks = {"a": "plain", "b": "seeds", "x": "plain", "c": "seeds", "d": "plain"}
    edges = [["a", "b"], ["a", "x"], ["x", "c"], ["c", "d"]]
    known = parse_dag({"tasks": tasks, "edges": edges}, "branches")
    plan = schedule(
        known, facts(plain={}, seeds={"unshareable": ("random.seed",)}), platform(), 1e3
    )
    processes = [process for wrap in plan.wraps for process in wrap.processes]
    assert {frozenset(process) for process in processes} == set(map(frozenset, ["axd", "b", "c"]))
    assert plan.trigger == "data"


def test_a_plan_carries_what_it_keeps_apart(workflow, facts, platform):
    functions = facts(
        a={"unshareable": ("random.seed",)}, b={}, c={"patched_at_import": ("ssl.create",)}
    )
    plan = schedule(workflow("a b c"), functions, platform(), 1000.0)
    assert [(each.level, each.function, each.others) for each in plan.apart] == [
        ("process", "a", ("a", "b")),
        ("wrap", "c", ("a", "b")),
    ]
    assert plan.apart[1].reason == (
        "the import of c changes what all processes of its wrap share (ssl.create)"
    )
    assert list(broken(plan, workflow("a b c"), plan.apart)) == []


@each_row(
    ("processes", "found"),
    [
        ([["s0t0", "s0t1"], ["s0t2"]], [("process", "a", "b")]),
        ([["s0t0"], ["s0t1"], ["s0t2"]], []),
        ([["s0t0", "s0t2"], ["s0t1"]], [("process", "a", "a")]),
        ([["s0t0"], ["s0t1", "s0t3"], ["s0t2"]], [("wrap", "a", "c")]),
    ],
)
def test_a_plan_by_hand_that_breaks_a_rule_is_found(workflow, facts, processes, found):
    functions = facts(a={"unshareable": ("random.seed",), "ports": (1,)}, b={}, c={"ports": (1,)})
    rules = find_conflicts("abc", functions, NO_CONSTRAINTS, {}).rules
    wrap = {"name": "w", "cpus": 1, "memory_mib": 64, "mechanism": "fork", "processes": processes}
    document = {"format": 2, "workflow": "w", "planner": "by-hand", "wraps": [wrap], "cpus": 1}
    lines = list(broken(validate(Plan, document, "plan"), workflow("a b a c"), rules))
    assert [(each.level, each.function, each.other) for each in lines] == found
    for each in lines:
        assert each.line.startswith(f"wrap w: a shares a {each.level} with ")
        assert each.reason in each.line


def test_variables_of_two_values_keep_functions_in_different_wraps(workflow, facts, platform):
    functions = facts(a={}, b={}, c={})
    environments = {"a": {"LEVEL": "secret-1", "SAME": "x"}, "b": {"LEVEL": "2", "SAME": "x"}}
    settings = FolderSettings(environments=environments)
    plan = schedule(workflow("a b c"), functions, platform(), 1000.0, settings=settings)
    assert [set(wrap.tasks) for wrap in plan.wraps] == [{"s0t0", "s0t2"}, {"s0t1"}]
    assert "a shares no wrap with b: a and b want different values of LEVEL" in plan.why
    assert not any("secret" in line for line in plan.why)


def test_a_variable_that_one_function_sets_is_said_to_be_its(workflow, facts):
    environments = {"a": {"LEVEL": ""}, "b": {"LEVEL": "secret-1"}}
    rules = find_conflicts("ab", facts(a={}, b={}), NO_CONSTRAINTS, environments).rules
    assert [each.reason for each in rules] == [
        "b sets LEVEL, and a, which does not, may depend on that"
    ]


def test_more_processes_than_allowed_wraps_have_cpus_share_them(workflow, facts, platform):
    known, functions = workflow("a " * 7), facts(a={"unshareable": ("os.chdir",)})
    plan = schedule(known, functions, platform(cpus=2), 1000.0, Choices(max_functions=2))
    assert [len(wrap.processes) for wrap in plan.wraps] == [4, 3]
    assert [wrap.cpus for wrap in plan.wraps] == [2, 2]


def test_more_kinds_of_wraps_than_allowed_are_an_answer_that_says_so(workflow, facts, platform):
    functions = facts(**{name: {"runtime": f"python3.{name}"} for name in "abc"})
    plan = schedule(workflow("a b c"), functions, platform(), 99.0, Choices(max_functions=2))
    assert len(plan.wraps) == 3
    assert any(line.startswith("limit: 3 functions to deploy, 2 allowed") for line in plan.why)


def test_a_requirement_that_is_none_is_named(facts):
    with pytest.raises(ChironError) as caught:
        find_conflicts("a", facts(a={"requirements": ("./local",)}), NO_CONSTRAINTS, {})
    assert (caught.value.code, caught.value.functions) == ("bad-requirement", ("a",))


def test_constraints_keep_functions_apart_at_their_level(facts):
    wanted = constraints(isolate={"a": "process", "b": "wrap"})
    conflicts = find_conflicts("abc", facts(a={}, b={}, c={}), wanted, {})
    assert set(conflicts.process) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert set(conflicts.wrap) == {("a", "b"), ("b", "c")}
    assert conflicts.process["a", "c"] == "constraints.json wants a in a process of its own"


def test_functions_that_are_wanted_together_are_in_one_group(facts):
    functions = facts(a={}, b={"files_written": ("/x",)}, c={"files_read": ("/x",)}, d={})
    wanted = constraints(together=[["a", "c"], ["a", "d"]])
    groups = find_conflicts("abcd", functions, wanted, {}).groups()
    assert groups["a"] == groups["c"] == groups["d"] != groups["b"]


@each_row(
    "wanted",
    [
        {"together": [["a", "b"]], "isolate": {"a": "wrap"}},
        {"together": [["a", "c"], ["c", "b"]], "isolate": {"b": "wrap"}},
    ],
)
def test_impossible_constraints_are_an_error_that_says_why(workflow, facts, platform, wanted):
    with pytest.raises(ChironError) as caught:
        schedule(
            workflow("a b c"),
            facts(a={}, b={}, c={}),
            platform(),
            99.0,
            settings=FolderSettings(constraints(**wanted)),
        )
    assert caught.value.code == "impossible-constraints"
    assert "constraints.json wants" in caught.value.message


def test_a_constraint_about_no_function_of_the_workflow_is_refused(workflow, facts, platform):
    with pytest.raises(ChironError) as caught:
        schedule(
            workflow("a"),
            facts(a={}),
            platform(),
            9.0,
            settings=FolderSettings(constraints(isolate={"z": "process"})),
        )
    assert (caught.value.code, caught.value.functions) == ("unknown-function", ("z",))


def test_constraints_are_read_from_the_workflow_folder(tmp_path):
    assert read_constraints(tmp_path) == NO_CONSTRAINTS
    (tmp_path / "constraints.json").write_text('{"format": 1, "isolate": {"a": "wrap"}}')
    assert read_constraints(tmp_path).isolate == {"a": "wrap"}
    (tmp_path / "constraints.json").write_text('{"format": 1, "isolate": {"a": "planet"}}')
    with pytest.raises(ChironError) as caught:
        read_constraints(tmp_path)
    assert caught.value.path == "isolate.a"


@st.composite
def worlds(draw: st.DrawFn):
    """Facts and constraints about functions a to e, at random."""
    paths = st.lists(st.sampled_from(["/x", "/y"]), max_size=1).map(tuple)
    pins = st.lists(st.sampled_from(["p==1", "p==2", "p>=2", "q"]), max_size=1).map(tuple)
    facts = {
        name: {
            "files_written": draw(st.one_of(st.just(()), st.just(()), paths)),
            "files_read": draw(paths),
            "requirements": draw(pins),
            "runtime": draw(st.sampled_from(["", "", "python3.11", "python3.12"])),
            "unshareable": draw(st.sampled_from([(), (), (), ("random.seed",)])),
            "set_at_import": draw(st.sampled_from([(), (), (), ("os.chdir",)])),
        }
        for name in "abcde"
    }
    isolate = draw(
        st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["process", "wrap"]), max_size=2)
    )
    pairs = st.lists(st.sampled_from("abcde"), min_size=2, max_size=2, unique=True)
    return facts, {"isolate": isolate, "together": draw(st.lists(pairs, max_size=1))}


@FEWER
@given(
    worlds(),
    st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=5), min_size=1, max_size=3),
    st.floats(5.0, 200.0),
    st.sampled_from(["fork", "pool"]),
    st.sampled_from(["cost", "latency"]),
    st.sampled_from([1, 64]),
)
def test_plans_break_no_conflict_and_no_constraint(
    workflow, facts, platform, world, stages, slo_ms, mechanism, strategy, cpus
):
    known = workflow("a b c d e", *map(" ".join, stages))
    functions, wanted = facts(**world[0]), constraints(**world[1])
    conflicts = find_conflicts(known.functions, functions, wanted, {})
    try:
        groups = conflicts.groups()
    except ChironError as error:
        assert error.code == "impossible-constraints"
        return
    plan = schedule(
        known,
        functions,
        platform(cpus=cpus),
        slo_ms,
        Choices(mechanism=mechanism, strategy=strategy),
        settings=FolderSettings(wanted),
    )
    plan.check_against(known)
    for constraint in wanted.together:
        assert (
            sum(any(known.function_of(t) in constraint for t in wrap.tasks) for wrap in plan.wraps)
            == 1
        )
    for wrap in plan.wraps:
        used = sorted({known.function_of(task) for task in wrap.tasks})
        assert len({groups[function] for function in used}) == 1
        assert not [pair for pair in combinations(used, 2) if pair in conflicts.wrap]
        for process in wrap.processes:
            shared = sorted(map(known.function_of, process))
            assert not [pair for pair in combinations(shared, 2) if pair in conflicts.process]
    assert not list(broken(plan, known, plan.apart))


def test_functions_with_conflicts_go_to_further_wraps_and_the_rest_stays(workflow, facts, platform):
    functions = facts(a={"runtime": "python3.11"}, b={"runtime": "python3.12"}, c={}, d={})
    plan = schedule(workflow("a b c d"), functions, platform(), 500.0)
    uses = workflow("a b c d").function_of
    assert [sorted(map(uses, wrap.tasks)) for wrap in plan.wraps] == [["a", "c", "d"], ["b"]]
    assert any("a needs python3.11 and b python3.12" in line for line in plan.why)


def test_a_process_of_its_own_for_a_brief_function_costs_one_cpu(workflow, profile, platform):
    """The long functions come first and must not take every process."""
    functions = profile(long="cpu 70", brief="cpu 1")
    known = workflow("long " * 8 + "brief " * 8)
    free = schedule(known, functions, platform(), 320.0)
    settings = FolderSettings(Constraints(format=1, isolate={"brief": "process"}))
    apart = schedule(known, functions, platform(), 320.0, settings=settings)
    assert free.meets_slo and apart.meets_slo
    assert (free.cpus, apart.cpus) == (2, 3)


def test_the_entry_wrap_has_the_many_and_only_the_one_apart_is_called(workflow, profile, platform):
    functions = profile(a="cpu 1", b="cpu 1", c="cpu 1", z="cpu 1")
    settings = FolderSettings(Constraints(format=1, isolate={"z": "wrap"}))
    plan = schedule(workflow("a b c z"), functions, platform(), 99.0, settings=settings)
    assert [len(wrap.tasks) for wrap in plan.wraps] == [3, 1]
