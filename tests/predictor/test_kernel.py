"""The compiled kernel answers as the plain simulation does, spans included, and is kept on disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.predictor import compiling
from chiron.predictor.execution import Execution, Node
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.simulator import Interpreter, Processes, Simulator, Span, Work

times = st.one_of(
    st.just(0.0),
    st.integers(1, 12).map(float),
    st.floats(0.0, 40.0).map(lambda time: round(time, 3)),
)
KINDS = ["cpu", "native", "block", "helper", "join"]
works = st.lists(st.tuples(st.sampled_from(KINDS), times), max_size=7).map(tuple)
functions = st.fixed_dictionaries(dict.fromkeys("abcd", works))
names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(tuple)
processes = st.lists(names, min_size=1, max_size=5).map(tuple)
interpreters = st.builds(
    Interpreter,
    switch_interval_ms=st.sampled_from([0.5, 1.0, 5.0, 12.3]),
    switch_cost_ms=st.sampled_from([0.0, 0.1, 6.0]),
    thread_startup_ms=st.sampled_from([0.0, 0.1, 2.0]),
    thread_ready_ms=st.sampled_from([None, 0.0, 0.6, 3.0]),
    short_release_ms=st.sampled_from([0.0, 0.1, 3.5]),
)
wasted = st.sampled_from([0.0, 0.0, 0.25, 1.5])


def execution_of(starts_ms: Sequence[float], processes: Processes, cores: int) -> Execution:
    """Processes that are there, and what each begins with when."""
    nodes, first = list[Node](), 0
    for number, (start_ms, names) in enumerate(zip(starts_ms, processes, strict=True)):
        nodes.append(Node(start_ms, number, starts=range(first, first + len(names))))
        first += len(names)
    wraps = [(0, Costs(0.0))] * len(processes)
    sizes = list(enumerate(map(len, processes)))
    return Execution([cores], wraps, sizes, nodes)


def processes_of(
    starts_ms: Sequence[float], processes: Processes, works: Mapping[str, Work]
) -> list[oracle.Process]:
    """The same for the oracle."""
    return [
        oracle.Process(start_ms, tuple(works[name] for name in names))
        for start_ms, names in zip(starts_ms, processes, strict=True)
    ]


def close(spans: Sequence[Span]) -> list[tuple]:
    """The spans in an order that does not depend on rounding, without those of an instant."""
    return sorted(
        (s.process, s.thread, s.kind, *(round(t, 5) + 0.0 for t in s[3:]))
        for s in spans
        if s.end_ms - s.start_ms > 1e-5
    )


@given(st.data(), functions, processes, st.integers(1, 6), interpreters, wasted)
def test_the_kernel_answers_as_the_oracle_does(
    data, functions, processes, cores, interpreter, wasted
):
    starts_ms = [data.draw(times) for _ in processes]
    kernel, expected = Simulator(functions, interpreter, wasted), list[Span]()
    image = kernel.image(execution_of(starts_ms, processes, cores))
    ends = oracle.simulate(
        processes_of(starts_ms, processes, functions),
        cores,
        interpreter,
        expected.append,
        contention_overhead=wasted,
    )
    run, spans = kernel.recorded(image, list(chain(*processes)))
    assert run.ends_ms() == pytest.approx(ends, rel=1e-6, abs=1e-6)
    assert kernel.run(image, chain(*processes)).ends_ms() == run.ends_ms()
    assert len(close(spans)) == len(close(expected))
    for one, other in zip(close(spans), close(expected), strict=True):
        assert one[:3] == other[:3]
        assert one[3:] == pytest.approx(other[3:], rel=1e-6, abs=3e-5)


def test_spans_are_all_there_where_they_are_many_more_than_periods():
    long = {"f": (("cpu", 1000.0),)}
    kernel = Simulator(long, Interpreter(0.5, 0.0, 0.0))
    _, spans = kernel.recorded(kernel.image(execution_of([0.0], (("f", "f"),), 1)), ["f", "f"])
    assert sum(span.kind == "cpu" for span in spans) > 2000
    assert max(span.end_ms for span in spans) == pytest.approx(2000.0)


hours = st.floats(0.0, 3_600_000.0)
long_works = st.lists(st.tuples(st.sampled_from(KINDS), hours), max_size=4).map(tuple)


@given(st.fixed_dictionaries(dict.fromkeys("abcd", long_works)), processes, st.integers(1, 3))
def test_functions_of_an_hour_end_too(functions, processes, cores):
    kernel = Simulator(functions, Interpreter(7_777.7, 0.3, 0.7))
    image = kernel.image(execution_of([1.0 / 3] * len(processes), processes, cores))
    assert all(0 < end < 1e9 for end in kernel.run(image, chain(*processes)).ends_ms())


def test_many_threads_answer_as_in_the_oracle():
    work = (("cpu", 3.1), ("block", 2.7), ("native", 1.3), ("cpu", 7.9)) * 5
    known, names = {"a": work, "b": work[1:]}, (("a", "b") * 100,)
    interpreter = Interpreter(5.0, 0.01, 0.1)
    ends = oracle.simulate(processes_of([0.0], names, known), 8, interpreter)
    kernel = Simulator(known, interpreter)
    run = kernel.run(kernel.image(execution_of([0.0], names, 8)), names[0])
    assert run.ends_ms() == pytest.approx(ends)


def loaded(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=120, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def test_nothing_pays_for_llvm_before_it_simulates_nor_for_numba_once_the_kernel_is_kept():
    found = "print({'numba', 'numpy', 'llvmlite'} & set(sys.modules) or 'nothing')"
    assert loaded(f"import sys, chiron.cli.main; {found}") == "nothing"
    compiling.kernel()
    simulated = "from chiron.predictor.compiling import kernel; kernel()"
    planned = f"import sys, chiron.cli.predict, chiron.cli.schedule; {simulated}; {found}"
    assert loaded(planned) == "{'llvmlite'}"


def test_the_compiler_links_each_function_once_while_it_is_told_to_and_as_usual_afterwards():
    """Whatever numbers callers write out."""
    code = """
import chiron.predictor.compiling as compiling, numba
def twice(number):
    total = 0
    for _ in range(2):
        total += number
    return total
inner = numba.njit(lambda number: 2 * number)
with compiling._without_machine_code():
    linked = numba.njit("int64(int64)")(twice)
    numba.njit("int64(int64)")(lambda number: inner(3) + inner(4) + inner(number))
usual = numba.njit("int64(int64)")(twice)
allocated = [str(each.inspect_llvm()).count("alloca") for each in (linked, usual)]
print(allocated[0] > 2 * allocated[1], usual(3), len(inner.signatures))
"""
    assert loaded(code) == "True 6 1"


@pytest.fixture
def places(monkeypatch, tmp_path) -> Iterator[list[Path]]:
    """Two files for the machine code, and a compiler that need not compile it anew."""
    compiling.kernel()
    code = next(filter(None, map(compiling._read, compiling._files())))
    files = [tmp_path / "first" / "kernel.o", tmp_path / "second" / "kernel.o"]
    monkeypatch.setattr(compiling, "_files", lambda: iter(files))
    monkeypatch.setattr(compiling, "_compiled", lambda: code)
    compiling.kernel.cache_clear()
    yield files
    compiling.kernel.cache_clear()


def works() -> bool:
    simulator = Simulator({"f": (("cpu", 1.0),)}, Interpreter(5.0, 0.0, 0.0))
    image = simulator.image(execution_of([0.0], (("f", "f"),), 1))
    return simulator.run(image, ["f", "f"]).ends_ms() == [2.0]


def test_the_machine_code_is_kept_beside_the_source_or_else_where_it_can_be(places):
    assert works()
    assert [file.exists() for file in places] == [True, False]
    places[0].unlink()
    places[0].parent.rmdir()
    places[0].parent.write_text("no folder")
    compiling.kernel.cache_clear()
    assert works()
    assert places[1].exists()


def test_where_nothing_can_be_written_the_kernel_is_compiled_all_the_same(places):
    for file in places:
        file.parent.write_text("no folder")
    assert works()


def test_a_user_without_a_home_has_the_place_beside_the_source(monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    (file,) = compiling._files()
    assert file.parent.name == "__pycache__"


@pytest.mark.parametrize("keep", [0, -1])
def test_a_file_that_is_not_whole_is_written_anew(places, keep):
    assert works()
    whole = places[0].read_bytes()
    places[0].write_bytes(whole[:keep])
    compiling.kernel.cache_clear()
    assert works()
    assert places[0].read_bytes() == whole


def test_several_may_compile_at_once(places):
    with ThreadPoolExecutor(4) as several_at_once:
        assert all(several_at_once.map(lambda _: works(), range(8)))
    assert compiling._read(places[0])
    assert [file.name for file in places[0].parent.iterdir()] == ["kernel.o"]
