"""Runs of Node.js handlers in one process: their contexts, listeners, exits and headers."""

from __future__ import annotations

import json
import shutil
from http.client import HTTPConnection
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js: install node 20")
TEXT = {"Content_Type": "text/plain"}


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap with one Node.js handler."""

    def serve(source: str, **settings: str) -> Any:
        image = wrap_image(
            {"run": {"handler.js": source}}, styles={"run": "node"}, entry={"output": 0}
        )
        return start(image, **settings)

    return serve


def test_a_run_begins_in_the_context_of_the_import_and_what_it_enters_stays_in_it(serve: Any):
    server = serve("""
        const { AsyncLocalStorage, executionAsyncId } = require('async_hooks')
        const [user, service] = [new AsyncLocalStorage(), new AsyncLocalStorage()]
        const ids = new Set()
        service.enterWith('shop')
        module.exports = async event => {
          ids.add(executionAsyncId())
          if (!user.getStore()) user.enterWith(event.body)
          await 1
          return [user.getStore(), service.getStore(), ids.size]
        }
    """)
    asked = [server.request(body=body, **TEXT).json for body in ("ada", "bob", "eve")]
    assert asked == [["ada", "shop", 1], ["bob", "shop", 2], ["eve", "shop", 3]]


#: What nothing awaits -> what a handler answers that listens to it, as alone.
UNAWAITED = {
    "unhandledRejection": "Promise.reject(new Error('bad'))",
    "uncaughtException": "setTimeout(() => { throw new Error('bad') })",
    "uncaughtException of a rejection": "Promise.reject(new Error('bad'))",
}


@pytest.mark.parametrize("event", UNAWAITED)
def test_an_error_that_a_handler_listens_to_fails_no_run(event: str, serve: Any) -> None:
    server = serve(f"""
        let heard
        process.on('{event.split()[0]}', error => heard(error.message))
        module.exports = async () => {{
          const hearing = new Promise(resolve => {{ heard = resolve }})
          {UNAWAITED[event]}
          return hearing
        }}
    """)
    assert server.request().text == "bad"


EXITS = """
    process.on('uncaughtException', error => { if (error.message == 'fatal') process.exit(5) })
    const waits = action => new Promise(() => setTimeout(action))
    module.exports = async event => {
      switch (event.body) {
        case 'caught': try { process.exit(3) } catch { return 'ok' }
        case 'beside': return waits(() => { try { process.exit(3) } catch {} })
        case 'really': return process.reallyExit(4)
        case 'in a listener': return waits(() => { throw new Error('fatal') })
      }
      return 'ok'
    }
"""
EXITED = "the handler called process.exit(3): return instead"
TOLD = {
    "caught": ("exited", EXITED),
    "beside": ("exited", EXITED),
    "really": ("process-died", "its Node process exited with status 4"),
    "in a listener": ("process-died", "its Node process exited with status 7"),
}


def test_a_run_that_exits_fails_whatever_it_catches_and_the_next_one_answers(serve: Any) -> None:
    server = serve(EXITS)
    for way, told in TOLD.items():
        found = server.request(body=way, **TEXT).json
        assert (found["code"], found["message"]) == told
        assert server.request(body="fine", **TEXT).text == "ok"


def test_a_handler_that_exits_at_its_import_is_not_loaded(serve: Any) -> None:
    with pytest.raises(AssertionError, match=r"ImportError: function run: .*process\.exit\(3\)"):
        serve("try { process.exit(3) } catch {}; module.exports = async () => 'ok'")


def test_an_exit_that_belongs_to_no_run_is_in_the_log(serve: Any, eventually: Any) -> None:
    server = serve("setTimeout(() => process.exit(3)); module.exports = async () => 'ok'")
    assert server.request().text == "ok"
    assert eventually(lambda: "[run] process.exit: 3\n" in server.log.read_text())


def test_all_threads_of_nodes_pool_are_the_handlers(serve: Any) -> None:
    source = (
        "module.exports = async () => String(await require('fs').promises.readFile(__filename))"
    )
    assert serve(source, UV_THREADPOOL_SIZE="1").request().text == source


FINDS = """
    const { readFileSync } = require('fs')
    const path = require('path')
    const read = file => readFileSync(file, 'utf8')
    const [imported, resolved] = [read('function/name.txt'), path.resolve('function/name.txt')]
    const own = require.main.require('./function/own')
    module.exports = async () => {
      await 1
      const joined = path.join(process.cwd(), 'function', 'name.txt')
      const beside = path.join(path.dirname(require.main.filename), 'function', 'name.txt')
      const now = path.resolve('function/name.txt')
      const parent = path.join(path.dirname(module.parent.filename), 'function', 'name.txt')
      return [imported, own, ...[resolved, joined, beside, now, parent].map(read), process.title]
    }
"""


def test_each_function_of_a_process_finds_its_folder_in_its_working_directory(start, wrap_image):
    names = ["ada", "bob"]
    image = wrap_image(
        {
            name: {"handler.js": FINDS, "name.txt": name, "own.js": f"module.exports = '{name}'"}
            for name in names
        },
        [[0, 1]],
        tasks=dict(enumerate(names)),
        styles=dict.fromkeys(names, "node"),
        entry={"output": [0, 1]},
    )
    server = start(image)
    for _ in range(2):
        assert server.request().json == [[*[name] * 7, "node"] for name in names]


FAILS = """
    class OrderError extends Error {}
    module.exports = async (event, context) => {
      switch (event.body) {
        case 'error':
          throw Object.assign(new OrderError('none', { cause: new Error('sold') }), { code: 'E1' })
        case 'object': throw { detail: { stock: [0] } }
        case 'errors': return Promise.any([Promise.reject(new Error('one'))])
        case 'text': return context.fail('no stock')
        case 'answer': return context.status(409).fail({ sold: 1 })
        case 'late':
          setTimeout(() => { throw Object.assign(new Error('late'), { code: 'E2' }) })
          return 'ok'
      }
    }
"""


def test_an_error_is_in_the_log_as_its_template_prints_it(serve: Any, eventually: Any) -> None:
    """With its cause, its other properties and the errors in it."""
    server = serve(FAILS)
    for body in ("error", "object", "errors", "text", "answer", "late"):
        server.request(body=body, **TEXT)

    def said(*lines: str) -> bool:
        log = server.log.read_text()
        return all(f"[run] {line}\n" in log for line in lines)

    assert eventually(lambda: said("  code: 'E2'"))
    assert said("  code: 'E1',", "  [cause]: Error: sold", "{ detail: { stock: [ 0 ] } }")
    assert said("  [errors]: [", "no stock", "{ sold: 1 }")


ENDS = """
    module.exports = async event => {
      await new Promise(done => process.stdout.end('last ', done))
      process.stdout.destroy()
      process.stderr.end()
      console.log('and more')
      console.error('and errors')
      return 'ok'
    }
"""


def test_a_stream_that_a_function_ends_prints_what_others_print(start, wrap_image, eventually):
    image = wrap_image(
        {"ends": {"handler.js": ENDS}, "prints": {"handler.js": ENDS}},
        [[0, 1]],
        styles={"ends": "node", "prints": "node"},
        inputs={0: None, 1: 0},
        entry={"output": 1},
    )
    server = start(image)
    assert server.request().text == "ok"
    said = ("last and more", "and errors")
    lines = [f"[{name}] {line}" for name in ("ends", "prints") for line in said]
    assert eventually(lambda: all(line in server.log.read_text().splitlines() for line in lines))


def test_repeated_headers_and_names_with_underscores_are_as_alone(serve: Any) -> None:
    server = serve("module.exports = async event => event.headers")
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("POST", "/")
    for pair in (
        "Cookie: a=1", "Cookie: b=2", "X-A: 1", "x-a: 2", "User-Agent: one", "User-Agent: two",
        "api_key: k", "api_key: l", "X-Own: dash", "X_Own: line", "X_Chiron_Own: x",
        "Content-Type: text/plain", "Content-Length: 0",
    ):  # fmt: skip
        connection.putheader(*pair.split(": "))
    connection.endheaders()
    found = json.loads(connection.getresponse().read())
    connection.close()
    del found["host"], found["accept-encoding"]
    assert found == {
        "cookie": "a=1; b=2",
        "x-a": "1, 2",
        "user-agent": "one",
        "api_key": "k, l",
        "x-own": "dash",
        "x_own": "line",
        "content-type": "text/plain",
        "content-length": "0",
    }
