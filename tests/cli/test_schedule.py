"""`chiron schedule` with every option, and `chiron diff`, as a stranger uses them."""

from __future__ import annotations

import json

import pytest

from chiron.cli.schedule import bar as bar_of
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("without_template")


def planned(chiron, folder, *options: str, slo: str = "20ms"):
    result = chiron("schedule", folder, f"--slo={slo}", "--json", "--best-effort", *options)
    assert result.status == 0, result.stderr
    return result.json


@pytest.fixture
def constraint(artefacts):
    """Writes constraints.json into the workflow's folder."""

    def write(**fields):
        (artefacts / "constraints.json").write_text(json.dumps({"format": 1, **fields}))

    return write


def test_a_mechanism_is_taken_as_asked_or_the_better_one(chiron, artefacts):
    plans = {
        m: planned(chiron, artefacts, f"--mechanism={m}", slo="50ms")
        for m in ("fork", "pool", "auto")
    }
    assert [plans[m]["wraps"][0]["mechanism"] for m in ("fork", "pool")] == ["fork", "pool"]
    assert plans["auto"]["cpus"] == min(plan["cpus"] for plan in plans.values())


def test_options_and_constraints_reach_the_plan_and_the_front(chiron, artefacts, constraint):
    assert " for 95 % of requests, within the SLO of 20 ms" in planned(chiron, artefacts)["why"][0]
    front = chiron("schedule", artefacts, "--slo=50ms", "--trigger=stage", "--pareto", "--json")
    assert {each["plan"]["trigger"] for each in front.json["plans"]} == {"stage"}
    constraint(isolate={"wave": "wrap", "join": "wrap"})
    chosen = ("--mechanism=pool", "--trigger=stage", "--path=gateway", "--percentile=99.5")
    limits = ("--max-functions=2", "--node-memory=10")
    plan = planned(chiron, artefacts, *chosen, *limits, slo="1s")
    assert (plan["trigger"], plan["path"], len(plan["wraps"])) == ("stage", "gateway", 3)
    assert {wrap["mechanism"] for wrap in plan["wraps"]} == {"pool"}
    assert " for 99.5 % of requests, within the SLO of 1000 ms" in plan["why"][0]
    assert any("constraints.json wants wave in a wrap of its own" in line for line in plan["why"])
    told = [line for line in plan["why"] if line.startswith("limit: ")]
    assert "3 functions to deploy, 2 allowed" in told[0]
    assert all("a node has 10" in line for line in told[1:]) and len(told) == 4


def test_the_fastest_plan_takes_no_longer_and_the_cheapest_no_more_cpus(chiron, artefacts):
    plans = [
        planned(chiron, artefacts, f"--strategy={s}", slo="50ms")
        for s in ("cost", "balanced", "latency")
    ]
    cpus = [plan["cpus"] for plan in plans]
    latencies = [plan["predicted"]["latency_ms"] for plan in plans]
    assert cpus[0] == min(cpus) and latencies[2] == min(latencies)


def test_it_is_said_in_how_many_cases_the_slo_is_kept_and_with_more_cpus(chiron, artefacts):
    loose = chiron("schedule", artefacts, "--slo=10s")
    assert "within the SLO of 10000 ms: it is kept in about 98% of cases" in loose.stderr
    assert "with more CPUs" not in loose.stderr
    place = artefacts.parent / "platform.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"prediction_error": 0.3}))
    profile = json.loads((artefacts.parent / "profile.json").read_text())
    for function in profile["functions"].values():
        period = {"kind": "cpu", "start_ms": 0.0, "duration_ms": 40.0}
        function |= {"latency_ms": 40.0, "periods": [period], "spread_ms": None}
    (artefacts.parent / "profile.json").write_text(json.dumps(profile))
    plan = planned(chiron, artefacts, slo="5s")
    tight = chiron("schedule", artefacts, f"--slo={plan['predicted']['within']['ms'] + 0.1:.3f}ms")
    told = " ".join(tight.stderr.split())
    first = int(told.partition("it is kept in about ")[2].partition("%")[0])
    more = told.partition("with more CPUs it is kept in more cases: ")[2]
    assert more.startswith(f"{plan['cpus'] + 1} CPUs about ")
    assert int(more.partition("about ")[2].partition("%")[0]) > first


def test_a_front_is_written_as_json_and_drawn(chiron, artefacts, tmp_path):
    pytest.importorskip("matplotlib")
    result = chiron("schedule", artefacts, "--slo=20ms", "--pareto", "-o", "front.png")
    assert (result.status, result.stdout) == (0, "")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    front = json.loads((tmp_path / "front.json").read_text())
    assert front["plans"] and all(len(each["plan"]["wraps"]) for each in front["plans"])
    assert "plans that no other one dominates" in " ".join(result.stderr.split())


def test_what_other_plans_cost_is_shown_beside_the_chosen_one_at_80_columns(
    chiron, artefacts, tmp_path
):
    pytest.importorskip("matplotlib")
    result = chiron("schedule", artefacts, "--slo=50ms", COLUMNS="80")
    assert (result.status, result.stdout) == (0, "")
    start = result.stderr.index("small: plans that no other one dominates")
    picture = result.stderr[start:].partition("\n· ")[0].splitlines()
    assert max(map(len, picture)) <= 80
    plan = json.loads((tmp_path / "plan.json").read_text())
    (chosen,) = [line.split() for line in picture if line.startswith(" > chosen")]
    latency = f"{plan['predicted']['latency_ms']:.1f}"
    assert (chosen[2], chosen[5]) == (str(plan["cpus"]), latency)
    bars = [line.count("=") + line.count("!") for line in picture if "=" in line]
    assert bars == sorted(bars, reverse=True), "the fastest plan comes last"
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_what_plans_cost_is_shown_by_the_prices_of_the_folder(chiron, artefacts):
    assert "/h" not in chiron("schedule", artefacts, "--slo=50ms").stderr
    (artefacts / "prices.json").write_text('{"currency": "EUR", "cpu_hour": 1, "gb_hour": 0}')
    assert "EUR/h" in chiron("schedule", artefacts, "--slo=50ms").stderr


def test_json_alone_is_all_that_a_program_gets(chiron, artefacts, tmp_path):
    result = chiron("schedule", artefacts, "--slo=50ms", "--json")
    assert "dominates" not in result.stderr
    assert not (tmp_path / "plan.png").exists()


@each_row(
    ("share", "slo", "bar"),
    [
        (1.0, 0.5, "=" * 16 + "|" + "!" * 15),
        (0.25, 0.5, "=" * 8 + " " * 8 + "|" + " " * 16),
        (1.0, 9.0, "=" * 32 + " "),
        (1.0, 1.0, "=" * 32 + "|"),
    ],
)
def test_a_bar_ends_where_the_plan_does_and_has_the_slo_across(share, slo, bar):
    assert bar_of(share, slo).rstrip() == bar.rstrip()


def test_variables_of_the_stack_file_keep_functions_apart(chiron, artefacts):
    stack = json.loads((artefacts / "stack.yaml").read_text())
    for name, level in (("wave", "1"), ("mirror", "2")):
        stack["functions"][name]["environment"] = {"LEVEL": level}
    (artefacts / "stack.yaml").write_text(json.dumps(stack))
    plan = planned(chiron, artefacts, slo="1s")
    assert len(plan["wraps"]) == 2
    assert any("different values of LEVEL" in line for line in plan["why"])


def test_a_plan_is_compared_with_another(chiron, artefacts):
    planned(chiron, artefacts, "-o", "old.json", slo="1s")
    planned(chiron, artefacts, "-o", "new.json", "--mechanism=pool", slo="20ms")
    result = chiron("diff", "old.json", "new.json")
    assert (result.status, result.stdout) == (0, "")
    assert "mechanism: fork -> pool" in result.stderr
    assert "SLO: 1000 ms -> 20 ms" in result.stderr
    assert chiron("diff", "old.json", "new.json", "--json").json[:1] == ["mechanism: fork -> pool"]
    assert "no difference" in chiron("diff", "old.json", "old.json").stderr


def test_a_rate_gives_replicas_that_the_stack_asks_for(chiron, artefacts, tmp_path):
    result = chiron("schedule", artefacts, "--slo", "200ms", "--rate", "40/s", "--json")
    assert result.status == 0, result.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan == result.json
    assert plan["under_load"]["load"]["per_s"] == 40
    assert chiron("generate", "plan.json", "--workflow", artefacts).status == 0
    stack = (tmp_path / "build" / "stack.yaml").read_text()
    least = plan["wraps"][0]["replicas"]
    assert f"com.openfaas.scale.min: '{least}'" in stack or f'scale.min: "{least}"' in stack
    assert chiron("diff", "plan.json", "plan.json").status == 0


def test_a_rate_that_is_too_high_exits_with_3(chiron, artefacts):
    asked = ("schedule", artefacts, "--slo", "1ms", "--rate", "40/s")
    assert chiron(*asked).status == 3
    assert chiron(*asked, "--best-effort").status == 0


def test_a_front_at_a_rate_has_replicas_and_what_they_cost(chiron, artefacts, tmp_path):
    asked = ("schedule", artefacts, "--slo", "200ms", "--rate", "40/s", "--pareto")
    result = chiron(*asked)
    assert result.status == 0, result.stderr
    assert "replicas" in result.stderr and "USD/h" in result.stderr
    front = json.loads((tmp_path / "pareto.json").read_text())["plans"]
    for each in front:
        assert each["plan"]["under_load"]["load"]["per_s"] == 40
        per_hour, per_million = each["cost"]["per_hour"], each["cost"]["per_million"]
        assert per_million == pytest.approx(per_hour / 3600 / 40 * 1e6, rel=1e-3)

    (artefacts / "prices.json").write_text('{"currency": "EUR", "cpu_hour": 1, "gb_hour": 0}')
    found = chiron(*asked, "--json").json["plans"]
    assert [each["cost"]["per_hour"] for each in found] == [each["cpus"] for each in front]
    other = tmp_path / "other.json"
    other.write_text('{"cpu_hour": 0, "gb_hour": 0, "disk": 1}')
    refused = chiron(*asked, "--prices", other)
    assert refused.status == 2 and "disk" in refused.stderr


def test_a_rate_that_no_plan_bears_has_no_front(chiron, artefacts):
    place = artefacts.parent / "platform.json"
    few = json.loads(place.read_text()) | {"cpus": 1, "one_node": True}
    place.write_text(json.dumps(few))
    result = chiron("schedule", artefacts, "--slo=200ms", "--rate=100000/s", "--pareto")
    assert result.status == 2 and "lower rate" in result.stderr


def test_what_a_plan_for_a_rate_costs_is_shown(chiron, artefacts):
    shown = chiron("schedule", artefacts, "--slo=200ms", "--rate=5/s").stderr
    assert "USD an hour" in shown and "USD a million requests" in shown
