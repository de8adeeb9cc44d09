"""Jobs wait in order, are few, run one at a time, and are on disk at every moment."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta

import pytest

from chiron.services import jobs, state_folder
from chiron.services.app import create_app
from chiron.services.child import Failed
from chiron.services.jobs import JobStore, Submission
from chiron.services.problems import Problem
from chiron.services.worker import Worker
from chiron.workflow.errors import ChironError


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
        worker = Worker(store, runners, lambda job: None)
        worker.start()
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.stop(10)


def test_jobs_are_claimed_in_the_order_in_which_they_came(store):
    for job in ("b", "a", "c"):
        store.submit(Submission(job, "kind", {"job": job}))

    assert [store.claim(["kind"]).params["job"] for _ in range(3)] == ["b", "a", "c"]
    assert store.claim(["kind"]) is None


def test_a_worker_claims_only_what_it_can_do(store):
    store.submit(Submission("a", "profile", {}))

    assert store.claim(["deployment"]) is None
    assert store.claim(["deployment", "profile"]).id == "a"


def test_a_full_queue_refuses_until_a_job_leaves_it(path):
    store = JobStore(path, queue_limit=2)
    store.submit(Submission("a", "kind", {}))
    store.submit(Submission("b", "kind", {}))

    with pytest.raises(ChironError) as refusal:
        store.submit(Submission("c", "kind", {}))
    assert (refusal.value.code, refusal.value.status) == ("busy", 429)

    store.claim(["kind"])
    store.submit(Submission("c", "kind", {}))


def test_a_full_queue_is_answered_with_429_and_keeps_no_upload(config, client):
    while (answer := client.post("/profiler/calibrate")).status_code == 202:
        assert len(client.get("/jobs").json["jobs"]) <= 16

    assert (answer.status_code, answer.json["code"]) == (429, "busy")
    assert int(answer.headers["Retry-After"]) > 0
    listed = {job["id"] for job in client.get("/jobs").json["jobs"]}
    assert {folder.name for folder in (config.state / "jobs").iterdir()} == listed


def test_a_job_goes_from_queued_over_running_to_done(store):
    states = [store.submit(Submission("a", "kind", {})).status]
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
    before.submit(Submission("done", "kind", {}))
    before.claim(["kind"])
    before.add_progress("done", "a step")
    before.finish("done", [1, 2])
    before.submit(Submission("waiting", "kind", {"x": 1}))

    after = JobStore(path)

    assert after.get("done") == before.get("done")
    assert after.get("done").result == [1, 2]
    assert [job.id for job in after.newest()] == ["waiting", "done"]
    assert after.claim(["kind"]).params == {"x": 1}


def test_jobs_that_ran_when_the_server_died_are_interrupted_and_the_others_are_not(path):
    before = JobStore(path)
    for job in ("done", "running", "queued"):
        before.submit(Submission(job, "kind", {}))
    before.claim(["kind"])
    before.finish("done", None)
    before.claim(["kind"])

    after = JobStore(path)
    after.recover(())

    assert [after.get(job).status for job in ("done", "running", "queued")] == [
        "done",
        "failed",
        "queued",
    ]
    assert after.get("running").error.code == "interrupted"


def test_jobs_that_only_measure_run_once_more_when_the_server_died(path):
    before = JobStore(path)
    before.submit(Submission("a", "profile", {}))
    states = []
    for _ in range(2):
        before.claim(["profile"])
        before.recover({"profile"})
        states.append(before.get("a").status)

    assert states == ["queued", "failed"]


def test_a_job_that_was_to_be_cancelled_when_the_server_died_is(path):
    before = JobStore(path)
    before.submit(Submission("a", "profile", {}))
    before.claim(["profile"])
    before.cancel("a")
    before.recover({"profile"})

    assert before.get("a").status == "cancelled"


def test_jobs_that_ended_long_ago_are_forgotten_and_their_keys_are_free(store):
    store.submit(Submission("old", "kind", {}, key="k", fingerprint="1"))
    store.submit(Submission("waiting", "kind", {}))
    store.cancel("old")
    store.expire(timedelta(seconds=-1))

    assert [job.id for job in store.newest()] == ["waiting"]
    assert store.submit(Submission("new", "kind", {}, key="k", fingerprint="2")).id == "new"


def test_of_jobs_that_ended_only_so_many_are_kept_and_not_what_they_were_asked(
    store, path, monkeypatch
):
    monkeypatch.setattr(jobs, "ENDED_LIMIT", 3)
    store.submit(Submission("waiting", "kind", {"x": "y"}))
    for job in "abcdef":
        store.submit(Submission(job, "kind", {"large": "x" * 1000}))
        store.cancel(job)
    store.submit(Submission("last", "kind", {}))

    assert [job.id for job in store.newest()] == ["last", "f", "e", "d", "waiting"]
    with closing(sqlite3.connect(path)) as database:
        assert not database.execute("SELECT * FROM jobs WHERE params LIKE '%large%'").fetchall()
    assert store.claim(["kind"]).params == {"x": "y"}


def test_other_users_may_read_nothing_of_jobs_whatever_they_could_before(path):
    path.parent.mkdir(mode=0o755)
    for name in ("jobs.sqlite", "jobs.sqlite-wal"):
        (path.parent / name).touch(0o666)
        (path.parent / name).chmod(0o666)

    store = JobStore(path)
    store.submit(Submission("a", "kind", {"secret": "s"}))
    with closing(store._connect()) as connection:  # which has its journals
        connection.execute("SELECT * FROM jobs").fetchall()
        files = [path.parent, *path.parent.rglob("*")]
        assert len(files) > 2
        assert not [file for file in files if file.stat().st_mode & 0o077]


def test_jobs_are_in_a_folder_of_their_own_of_a_home_that_others_read(tmp_path):
    assert state_folder({"CHIRON_HOME": str(tmp_path)}) == tmp_path / "services"


def test_jobs_are_kept_for_a_time(store):
    store.submit(Submission("a", "kind", {}))
    store.cancel("a")
    store.expire(timedelta(hours=1))

    assert [job.id for job in store.newest()] == ["a"]


def test_a_request_that_is_sent_again_is_the_same_job_even_where_the_queue_is_full(path):
    store = JobStore(path, queue_limit=1)
    first = store.submit(Submission("a", "kind", {}, key="k", fingerprint="1"))

    assert store.submit(Submission("b", "kind", {}, key="k", fingerprint="1")) == first
    with pytest.raises(ChironError) as refusal:
        store.submit(Submission("c", "kind", {}, key="k", fingerprint="2"))
    assert (refusal.value.code, refusal.value.status) == ("key-reused", 409)


def test_what_another_version_wrote_is_not_read(path):
    JobStore(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 1")

    with pytest.raises(ChironError, match="another version"):
        JobStore(path)


def test_a_store_that_cannot_be_is_an_error_with_its_path(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database at all" * 100)

    with pytest.raises(ChironError, match="CHIRON_HOME") as refusal:
        JobStore(path)
    assert (refusal.value.code, refusal.value.status) == ("state-unusable", 500)


def test_jobs_never_run_at_the_same_time(store, work, wait_until):
    running = threading.Semaphore(1)
    overlaps = []

    def run(params, progress, stop):
        overlaps.append(not running.acquire(blocking=False))
        progress("working")
        running.release()

    for number in range(8):
        store.submit(Submission(str(number), "kind", {}))
    work(kind=run)

    wait_until(lambda: all(job.status == "done" for job in store.newest()))
    assert overlaps == [False] * 8


def test_a_job_that_comes_while_the_worker_waits_runs(store, work, wait_until):
    worker = work(kind=lambda params, progress, stop: params)

    for job in ("a", "b"):
        store.submit(Submission(job, "kind", {"job": job}))
        worker.wake()
        wait_until(lambda job=job: store.get(job).status == "done")
        assert store.get(job).result == {"job": job}


def test_a_job_that_fails_keeps_its_error_and_the_next_one_runs(store, work, wait_until):
    ours = Failed(ChironError("cycle", "a cycle", functions=["a"]), partial="half")
    errors = {"ours": ours, "foreign": OSError("disk")}

    def run(params, progress, stop):
        raise errors[params["error"]]

    store.submit(Submission("a", "kind", {"error": "ours"}))
    store.submit(Submission("b", "kind", {"error": "foreign"}))
    work(kind=run)

    wait_until(lambda: store.get("b").status == "failed")
    assert store.get("a").error == Problem(code="cycle", message="a cycle", functions=("a",))
    assert store.get("a").result == "half"
    assert store.get("b").error.code == "internal"


@pytest.fixture
def hanging(work, store, wait_until):
    """A worker whose job `a` runs until it has to stop, while `b` waits."""

    def run(params, progress, stop):
        progress("deploying")
        raise Failed(wait_until(stop))

    store.submit(Submission("a", "kind", {}))
    store.submit(Submission("b", "kind", {}))
    worker = work(kind=run)
    wait_until(lambda: store.get("a").progress)
    return worker


def test_a_worker_that_is_stopped_ends_its_job_and_begins_no_other(store, hanging):
    hanging.stop(10)

    assert store.get("a").error.code == "interrupted"
    assert store.get("b").status == "queued"


def test_a_job_that_is_cancelled_while_it_runs_ends_and_the_next_one_begins(
    store, hanging, wait_until
):
    assert store.cancel("a").status == "running"
    hanging.cancel("a")

    wait_until(lambda: store.get("b").status == "running")
    assert (store.get("a").status, store.get("a").error.code) == ("cancelled", "cancelled")


def test_a_job_that_is_cancelled_while_it_waits_never_runs(store):
    store.submit(Submission("a", "kind", {}))

    assert store.cancel("a").status == "cancelled"
    assert store.claim(["kind"]) is None


def test_a_job_that_has_ended_cannot_be_cancelled(store):
    store.submit(Submission("a", "kind", {}))
    store.cancel("a")

    with pytest.raises(ChironError) as refusal:
        store.cancel("a")
    assert (refusal.value.code, refusal.value.status) == ("ended", 409)


def test_a_job_whose_end_cannot_be_written_is_written_later(store, work, wait_until, monkeypatch):
    write, failures = store.finish, []

    def finish(*arguments):
        if not failures:
            failures.append(arguments)
            raise sqlite3.OperationalError("database or disk is full")
        write(*arguments)

    monkeypatch.setattr(store, "finish", finish)
    store.submit(Submission("a", "kind", {}))
    work(kind=lambda params, progress, stop: "result")

    wait_until(lambda: store.get("a").status == "done")
    assert len(failures) == 1


def test_the_files_of_a_job_go_when_it_has_ended(store, wait_until):
    discarded = []
    store.submit(Submission("a", "kind", {}))
    worker = Worker(store, {"kind": lambda *_: None}, discarded.append)
    worker.start()

    wait_until(lambda: discarded == ["a"])
    worker.stop(10)
    assert store.get("a").status == "done"


def test_a_worker_survives_a_database_that_is_locked_for_long(
    path, store, work, wait_until, monkeypatch, caplog
):
    store.submit(Submission("a", "kind", {}))
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        monkeypatch.context() as short,
    ):
        short.setattr(jobs, "_LOCK_TIMEOUT_S", 0.01)
        other.execute("BEGIN IMMEDIATE")
        work(kind=lambda params, progress, stop: "result")
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
        assert not (config.state / "jobs" / "orphan").exists()
        assert client.get(f"/jobs/{job}").status_code == 200


def test_a_server_that_starts_repeats_what_only_measures_and_ends_what_else_ran(app, wait_until):
    store = app.extensions["chiron"].store
    for kind in ("deployment", "calibrate"):
        store.submit(Submission(kind, kind, {}))
        store.claim([kind])

    with app.extensions["chiron"].running():
        assert store.get("deployment").error.code == "interrupted"
        wait_until(lambda: store.get("calibrate").status == "failed")
    assert store.get("calibrate").error.code == "no-gateway"


def test_an_error_of_the_thread_that_runs_jobs_is_the_end_of_the_server(store, monkeypatch):
    lost = threading.Event()
    worker = Worker(store, {}, lambda job: None, lost.set)
    monkeypatch.setattr(store, "claim", lambda _: 1 // 0)
    worker.start()
    assert lost.wait(60)
    assert worker.failed
    worker.stop(10)
