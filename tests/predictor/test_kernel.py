"""The compiled kernel answers as the Python simulation does, and is used only where it pays."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor import compiling
from predictor import engine as engines
from predictor.compiled import CompiledEngine
from predictor.engine import PythonEngine, engine
from predictor.threads import Interpreter, Life

several = settings(deadline=None, max_examples=300)

times = st.one_of(
    st.just(0.0),
    st.integers(1, 12).map(float),
    st.floats(0.0, 40.0).map(lambda time: round(time, 3)),
)
works = st.lists(st.tuples(st.sampled_from(["cpu", "native", "block"]), times), max_size=5).map(
    tuple
)
functions = st.fixed_dictionaries(dict.fromkeys("abcd", works))
processes = st.lists(st.lists(st.sampled_from("abcd"), max_size=6).map(tuple), min_size=1,
                     max_size=5).map(tuple)  # fmt: skip
interpreters = st.builds(
    Interpreter,
    switch_interval_ms=st.sampled_from([0.5, 1.0, 5.0, 12.3]),
    switch_cost_ms=st.sampled_from([0.0, 0.1, 6.0]),
    thread_startup_ms=st.sampled_from([0.0, 0.1, 2.0]),
    thread_ready_ms=st.sampled_from([None, 0.0, 0.6, 3.0]),
    short_release_ms=st.sampled_from([0.0, 0.1, 3.5]),
)
wasted = st.sampled_from([0.0, 0.0, 0.25, 1.5])


@several
@given(st.data(), functions, processes, st.integers(1, 6), interpreters, wasted)
def test_the_kernel_answers_as_python_does(data, functions, processes, cores, interpreter, wasted):
    lives = [Life(data.draw(times), each, data.draw(times), data.draw(times)) for each in processes]
    python = PythonEngine(functions, interpreter, wasted).ends_ms(lives, cores)
    compiled = CompiledEngine(functions, interpreter, wasted).ends_ms(lives, cores)
    assert compiled == pytest.approx(python, rel=1e-6, abs=1e-6)


@several
@given(functions, processes, interpreters)
def test_processes_on_cores_of_their_own_end_as_each_does_by_itself(
    functions, processes, interpreter
):
    kernel = CompiledEngine(functions, interpreter)
    alone = [kernel.ends_ms([Life(0.0, process)], 1)[0] for process in processes]
    assert kernel.each_ms(processes) == alone
    python = PythonEngine(functions, interpreter).each_ms(processes)
    assert alone == pytest.approx(python, rel=1e-6, abs=1e-6)


hours = st.floats(0.0, 3_600_000.0)
long_works = st.lists(
    st.tuples(st.sampled_from(["cpu", "native", "block"]), hours), max_size=4
).map(tuple)


@settings(deadline=None, max_examples=100)
@given(st.fixed_dictionaries(dict.fromkeys("abcd", long_works)), processes, st.integers(1, 3))
def test_functions_of_an_hour_end_too(functions, processes, cores):
    kernel = CompiledEngine(functions, Interpreter(7_777.7, 0.3, 0.7))
    ends = kernel.ends_ms([Life(1.0 / 3, process) for process in processes], cores)
    assert all(0 < end < 1e9 for end in ends)


def test_many_threads_answer_as_in_python():
    work = (("cpu", 3.1), ("block", 2.7), ("native", 1.3), ("cpu", 7.9)) * 5
    known, lives = {"a": work, "b": work[1:]}, [Life(0.0, ("a", "b") * 100)]
    interpreter = Interpreter(5.0, 0.01, 0.1)
    python = PythonEngine(known, interpreter).ends_ms(lives, 8)
    assert CompiledEngine(known, interpreter).ends_ms(lives, 8) == pytest.approx(python)


TWICE = [Life(0.0, ("a", "a"))]
FEW = {"a": (("cpu", 1.0),)}
FREE = Interpreter(5.0, 0.0, 0.0)


def test_who_asks_little_is_answered_in_python_and_who_asks_much_by_the_kernel(monkeypatch):
    monkeypatch.setattr(engines, "ENOUGH_PERIODS", 3)
    auto = engine("auto", FEW, FREE)
    used = [(auto.ends_ms(TWICE, 1), type(auto._engine)) for _ in range(3)]
    assert used == [([2.0], PythonEngine), ([2.0], CompiledEngine), ([2.0], CompiledEngine)]
    auto = engine("auto", FEW, FREE)
    used = [(auto.each_ms([("a",), ("a",)]), type(auto._engine)) for _ in range(2)]
    assert used == [([1.0, 1.0], PythonEngine), ([1.0, 1.0], CompiledEngine)]


def test_nobody_pays_for_numba_before_it_is_used():
    code = (
        "import sys, cli.predict, cli.schedule;"
        "sys.exit(bool({'numba', 'llvmlite', 'predictor.kernel'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_where_no_cache_can_be_written_functions_are_compiled_all_the_same(monkeypatch):
    asked = []

    def njit(cache=False, **options):
        asked.append((cache, options))
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling, "numba", types.SimpleNamespace(njit=njit))
    assert compiling.entry(len)("four") == 4
    assert [cache for cache, _ in asked] == [True, False]


@pytest.mark.parametrize(("knows", "options"), [(True, {"_nrt", "forceinline"}), (False, set())])
def test_only_options_that_numba_knows_are_asked_for(monkeypatch, knows, options):
    asked = []

    def njit(cache=False, **options):
        asked.extend(options)
        return lambda function: function

    monkeypatch.setattr(compiling, "numba", types.SimpleNamespace(njit=njit))
    if not knows:
        monkeypatch.setattr(compiling, "CPUTargetOptions", object)
    assert compiling.inner(len)("four") == 4
    assert set(asked) == {"error_model"} | options
