"""Node.js handlers in a wrap: what they get, what they answer, how they fail, what they print."""

from __future__ import annotations

import json
import os
import shutil
from itertools import chain
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js: install node 20")
#: Where the task is: in the server, or in a further process.
PLACES = {"main": [[0]], "fork": [[], [0]], "pool": [[], [0]]}
SEES = """
    module.exports = async ({ body, headers, method, path, query }) =>
      ({ body, kind: headers['content-type'], own: headers['x-own'], method, path, query })
"""


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap whose first task is a Node.js handler."""

    def serve(source: str, place: str = "main", style: str = "node", **fields: Any) -> Any:
        name, settings = fields.pop("name", "test-wrap1"), fields.pop("settings", {})
        image = wrap_image(
            {"run": {"handler.js": source}, **fields.pop("others", {})},
            fields.pop("processes", PLACES[place]),
            styles={"run": style, **fields.pop("styles", {})},
            mechanism="pool" if place == "pool" else "fork",
            name=name,
            **{"entry": {"output": 0}} | fields,
        )
        return start(image, **settings)

    return serve


def test_a_handler_gets_the_request_and_its_answer_is_the_tasks(serve: Any) -> None:
    server = serve(SEES)
    for _ in range(2):
        answer = server.request(
            "PUT", "/a/b?x=1&y=2&y=3", '{"n": 1}', Content_Type="application/json", X_Own="own"
        )
        assert answer.status == 200, answer.text
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.json == {
            "body": {"n": 1},
            "kind": "application/json",
            "own": "own",
            "method": "PUT",
            "path": "/a/b",
            "query": {"x": "1", "y": ["2", "3"]},
        }


#: What another task returns -> what the handler gets of it.
SEEN: dict[str, Any] = {
    "'[1, \"a\"]'": [1, "a"],
    "'5'": "5",
    "'plain'": "plain",
    "''": "",
    "b'\\xff'": {},
    "('{}', 200, {'Content-Type': 'text/plain'})": "{}",
}


def test_what_another_task_gives_is_parsed_if_it_is_an_object_or_a_list(serve: Any) -> None:
    gives = {"gives": "def handle(req):\n    return eval(req)"}
    server = serve(SEES, processes=[[0], [1]], others=gives, inputs={1: None, 0: 1})
    assert {given: server.request(body=given).json["body"] for given in SEEN} == SEEN


@pytest.mark.parametrize(("header", "body"), [({"X_Chiron_Untyped": "1"}, [1]), ({}, "[1]")])
def test_what_a_client_passes_on_untyped_is_parsed_as_in_a_wrap(
    header: dict[str, str], body: Any, serve: Any
) -> None:
    assert serve(SEES).request(body="[1]", **header).json["body"] == body


def test_a_body_that_its_template_refuses_fails_the_task_with_its_status(serve: Any) -> None:
    after = {"after": "def handle(req):\n    return req"}
    server = serve(
        SEES, others=after, processes=[[0, 1]], inputs={0: None, 1: 0}, entry={"output": 1}
    )
    told = server.request(body="[" * 200_000, Content_Type="application/json").json
    assert (told["code"], told["function"]) == ("status", "run")
    assert "answered 413: PayloadTooLargeError" in told["message"]
    assert "MAX_JSON_SIZE allows 102400 bytes" in told["message"]


def test_a_variable_sets_the_largest_body(serve: Any) -> None:
    server = serve(SEES, settings={"MAX_JSON_SIZE": "150kb"})
    for size, status in ((120_000, 200), (200_000, 413)):
        body = json.dumps(["a" * size])
        assert server.request(body=body, Content_Type="application/json").status == status


def test_each_way_to_answer(start: Any, wrap_image: Any) -> None:
    """The first template gives a text."""
    event = "({ body: ok }, context)"
    ways = {
        "node": f"async {event} => context.succeed({{ ok }})",
        "node returned": f"async {event} => ({{ ok }})",
        "node called": "({ body: ok }, _, call) => setTimeout(call, 5, null, { ok })",
        "node-callback": f"{event} => setTimeout(() => context.succeed({{ ok }}))",
        "node-classic": "(ok, callback) => callback(undefined, { ok })",
        "node-classic async": "async ok => ({ ok })",
    }
    styles = {f"f{number}": way.split()[0] for number, way in enumerate(ways)}
    sources = zip(styles, ways.values(), strict=True)
    image = wrap_image(
        {name: {"handler.js": f"module.exports = {source}"} for name, source in sources},
        styles=styles,
        entry={"output": [*range(len(ways))]},
    )
    found = start(image).request(body='{"a": 1}', Content_Type="application/json").json
    assert found == [{"ok": {"a": 1}}] * 4 + [{"ok": '{"a": 1}'}] * 2


def test_headers_and_large_bodies_are_answered_as_they_are(serve: Any) -> None:
    source = """
        module.exports = async (event, context) => {
          context.headers({ 'Content-Type': 'image/png', 'X-Own': 'own' })
          return Buffer.from(event.body)
        }
    """
    server = serve(source, settings={"RAW_BODY": "true", "MAX_RAW_SIZE": "3mb"})
    content = os.urandom(3_000_000)
    answer = server.request(body=content, Content_Type="image/png")
    assert (answer.body, answer.headers["Content-Type"]) == (content, "image/png")
    assert answer.headers["X-Own"] == "own"


FAILS = """
    let served = 0
    class OrderError extends Error {
      constructor(message) { super(message); this.name = 'OrderError' }
    }
    function refuse() { throw new OrderError('no stock\\nat all') }
    module.exports = async (event, context) => {
      switch (event.body) {
        case 'throw': return refuse()
        case 'later': return new Promise(() => setTimeout(refuse, 5))
        case 'rejected': Promise.reject(new OrderError('no stock')); return new Promise(() => {})
        case 'text': throw 'no stock'
        case 'fail': return context.status(409).fail('no stock')
        case 'failed': return context.fail(new OrderError('no stock'))
        case 'exit': return process.exit(3)
        case 'secret': throw new Error(process.env.OWN_SECRET)
        case 'die': process.kill(process.pid, 'SIGKILL'); return new Promise(() => {})
        case 'hang': while (true) {}
        case 'count': return `${++served} ${process.pid}`
      }
      return 'ok'
    }
"""
PLACE = " (handler.js:6)"
TOLD = {
    "throw": ("raised", f"OrderError: no stock{PLACE}", "OrderError", "no stock\nat all"),
    "later": ("raised", f"OrderError: no stock{PLACE}", "OrderError", "no stock\nat all"),
    "rejected": ("raised", "OrderError: no stock (handler.js:11)", "OrderError", "no stock"),
    "text": ("raised", "Error: no stock", "Error", "no stock"),
    "failed": ("raised", "OrderError: no stock (handler.js:14)", "OrderError", "no stock"),
    **{
        kind: (code, said, code, said)
        for kind, code, said in (
            ("exit", "exited", "the handler called process.exit(3): return instead"),
            ("fail", "status", "the handler answered 409: no stock"),
            ("die", "process-died", "its Node process was killed by SIGKILL"),
        )
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_what_a_handler_keeps_and_how_it_fails(place: str, serve: Any, eventually: Any) -> None:
    """Errors have a name, a message and a place; one that hangs is killed; the next run answers."""
    after = {"after": "def handle(req):\n    return req"}
    server = serve(
        FAILS, place, others=after, processes=[*PLACES[place], [1]],
        inputs={0: None, 1: 0}, entry={"output": 1}, timeouts_s={"run": 2.0},
    )  # fmt: skip

    def ask(body: str) -> Any:
        return server.request(body=body, Content_Type="text/plain")

    counted = [ask("count").text.split() for _ in range(3)]
    assert [count for count, _ in counted] == ["1", "2", "3"]
    assert len({pid for _, pid in counted}) == 1
    for given, (code, message, error, said) in TOLD.items():
        told = ask(given).json
        assert (told["code"], told["message"]) == (code, message), given
        cause = json.loads(told["cause"])
        assert (told["error"], cause["errorMessage"]) == (error, said), given
        assert told["function"] == "run"
        if given == "throw":
            assert cause["stackTrace"] == [
                "handler.js:9 in module.exports",
                "handler.js:6 in refuse",
            ]
        assert ask("fine").text == "ok"
    assert ask("hang").json["code"] == "timeout"

    def computes() -> bool:
        nodes = [each for each in server.family() if each.name() == "node"]
        return any(each.status() == psutil.STATUS_RUNNING for each in nodes)

    assert eventually(lambda: not computes())
    assert ask("fine").text == "ok"


def test_to_the_client_a_failed_status_is_the_answer_and_errors_have_no_secrets(serve, tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "own").write_text("swordfish")
    given = {"OWN_SECRET": "swordfish", "secrets_dir": str(tmp_path / "secrets")}
    server = serve(FAILS, settings=given)
    answer = server.request(body="fail", Content_Type="text/plain")
    assert (answer.status, answer.text) == (409, "no stock")
    told = server.request(body="secret", Content_Type="text/plain")
    assert told.json["message"] == "Error: [secret] (handler.js:16)"
    assert "swordfish" not in told.text


def test_its_streams_and_its_end_are_the_wraps(serve: Any, eventually: Any) -> None:
    """What it prints has its name; it has no input and no arguments."""
    server = serve("""
        console.log('imported')
        module.exports = async event => {
          let read = ''
          for await (const piece of process.stdin) read += piece
          console.error('two\\nlines')
          process.stdout.write('begun')
          return JSON.stringify([process.stdin.isTTY, read, process.argv.slice(2)])
        }
    """)
    assert server.request().json == [None, "", []]

    def lines() -> list[str]:
        return [line for line in server.log.read_text().splitlines() if line.startswith("[run")]

    assert eventually(lambda: len(lines()) == 4)
    assert lines()[0] == "[run] imported"
    assert [line.partition("] ")[2] for line in lines()[1:]] == ["two", "lines", "begun"]
    (node,) = [each for each in server.family() if each.name() == "node"]
    server.process.kill()
    assert eventually(lambda: not node.is_running())


def test_nothing_that_it_prints_is_lost_or_broken(serve: Any, eventually: Any) -> None:
    """A child has made its pipe non-blocking; a character comes in two pieces."""
    server = serve("""
        const { execFileSync } = require('child_process')
        module.exports = async () => {
          const code = 'import os; os.set_blocking(1, False)'
          execFileSync('python3', ['-c', code], { stdio: ['ignore', 'inherit', 'inherit'] })
          for (const piece of [[0xc3], [0xa9, 10]]) process.stdout.write(Buffer.from(piece))
          for (let line = 0; line < 2000; line++) console.log('x'.repeat(1000))
          return 'ok'
        }
    """)
    assert server.request().text == "ok"

    def lines() -> list[str]:
        of_run = [each for each in server.log.read_text().splitlines() if each.startswith("[run")]
        return [line.partition("] ")[2] for line in of_run]

    assert eventually(lambda: len(lines()) == 2001)
    assert lines() == ["é", *["x" * 1000] * 2000]


def test_what_fails_after_its_answer_is_in_the_log(serve: Any, eventually: Any) -> None:
    server = serve("""
        module.exports = async (event, context) => {
          setTimeout(() => { throw new Error('thrown') }, 5)
          setTimeout(() => Promise.reject(new Error('rejected')), 5)
          context.succeed('ok')
          throw new Error('at once')
        }
    """)
    assert server.request().text == "ok"

    def told() -> set[str]:
        lines = server.log.read_text().splitlines()
        return {line.partition("] ")[2] for line in lines if line.startswith("[run")}

    assert eventually(
        lambda: {f"Error: {each}" for each in ("thrown", "rejected", "at once")} <= told()
    )
    assert server.request().text == "ok"


def test_the_tasks_of_a_process_share_one_event_loop(serve: Any) -> None:
    meets = """
        let waiting
        module.exports = event => new Promise(resolve => {
          if (waiting) { waiting(process.pid); resolve(process.pid) }
          else waiting = resolve
        })
    """.replace("process.pid", "String(process.pid)")
    apart = {"other": {"handler.js": "module.exports = async () => String(process.pid)"}}
    server = serve(
        meets,
        others=apart,
        styles={"other": "node"},
        tasks={0: "run", 1: "run", 2: "other"},
        processes=[[0, 1, 2]],
        entry={"output": [0, 1, 2]},
    )
    answers = set(server.request().json)
    nodes = [each for each in server.family() if each.name() == "node"]
    assert answers == {each.pid for each in nodes}
    assert len(answers) == 1


def test_requests_at_the_same_time_have_node_processes_of_their_own(serve, in_background, tmp_path):
    server = serve(
        """
        const fs = require('fs')
        module.exports = async event => {
          fs.writeFileSync(`${event.body}/${process.pid}`, '')
          while (fs.readdirSync(event.body).length < 2) await new Promise(setImmediate)
          return String(process.pid)
        }
        """,
        "fork",
    )
    met = tmp_path / "met"
    met.mkdir()
    asked = [
        in_background(server.request, body=str(met), Content_Type="text/plain") for _ in range(2)
    ]
    assert len({each.result().text for each in asked}) == 2


def test_what_node_takes_without_the_handler_is_told_where_it_is_profiled(serve: Any) -> None:
    keeps = "const kept = Buffer.alloc(64 << 20, 1); module.exports = async () => 'ok'"
    answer = serve(keeps, settings={"chiron_trace_key": "key"}).request(X_Chiron_Trace="key")
    (row,) = (each for each in answer.json["timeline"]["spans"] if each["kind"] == "task")
    assert row["runtime_mib"] > 0
    assert row["runtime_mib"] + 64 < row["processes_mib"]


TRACED = {"chiron_trace_key": "key"}


def changes(server: Any) -> list[list[str]]:
    """What the task was seen to change when it ran as for its profile."""
    answer = server.request(X_Chiron_Trace="key state")
    (row,) = (each for each in answer.json["timeline"]["spans"] if each["kind"] == "task")
    found: list[list[str]] = row["changes"]
    return found


#: What a handler sets of what its process shares, and what that is told as.
SETS = {
    "process.env.REGION = String(process.hrtime.bigint())": ["process.env.REGION"],
    "delete process.env.HOME": ["process.env.HOME"],
    "globalThis.kept = {}": ["global.kept"],
    "Date.now = () => 5": ["Date.now"],
    "String.prototype.red = function () { return this }": ["String.prototype.red"],
    "process.chdir('/')": ["process.cwd"],
    "process.on('exit', () => 1)": ["process.on(exit)"],
    "const log = console.log; console.log = () => 1; await 1; console.log = log": ["console.log"],
    "process.stdout.write = () => true": ["process.stdout.write"],
    "require('fs').readFileSync = () => 'x'": ["fs.readFileSync"],
    "require('https').get = () => 1": ["https.get"],
    "require('os').hostname = require('path').join = require('zlib').gzip = () => 'x'": [
        *("os.hostname", "path.join", "zlib.gzip")
    ],
    "require('fs').promises.readFile = Intl.NumberFormat = () => 'x'": [
        *("Intl.NumberFormat", "fs/promises.readFile")
    ],
    "require('https').globalAgent.options.rejectUnauthorized = false": [
        "https.globalAgent.options.rejectUnauthorized"
    ],
    "require('http').globalAgent.maxSockets = 1": ["http.globalAgent.maxSockets"],
    "require('module')._load = () => 1": ["module._load"],
    "require('module')._extensions['.txt'] = () => 1": ["require.extensions..txt"],
    "require('util').inspect.defaultOptions.depth = 9": ["util.inspect.defaultOptions.depth"],
    "require('dns').setDefaultResultOrder('ipv4first')": ["dns.setDefaultResultOrder"],
    "require('events').defaultMaxListeners = 50": ["events.defaultMaxListeners"],
    "require('stream').setDefaultHighWaterMark(false, 5)": ["stream.setDefaultHighWaterMark"],
    "globalThis[Symbol.for('tracing')] = {}": ["global.Symbol(tracing)"],
    "globalThis[Symbol.for('undici.globalDispatcher.1')] = new (class Agent {})()": [
        "global.Symbol(undici.globalDispatcher.1)"
    ],
    "Array.prototype[Symbol.for('own')] = 1": ["Array.prototype.Symbol(own)"],
    "require('http').Server.prototype.emit = () => true": ["http.Server.prototype.emit"],
    "require('module').prototype.own = () => 1": ["module.Module.prototype.own"],
    "Intl.Collator.prototype.own = () => 'x'": ["Intl.Collator.prototype.own"],
}


#: Those that keep code after them from what it needs.
LAST = ("console.log", "fs.readFileSync", "process.stdout.write", "module._load")


def test_what_it_sets_of_what_its_process_shares_is_seen_where_it_is_profiled(serve: Any) -> None:
    codes = sorted(SETS, key=lambda code: SETS[code][0] in LAST)
    source = "".join(f"{{ {code} }}\n" for code in codes)
    runs = serve(f"module.exports = async () => {{ {source} return 'ok' }}", settings=TRACED)
    assert changes(runs) == [sorted(chain(*SETS.values())), [], []]


def test_what_its_import_sets_is_seen_and_what_it_reads_is_not(serve: Any) -> None:
    source = """
        process.env.MODE = 'own'
        module.exports = async () => {
          console.log(process.env.MODE, process.cwd(), typeof Headers, typeof crypto, /a/.test('a'))
          setTimeout(() => {}, 1)
          const server = (await import('http')).createServer((_, answer) => answer.end()).listen(0)
          await (await fetch(`http://127.0.0.1:${server.address().port}`)).text()
          server.close()
          require('zlib').gzipSync(await new Blob(['x']).text())
          new (require('util').TextDecoder)().decode(require('crypto').randomBytes(1))
          return JSON.stringify({ now: Date.now() })
        }
    """
    server = serve(source, settings=TRACED)
    assert changes(server) == [[], ["process.env.MODE"], []]


def test_a_handler_that_cannot_be_loaded_is_told_by_name(wrap_image: Any, start: Any) -> None:
    image = wrap_image(
        {"run": {"handler.js": "require('nowhere')"}}, styles={"run": "node"}, entry={"output": 0}
    )
    with pytest.raises(AssertionError, match=r"ImportError: function run: .*nowhere"):
        start(image)
