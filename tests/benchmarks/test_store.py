"""The Redis behind a workflow: found, started, filled, told about, and gone in the end."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import load
print(load(Path(sys.argv[2])).STORE, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def client(benchmarks: Path, functions: SimpleNamespace) -> ModuleType:
    """The module through which functions reach the store."""
    pytest.importorskip("redis", reason="redis-py is missing: pip install redis==5.2.1")
    module: ModuleType = functions.load(benchmarks / "social-network" / "store", "client")
    return module


@pytest.fixture
def gateway_url(monkeypatch: pytest.MonkeyPatch, free_port: int) -> str:
    """The URL of a gateway that no other test has."""
    url = f"http://127.0.0.1:{free_port}"
    monkeypatch.setenv("gateway_url", url)
    return url


@pytest.mark.redis
@pytest.mark.usefixtures("gateway_url")
def test_redis_of_a_supporting_function_is_found_filled_and_ends_with_it(
    benchmarks: Path, client: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "function:social-network-store")
    folder = benchmarks / "social-network" / "functions" / "social-network-store"
    with subprocess.Popen(
        [sys.executable, "-c", START, str(Path(__file__).parent), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        with client.open_store() as store:
            assert store.hget("social-network:ids", "user_021") == "10021"
            address = client.locate("social-network-store")
            assert url == f"redis://{address[0]}:{address[1]}/0"
            assert address[0] == "127.0.0.1"
            server = store.info("server")["process_id"]
        process.send_signal(signal.SIGKILL)
    assert ended(server)


def ended(pid: int) -> bool:
    """Wait up to 10 s for a process of somebody else's to end; tell whether it has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as file:
        return bool(select.select([file], [], [], 10.0)[0])


@pytest.mark.usefixtures("gateway_url")
def test_functions_fail_with_what_the_supporting_function_lacks(client: ModuleType) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(client.meeting_point("some-store"))
        listener.listen()

        def answer() -> None:
            with listener.accept()[0] as peer:
                peer.sendall(b"redis-server is missing")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RuntimeError, match="redis-server is missing"):
            client.locate("some-store")
        thread.join()


@pytest.mark.usefixtures("gateway_url")
def test_functions_without_a_store_name_the_two_ways_to_have_one(
    client: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_S", 0.0)
    with pytest.raises(RuntimeError, match="deploy it with the workflow, or set REDIS_URL"):
        client.locate("some-store")


@pytest.mark.redis
def test_an_index_keeps_its_best_members_and_expires(client: ModuleType) -> None:
    with client.open_store() as store:
        for number in range(client.RECENT + 50):
            client.remember(store, "test:index", f"member-{number:03}", number)
        assert store.zcard("test:index") == client.RECENT
        assert store.zrange("test:index", 0, 0) == ["member-050"]
        assert 0 < store.ttl("test:index") <= client.EXPIRE_S
        store.delete("test:index")
