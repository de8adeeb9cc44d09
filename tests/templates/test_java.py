"""Java handlers in a wrap: what they get, what they answer, how they fail, what they print."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from http.client import HTTPConnection
from textwrap import dedent
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")
#: Where the task is: in the server, or in a further process.
PLACES = {"main": [[0]], "fork": [[], [0]], "pool": [[], [0]]}
FILE = "src/main/java/com/openfaas/function/Handler.java"


def files(body: str, members: str = "", imports: str = "") -> dict[str, str]:
    """A handler that does `body` with ``req`` and ``res``."""
    source = f"""
        package com.openfaas.function;
        import com.openfaas.model.*;
        import java.util.*;
        {imports}
        public class Handler extends AbstractHandler {{
            {members}
            public IResponse Handle(IRequest req) {{
                Response res = new Response();
                {body}
                return res;
            }}
        }}
    """
    return {FILE: dedent(source)}


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap whose first task is a Java handler."""

    def serve(handler: dict[str, str], place: str = "main", **fields: Any) -> Any:
        settings = fields.pop("settings", {})
        image = wrap_image(
            {"run": handler, **fields.pop("others", {})},
            fields.pop("processes", PLACES[place]),
            styles={"run": "java", **fields.pop("styles", {})},
            mechanism="pool" if place == "pool" else "fork",
            **{"entry": {"output": 0}} | fields,
        )
        command = [sys.executable, "-m", "wrap.functions.java_build", "function/functions"]
        subprocess.run(command, cwd=image, check=True)  # as when an image is built
        return start(image, **settings)

    return serve


SEES = files("""
    if (req.getHeader("X-own") == null) {
        res.setBodyBytes(req.getBodyBytes());
        return res;
    }
    res.setContentType("text/plain");
    res.setHeader("X-Own", req.getHeader("X-own"));
    res.setBody(req.getBody() + " " + req.getHeader("Content-type") + " " + req.getPathRaw() + " "
        + req.getPath() + " " + req.getQueryRaw() + " " + new TreeMap<>(req.getQuery()));
""")


def test_a_handler_gets_the_request_and_its_answer_is_the_tasks(serve: Any) -> None:
    server = serve(SEES, "pool")
    answer = server.request(
        "POST", "/a/b?x=1%202&y", "größe", Content_Type="application/json", X_Own="own"
    )
    assert answer.status == 200, answer.text
    assert answer.text == "größe application/json /a/b {a=b} x=1%202&y {x=1 2, y=null}"
    assert (answer.headers["Content-Type"], answer.headers["X-Own"]) == ("text/plain", "own")
    content = os.urandom(3_000_000)
    assert server.request(body=content).body == content
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("POST", "/")
    for value in ("first", "second"):
        connection.putheader("X-Own", value)
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    assert connection.getresponse().headers["X-Own"] == "first"
    connection.close()
    # Its template gives a body to POST alone.
    assert server.request("PUT", "/", "x", X_Own="own").text.startswith(" ")


FAILS = files(
    """
    switch (req.getBody()) {
        case "throw": refuse(); break;
        case "null": return null;
        case "status": res.setStatusCode(409); res.setBody("no stock"); return res;
        case "exit": System.exit(3); break;
        case "halt": Runtime.getRuntime().halt(4); break;
        case "deep": Handle(req); break;
        case "caught": try { System.exit(3); } catch (Throwable thrown) { } break;
        case "beside":
            new Thread(() -> System.exit(3)).start();
            try { Thread.sleep(1_000_000); } catch (InterruptedException thrown) { }
            break;
        case "no status": res.setStatusCode(1000); break;
    }
    res.setBody("ok");
    """,
    """
    static class OrderError extends RuntimeException {
        OrderError(String message) { super(message); }
    }
    static void refuse() { throw new OrderError("no stock\\nat all"); }
    """,
)
ERROR = "com.openfaas.function.Handler$OrderError"
EXIT = "the handler called System.exit(3): return instead"
TOLD = {
    "throw": ("raised", f"{ERROR}: no stock (Handler.java:11)", ERROR, "no stock\nat all"),
    "status": ("status", "the handler answered 409: no stock", "status", "409: no stock"),
    **dict.fromkeys(("exit", "caught", "beside"), ("exited", EXIT, "exited", EXIT)),
    "halt": ("process-died", "its Java process exited with status 4", "process-died", ""),
}  # fmt: skip


def test_its_errors_are_told_by_name_message_and_place(serve: Any) -> None:
    after = {"after": "def handle(req):\n    return req"}
    server = serve(
        FAILS, "fork", others=after, processes=[*PLACES["fork"], [1]],
        inputs={0: None, 1: 0}, entry={"output": 1},
    )  # fmt: skip
    for given, (code, message, error, said) in TOLD.items():
        told = server.request(body=given).json
        assert (told["code"], told["message"], told["error"]) == (code, message, error), given
        assert told["function"] == "run"
        assert said in json.loads(told["cause"])["errorMessage"]
        if given == "throw":
            assert json.loads(told["cause"])["stackTrace"] == [
                "Handler.java:17 in Handle",
                "Handler.java:11 in refuse",
            ]
        assert server.request(body="fine").text == "ok"
    assert server.request(body="deep").json["error"] == "java.lang.StackOverflowError"
    assert "NullPointerException" in server.request(body="null").json["message"]
    told = server.request(body="no status").json["message"]
    assert "a handler cannot answer the status 1000: answer 200 to 999" in told


@pytest.mark.slow
def test_what_it_prints_has_its_name_and_its_failed_status_is_the_clients(serve, eventually):
    server = serve(
        files(
            """
            System.err.println("two\\nlines");
            try {
                Thread thread = new Thread(() -> System.out.println("beside"));
                thread.start();
                thread.join();
                System.out.print(Thread.currentThread().getName() + " read " + System.in.read());
            } catch (Exception never) { throw new RuntimeException(never); }
            res.setStatusCode(409);
            res.setBody("no stock");
            """,
            'static { System.out.println("imported"); }',
        )
    )
    answer = server.request()
    assert (answer.status, answer.text) == (409, "no stock")

    def lines() -> list[str]:
        return [line for line in server.log.read_text().splitlines() if line.startswith("[run")]

    assert eventually(lambda: len(lines()) == 5)
    assert lines()[0] == "[run] imported"
    said = [line.partition("] ")[2] for line in lines()[1:]]
    assert said == ["two", "lines", "beside", "HTTP-Dispatcher read -1"]


MEETS = files(
    """
    try {
        int meetings = MEETING.arriveAndAwaitAdvance();
        own++;
        String kind = req.getHeader("Content-type");
        res.setBody("[\\"" + kind + "\\", " + req.getBody() + ", " + own
            + ", " + meetings + "]");
    } catch (Exception error) { throw new RuntimeException(error); }
    """,
    "static final java.util.concurrent.Phaser MEETING = new java.util.concurrent.Phaser(2);"
    "int own;",
)


def test_tasks_of_a_process_run_at_once_in_one_jvm_with_classes_of_their_own(serve, eventually):
    """What a task of Python gives them is JSON; their JVM ends with the wrap."""
    server = serve(
        MEETS,
        others={"other": MEETS, "twice": "def handle(req):\n    return {'n': 2 * int(req)}"},
        styles={"other": "java"},
        tasks=dict(enumerate(["twice", "run", "run", "other", "other"])),
        processes=[[0], [1, 2, 3, 4]],
        inputs={0: None} | dict.fromkeys(range(1, 5), 0),
        entry={"output": [1, 2, 3, 4]},
    )
    for turn in (1, 2):
        told = ["application/json", {"n": 8}, turn, turn]
        assert server.request(body="4").json == [told] * 4
    (java,) = [each for each in server.family() if each.name() == "java"]
    server.process.kill()
    assert eventually(lambda: not java.is_running())


@pytest.mark.slow
def test_the_jvms_of_a_wrap_share_its_memory(serve: Any) -> None:
    server = serve(files(""), tasks={0: "run", 1: "run"}, processes=[[0], [1]])
    assert server.request().status == 200
    for each in (each for each in server.family() if each.name() == "java"):
        assert {"-XX:MaxRAMPercentage=37.500", "-XX:MinRAMPercentage=37.500"} <= {*each.cmdline()}


TRACED = {"chiron_trace_key": "key"}


def traced(server: Any, key: str) -> dict[str, Any]:
    """What is told of a task that runs as for its profile."""
    answer = server.request(X_Chiron_Trace=key)
    (row,) = (each for each in answer.json["timeline"]["spans"] if each["kind"] == "task")
    return dict(row)


def test_what_it_takes_and_sets_of_what_its_jvm_shares_is_seen_where_it_is_profiled(serve):
    server = serve(
        files(
            """
            String.format(Locale.FRANCE, "%f", 1.0);
            System.setProperty("own.run", String.valueOf(System.nanoTime()));
            TimeZone.setDefault(TimeZone.getTimeZone("Asia/Tokyo"));
            """,
            "static final byte[] KEPT = new byte[64 << 20]; static { Arrays.fill(KEPT, (byte) 1); }"
            'static { System.setProperty("own.import", "x"); }',
        ),
        settings=TRACED,
    )
    assert traced(server, "key state")["changes"] == [
        ["System.setProperty(own.run)", "TimeZone.setDefault"],
        ["System.setProperty(own.import)"],
        [],
    ]
    row = traced(server, "key")
    assert row["runtime_mib"] > 0
    assert row["runtime_mib"] + 64 < row["processes_mib"]


#: What a handler sets of what its JVM shares, and what that is told as.
SETS = {
    "Locale.setDefault(Locale.Category.FORMAT, Locale.GERMANY)": "Locale.setDefault",
    "CookieHandler.setDefault(new CookieManager())": "CookieHandler.setDefault",
    "Authenticator.setDefault(new Authenticator() { })": "Authenticator.setDefault",
    "ProxySelector.setDefault(ProxySelector.of(null))": "ProxySelector.setDefault",
    "HttpURLConnection.setFollowRedirects(false)": "HttpURLConnection.setFollowRedirects",
    "URL.setURLStreamHandlerFactory(name -> null)": "URL.setURLStreamHandlerFactory",
    'Security.setProperty("networkaddress.cache.ttl", "5")': (
        "Security.setProperty(networkaddress.cache.ttl)"
    ),
    'Security.removeProvider("SunPCSC")': "Security.insertProviderAt",
    "SSLContext.setDefault(SSLContext.getInstance(String.valueOf(TLS)))": "SSLContext.setDefault",
    "HttpsURLConnection.setDefaultHostnameVerifier((name, session) -> true)": (
        "HttpsURLConnection.setDefaultHostnameVerifier"
    ),
    'Logger.getLogger("").setLevel(Level.FINE)': "Logger.getLogger()",
    "LOG.setUseParentHandlers(false)": "Logger.getLogger(com.openfaas.function.Handler)",
}
IMPORTS = """
    import java.net.*; import java.security.*; import java.util.logging.*; import javax.net.ssl.*;
"""
NAMES = "static final Logger LOG = Logger.getLogger(Handler.class.getName());"
NAMES += 'static final String TLS = "TLS";'


def test_what_it_sets_by_classes_of_the_jdk_is_seen_and_what_it_gets_is_not(serve: Any) -> None:
    tries = "try {{ {}; }} catch (Exception error) {{ throw new RuntimeException(error); }}"
    gets = """
        HttpsURLConnection.getDefaultSSLSocketFactory();
        LOG.info(String.valueOf(Security.getProviders().length));
        new URL("https://localhost").openConnection();
    """
    server = serve(files(tries.format(gets), NAMES, IMPORTS), settings=TRACED)
    assert traced(server, "key state")["changes"] == [[], [], []]
    sets = "".join(map(tries.format, SETS))
    factory = "static void trust() { HttpsURLConnection.setDefaultSSLSocketFactory(null); }"
    server = serve(files(sets, NAMES + factory, IMPORTS), settings=TRACED, name="sets")
    found = sorted(SETS.values()), ["HttpsURLConnection.setDefaultSSLSocketFactory"], []
    assert traced(server, "key state")["changes"] == [*found]


@pytest.mark.slow
def test_a_handler_that_waits_is_interrupted_and_of_one_that_computes_the_jvm_is_killed(
    serve: Any, eventually: Any
) -> None:
    server = serve(
        files("""
            if (req.getBody().equals("computes")) while (System.nanoTime() != 0) { }
            if (req.getBody().equals("waits"))
                try { Thread.sleep(1_000_000); } catch (InterruptedException given_up) { }
            res.setBody("ok");
        """),
        timeouts_s={"run": 6.0},
    )

    def javas() -> list[Any]:
        return [each for each in server.family() if each.name() == "java"]

    before = javas()
    assert server.request(body="waits").json["code"] == "timeout"
    assert server.request(body="fine").text == "ok"
    assert javas() == before
    told = server.request(body="computes").json
    assert (told["code"], told["function"]) == ("timeout", "run")
    assert eventually(lambda: not before[0].is_running())
    assert server.request(body="fine").text == "ok"


GREETING = """
package own;
public class Greeting {
    public static String say = "hi";
    public static void end() { System.exit(4); }
}
"""


@pytest.mark.slow
def test_jars_and_resources_are_on_its_class_path(wrap_image, start, tmp_path):
    """An exit in a jar ends its run alone. Compiled classes in its folder are not run."""
    source = tmp_path / "Greeting.java"
    source.write_text(GREETING)
    subprocess.run(["javac", "-d", tmp_path / "made", source], check=True)
    handler = files(
        """
        if (req.getBody().equals("end")) {
            Greeting.end();
        }
        try (Scanner text = new Scanner(Handler.class.getResourceAsStream("/name.txt"))) {
            var code = Handler.class.getProtectionDomain().getCodeSource().getLocation();
            var jar = Greeting.class.getProtectionDomain().getCodeSource().getLocation();
            res.setBody(Greeting.say + " " + text.next() + " " + code.getProtocol() + " "
                + jar.getPath().replaceAll(".*/", "") + " " + ProcessHandle.current().pid());
        }
        """,
        imports="import own.Greeting;",
    )
    handler["src/main/resources/name.txt"] = "you"
    handler[".classes/com/openfaas/function/Handler.class"] = "of other sources"
    image = wrap_image({"run": handler}, styles={"run": "java"}, entry={"output": 0})
    library = image / "function" / "functions" / "run" / "function" / "lib"
    library.mkdir()
    made = shutil.make_archive(str(tmp_path / "greeting"), "zip", tmp_path / "made")
    shutil.move(made, library / "greeting.jar")
    server = start(image)
    first = server.request().text
    assert first.startswith("hi you file greeting.jar ")
    told = server.request(body="end").json
    assert (told["code"], told["message"]) == (
        "exited",
        "the handler called System.exit(4): return instead",
    )
    assert server.request().text == first


def test_a_handler_that_cannot_be_compiled_is_told_by_name(wrap_image: Any, start: Any) -> None:
    handler = {"run": files("nothing();")}
    image = wrap_image(handler, styles={"run": "java"}, entry={"output": 0})
    with pytest.raises(AssertionError, match=r"ImportError: .*Handler\.java:\d+: error: cannot"):
        start(image)
