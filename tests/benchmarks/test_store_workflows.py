"""social-network and movie-review read and write Redis, and answer the same whatever is in it."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.redis

NAMES = ["social-network", "movie-review"]
#: Requests that each function sends in the published traces, those that build a connection too.
PUBLISHED = {
    "upload-user-mentions": 1,
    "upload-creator": 1,
    "post-storage": 12,
    "upload-home-timeline": 14,
    "upload-user-timeline": 12,
    "upload-user-id": 2,
    "upload-movie-id": 1,
    "store-review": 14,
    "upload-user-review": 12,
    "upload-movie-review": 11,
}


@pytest.fixture
def store(redis_url: str) -> Any:
    """A client of the tests' own."""
    from redis import Redis

    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def payload(benchmarks: Path, functions: SimpleNamespace, name: str, size: str) -> str:
    """Return the request of a workflow in that size."""
    text: str = functions.load(benchmarks, "payload").payload_text(name, size)
    return text


@pytest.mark.parametrize("name", NAMES)
def test_function_sends_as_many_requests_as_the_published_one(
    name: str, benchmarks: Path, functions: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redis import Connection

    sent: Counter[str] = Counter()
    send, call = Connection.send_packed_command, functions.call
    now = []

    def counted(self: Any, *arguments: Any, **options: Any) -> None:
        sent[now[-1]] += 1
        send(self, *arguments, **options)

    def noted(folder: Path, text: str) -> str:
        now.append(folder.name)
        answer: str = call(folder, text)
        return answer

    monkeypatch.setattr(Connection, "send_packed_command", counted)
    monkeypatch.setitem(functions.run.__globals__, "call", noted)
    functions.run(benchmarks / name, payload(benchmarks, functions, name, "small"))
    tasks = {entry.name for entry in (benchmarks / name / "functions").iterdir()}
    assert sent == {function: n for function, n in PUBLISHED.items() if function in tasks}


@pytest.mark.parametrize("name", NAMES)
def test_answer_does_not_depend_on_what_was_written_before(
    name: str, benchmarks: Path, functions: SimpleNamespace
) -> None:
    folder = benchmarks / name
    first = functions.run(folder, payload(benchmarks, functions, name, "small"))
    functions.run(folder, payload(benchmarks, functions, name, "large"))
    functions.run(folder, payload(benchmarks, functions, name, "test"))
    assert functions.run(folder, payload(benchmarks, functions, name, "small")) == first


@pytest.mark.parametrize("name", NAMES)
def test_answer_does_not_depend_on_the_order_within_a_stage(
    name: str, benchmarks: Path, functions: SimpleNamespace, store: Any
) -> None:
    text = payload(benchmarks, functions, name, "test")
    expected = functions.run(benchmarks / name, text)
    states = json.loads((benchmarks / name / "workflow.json").read_text())["States"]
    for state in states.values():
        tasks = [task for b in state.get("Branches", []) for task in b["States"].values()]
        folders = [benchmarks / name / "functions" / t["Resource"] for t in tasks or [state]]
        outputs = {folder: functions.call(folder, text) for folder in reversed(folders)}
        ordered = [outputs[folder] for folder in folders]
        text = "[" + ",".join(ordered) + "]" if tasks else ordered[0]
    assert text == expected


@pytest.mark.parametrize("name", NAMES)
def test_running_again_adds_no_data_and_all_that_was_written_expires(
    name: str, benchmarks: Path, functions: SimpleNamespace, store: Any
) -> None:
    text = payload(benchmarks, functions, name, "small")
    functions.run(benchmarks / name, text)
    keys = set(store.scan_iter(f"{name}:*", count=1000))
    members = sum(store.zcard(key) for key in keys if store.type(key) == "zset")
    for _ in range(3):
        functions.run(benchmarks / name, text)
    assert set(store.scan_iter(f"{name}:*", count=1000)) == keys
    assert sum(store.zcard(key) for key in keys if store.type(key) == "zset") == members > 0
    assert {store.ttl(key) > 0 for key in keys if ":recent:" in key} == {True}
    assert {store.ttl(key) for key in keys if ":recent:" not in key} == {-1}


def test_post_reaches_the_followers_and_those_mentioned(
    benchmarks: Path, functions: SimpleNamespace, store: Any
) -> None:
    data = functions.load(benchmarks / "social-network", "dataset")
    request = json.loads(payload(benchmarks, functions, "social-network", "test"))
    request |= {"username": "user_100", "text": "hello @user_007 and @nobody https://a.org/<b>"}
    answer = json.loads(functions.run(benchmarks / "social-network", json.dumps(request)))
    readers = sorted({*data.followers(100), 10_007})
    assert answer[1]["readers"] == readers
    post = str(answer[1]["post_id"])
    for reader in readers:
        assert store.zscore(f"social-network:recent:home-timeline:{reader}", post)
    text = answer[2]["page"][0]["text"]
    assert text.startswith("hello @user_007 and @nobody http://short/")
    link = text.split()[-1].removesuffix("&lt;b&gt;")
    assert store.get(f"social-network:recent:url:{link}") == "https://a.org/"


def test_review_counts_in_the_mean_of_the_latest(
    benchmarks: Path, functions: SimpleNamespace, store: Any
) -> None:
    request = json.loads(payload(benchmarks, functions, "movie-review", "test"))
    text = json.dumps(request | {"rating": 0})
    lower = json.loads(functions.run(benchmarks / "movie-review", text))[2]
    older = [
        json.loads(store.get(f"movie-review:review:archive-movie-5-{number}"))["rating"]
        for number in range(9)
    ]
    assert lower == {"movie_id": 5, "reviews": 10, "mean_rating": round(sum(older) / 10, 2)}
