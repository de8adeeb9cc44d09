"""Jobs wait in order, are few, run one at a time, and are on disk at every moment."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from services import jobs
from services.app import create_app
from services.jobs import JobStore
from services.problems import Problem
from services.worker import Worker
from workflow.errors import ChironError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "jobs.sqlite"


@pytest.fixture
def store(path):
    return JobStore(path)


@pytest.fixture
def work(store):
    """Run jobs with the given runners until the test ends."""
    workers = []

    def start(**runners):
        worker = Worker(store, runners)
        worker.start()
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.stop(10)


def test_jobs_are_claimed_in_the_order_in_which_they_came(store):
    for job in ("b", "a", "c"):
        store.submit(job, "kind", {"job": job})

    assert [store.claim(["kind"]).params["job"] for _ in range(3)] == ["b", "a", "c"]
    assert store.claim(["kind"]) is None


def test_a_worker_claims_only_what_it_can_do(store):
    store.submit("a", "profile", {})

    assert store.claim(["deployment"]) is None
    assert store.claim(["deployment", "profile"]).id == "a"


def test_a_full_queue_refuses_until_a_job_leaves_it(path):
    store = JobStore(path, queue_limit=2)
    store.submit("a", "kind", {})
    store.submit("b", "kind", {})

    with pytest.raises(ChironError) as refusal:
        store.submit("c", "kind", {})
    assert (refusal.value.code, refusal.value.status) == ("busy", 429)

    store.claim(["kind"])
    store.submit("c", "kind", {})


def test_a_full_queue_is_answered_with_429_and_keeps_no_upload(config, client):
    while (answer := client.post("/profiler/calibrate")).status_code == 202:
        assert len(client.get("/jobs").json["jobs"]) <= 16

    assert (answer.status_code, answer.json["code"]) == (429, "busy")
    listed = {job["id"] for job in client.get("/jobs").json["jobs"]}
    assert {folder.name for folder in (config.state / "jobs").iterdir()} == listed


def test_a_job_goes_from_queued_over_running_to_done(store):
    states = [store.submit("a", "kind", {}).status]
    store.claim(["kind"])
    states.append(store.get("a").status)
    store.add_progress("a", "first")
    store.add_progress("a", "second")
    store.finish("a", {"answer": 42})
    job = store.get("a")

    assert [*states, job.status] == ["queued", "running", "done"]
    assert [line.line for line in job.progress] == ["first", "second"]
    assert job.result == {"answer": 42}
    assert job.created <= job.started <= job.finished


def test_jobs_and_results_are_there_in_a_new_store_on_the_same_file(path):
    before = JobStore(path)
    before.submit("done", "kind", {})
    before.claim(["kind"])
    before.add_progress("done", "a step")
    before.finish("done", [1, 2])
    before.submit("waiting", "kind", {"x": 1})

    after = JobStore(path)

    assert after.get("done") == before.get("done")
    assert after.get("done").result == [1, 2]
    assert [job.id for job in after.newest()] == ["waiting", "done"]
    assert after.claim(["kind"]).params == {"x": 1}


def test_jobs_that_ran_when_the_server_died_are_interrupted_and_the_others_are_not(path):
    before = JobStore(path)
    for job in ("done", "running", "queued"):
        before.submit(job, "kind", {})
    before.claim(["kind"])
    before.finish("done", None)
    before.claim(["kind"])

    after = JobStore(path)
    after.interrupt_running()

    assert [after.get(job).status for job in ("done", "running", "queued")] == [
        "done",
        "failed",
        "queued",
    ]
    assert after.get("running").error.code == "interrupted"


def test_a_store_that_cannot_be_is_an_error_with_its_path(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database at all" * 100)

    with pytest.raises(ChironError, match="CHIRON_HOME") as refusal:
        JobStore(path)
    assert (refusal.value.code, refusal.value.status) == ("state-unusable", 500)


def test_jobs_never_run_at_the_same_time(store, work, wait_until):
    running = threading.Semaphore(1)
    overlaps = []

    def run(params, progress):
        overlaps.append(not running.acquire(blocking=False))
        progress("working")
        running.release()

    for number in range(8):
        store.submit(str(number), "kind", {})
    work(kind=run)

    wait_until(lambda: all(job.status == "done" for job in store.newest()))
    assert overlaps == [False] * 8


def test_a_job_that_comes_while_the_worker_waits_runs(store, work, wait_until):
    worker = work(kind=lambda params, progress: params)

    for job in ("a", "b"):
        store.submit(job, "kind", {"job": job})
        worker.wake()
        wait_until(lambda job=job: store.get(job).status == "done")
        assert store.get(job).result == {"job": job}


def test_a_job_that_fails_keeps_its_error_and_the_next_one_runs(store, work, wait_until):
    errors = {"ours": ChironError("cycle", "a cycle", functions=["a"]), "foreign": OSError("disk")}

    def run(params, progress):
        raise errors[params["error"]]

    store.submit("a", "kind", {"error": "ours"})
    store.submit("b", "kind", {"error": "foreign"})
    work(kind=run)

    wait_until(lambda: store.get("b").status == "failed")
    assert store.get("a").error == Problem(code="cycle", message="a cycle", functions=("a",))
    assert store.get("b").error.code == "internal"


def test_a_worker_that_is_stopped_ends_its_job_at_the_next_step(store, work, wait_until):
    step, cleaned = threading.Event(), []

    def run(params, progress):
        try:
            progress("deploying")
            step.wait(10)
            progress("measuring")
        finally:
            cleaned.append(True)

    store.submit("a", "kind", {})
    store.submit("b", "kind", {})
    worker = work(kind=run)
    wait_until(lambda: store.get("a").progress)
    threading.Timer(0.05, step.set).start()
    worker.stop(10)

    assert store.get("a").error.code == "interrupted"
    assert cleaned == [True]
    assert store.get("b").status == "queued"


def test_a_worker_survives_a_database_that_is_locked_for_long(
    path, store, work, wait_until, monkeypatch, caplog
):
    store.submit("a", "kind", {})
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        monkeypatch.context() as short,
    ):
        short.setattr(jobs, "_LOCK_TIMEOUT_S", 0.01)
        other.execute("BEGIN IMMEDIATE")
        work(kind=lambda params, progress: "result")
        wait_until(lambda: "database is locked" in caplog.text)

    wait_until(lambda: store.get("a").status == "done")


def test_two_servers_do_not_share_their_jobs(app, config):
    other = create_app(config)

    with (
        app.extensions["chiron"].running(),
        pytest.raises(ChironError) as refusal,
        other.extensions["chiron"].running(),
    ):
        pass
    assert refusal.value.code == "state-in-use"


def test_uploads_of_requests_that_never_became_jobs_are_removed_on_start(app, config, client):
    job = client.post("/profiler/calibrate").json["id"]
    (config.state / "jobs" / "orphan" / "demo").mkdir(parents=True)

    with app.extensions["chiron"].running():
        assert [folder.name for folder in (config.state / "jobs").iterdir()] == [job]
