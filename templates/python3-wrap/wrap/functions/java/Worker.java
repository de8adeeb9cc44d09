package chiron;

import com.openfaas.model.IHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import com.openfaas.model.Request;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/**
 * Runs the Java handlers of one process of a wrap, each run in the thread of its connection.
 *
 * It listens on its standard input, which is a socket. A connection begins with the token, and has one call at a
 * time. The descriptor that it is given has the token, and its end when whoever started the process has ended.
 */
public final class Worker {
    private static final int TOKEN_LENGTH = 32;
    private static final Map<String, Function> FUNCTIONS = new ConcurrentHashMap<>();
    private static final Map<String, Run> RUNS = new ConcurrentHashMap<>();
    /** How long a run that is given up may take to end, in milliseconds. */
    private static final long NOTICE_MS = 1000;
    private static final int LEAST_STATUS = 200, MOST_STATUS = 999;
    private static final String TYPE = "content-type";
    private static final Pattern NOT_IN_PATHS = Pattern.compile("[ \"<>\\\\^`{|}]");

    private Worker() {}

    public static void main(String[] arguments) throws IOException {
        Output.install();
        System.setIn(InputStream.nullInputStream()); // handlers have no input: ours is the socket
        State.changed();
        FileInputStream starter = new FileInputStream("/proc/self/fd/" + arguments[0]);
        byte[] token = new byte[TOKEN_LENGTH];
        new DataInputStream(starter).readFully(token);
        start(() -> {
            try {
                starter.read();
            } finally {
                Runtime.getRuntime().halt(0);
            }
        });
        ServerSocketChannel server = (ServerSocketChannel) System.inheritedChannel();
        while (true) {
            SocketChannel channel = server.accept();
            start(() -> {
                try (channel) {
                    serve(new Message.Stream(channel), token);
                }
            });
        }
    }

    private interface Action {
        void run() throws IOException;
    }

    private static void start(Action action) {
        Thread thread = new Thread(() -> {
            try {
                action.run();
            } catch (IOException ended) {
                return; // the other side has gone
            }
        }, "HTTP-Dispatcher"); // as the thread that calls handlers alone
        thread.setDaemon(true);
        thread.start();
    }

    private static void serve(Message.Stream stream, byte[] token) throws IOException {
        if (!Arrays.equals(stream.read(TOKEN_LENGTH), token)) {
            return;
        }
        while (true) {
            stream.write(answer(stream.read()));
        }
    }

    private static Message answer(Message asked) {
        if (asked.get("give up") != null) {
            Run run = RUNS.get(asked.get("give up"));
            return new Message().with("ended", run == null || run.interrupt());
        }
        if (asked.get("state") != null) {
            Message told = new Message();
            State.changed().forEach((name, value) -> told.with("state." + name, value));
            return told;
        }
        Run run = new Run(asked);
        RUNS.put(asked.get("call"), run);
        Message told;
        Output.begin(run.lines);
        try {
            told = asked.get("load") == null ? run.perform(asked) : load(asked);
        } catch (Refused refused) {
            told = refused.told;
        } catch (InvocationTargetException error) {
            told = failed(error.getCause());
        } catch (Throwable error) {
            told = failed(error);
        } finally {
            Output.end(run.lines);
            RUNS.remove(asked.get("call"));
            run.end();
        }
        return run.lines.exited() == null ? told : failed(run.lines.exited());
    }

    private static Message load(Message asked) throws Exception {
        String bareKib = residentKib();
        FUNCTIONS.put(asked.get("name"), new Function(asked.get("name"), asked.get("load").split("\0")));
        return new Message().with("bare_kib", bareKib);
    }

    private static String residentKib() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return line.replaceAll("\\D", "");
            }
        }
        return "0";
    }

    /** A call, and the thread that runs it. */
    private static final class Run {
        final Output.Lines lines;
        private final Thread thread = Thread.currentThread();
        private boolean ended;

        Run(Message asked) {
            String execution = asked.get("execution");
            boolean known = execution != null && !execution.isEmpty();
            lines = new Output.Lines(known ? asked.get("name") + " " + execution : asked.get("name"));
        }

        Message perform(Message asked) throws Exception {
            Function function = FUNCTIONS.get(asked.get("name"));
            thread.setContextClassLoader(function.loader);
            IHandler handler = function.take();
            mark(asked, "begin");
            try {
                return told(handler.Handle(request(asked)));
            } finally {
                mark(asked, "end");
                function.giveBack(handler);
            }
        }

        /** Whether it ends when its thread is interrupted. */
        synchronized boolean interrupt() {
            long until = System.currentTimeMillis() + NOTICE_MS;
            try {
                if (!ended) {
                    thread.interrupt();
                }
                for (long left = NOTICE_MS; !ended && left > 0; left = until - System.currentTimeMillis()) {
                    wait(left);
                }
            } catch (InterruptedException never) {
                return ended;
            }
            return ended;
        }

        synchronized void end() {
            ended = true;
            Thread.interrupted(); // else the answer's channel would be closed
            notifyAll();
        }
    }

    private static void mark(Message asked, String place) {
        // A tracer of this thread sees where a run begins and ends.
        if (asked.get("task") != null) {
            Files.isReadable(Path.of("/chiron", place, asked.get("task")));
        }
    }

    /** The request as the template's server has it: headers with one capital, and no body but of a POST. */
    private static IRequest request(Message asked) {
        Map<String, String> headers = new HashMap<>();
        for (String[] each : asked.under("headers.")) {
            String name = each[0].substring(0, 1).toUpperCase() + each[0].substring(1).toLowerCase();
            headers.putIfAbsent(name, each[1]);
        }
        byte[] body = asked.get("method").equalsIgnoreCase("POST") ? asked.body : new byte[0];
        URI uri;
        try {
            uri = new URI(escaped(asked.get("target")));
        } catch (URISyntaxException unread) {
            throw new Refused(400, "Bad Request</h1>URISyntaxException thrown");
        }
        if (!uri.getPath().startsWith("/")) {
            throw new Refused(404, "Not Found</h1>No context found for request");
        }
        return Request.received(body, headers, uri.getRawQuery(), uri.getPath());
    }

    /** The target with what a path cannot have escaped, as the template's watchdog hands it on. */
    private static String escaped(String target) {
        int end = target.indexOf('?') < 0 ? target.length() : target.indexOf('?');
        String path = NOT_IN_PATHS.matcher(target.substring(0, end)).replaceAll(
            found -> String.format("%%%02X", (int) found.group().charAt(0))
        );
        return path + target.substring(end);
    }

    /** A request that never gets to the handler: the template's server answers it. */
    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;
        final transient Message told;

        Refused(int status, String page) {
            byte[] body = ("<h1>" + status + " " + page).getBytes(StandardCharsets.UTF_8);
            told = new Message().with("status", status).with("type", "text/html").carrying(body);
        }
    }

    private static Message told(IResponse response) {
        byte[] body = response.getBodyBytes();
        String type = response.getContentType();
        int status = response.getStatusCode();
        if (status < LEAST_STATUS || status > MOST_STATUS) {
            throw new IllegalArgumentException("a handler cannot answer the status " + status + ": answer 200 to 999");
        }
        if (body == null || type == null) {
            throw new NullPointerException("the response has no " + (body == null ? "body" : "content type"));
        }
        Map<String, String> sent = new TreeMap<>(String.CASE_INSENSITIVE_ORDER); // of two spellings the last counts
        sent.put(TYPE, type);
        response.getHeaders().forEach((name, value) -> sent.put(name, Objects.requireNonNull(value, name)));
        Message answer = new Message().with("status", status).with("type", sent.remove(TYPE));
        sent.forEach((name, value) -> answer.with("headers." + name, value));
        return answer.carrying(body);
    }

    private static Message failed(Throwable error) {
        if (error instanceof Exits.Exited exited) {
            return new Message().with("exited", exited.status);
        }
        StringWriter stack = new StringWriter();
        error.printStackTrace(new PrintWriter(stack));
        String message = error.getMessage() == null ? "" : error.getMessage();
        Message told = new Message().with("error", error.getClass().getName()).with("message", message);
        Deque<StackTraceElement> frames = new ArrayDeque<>();
        for (StackTraceElement each : error.getStackTrace()) {
            if (FUNCTIONS.containsKey(String.valueOf(each.getClassLoaderName()))) {
                frames.push(each);
            }
        }
        for (StackTraceElement each : frames) {
            String place = each.getFileName() + ":" + each.getLineNumber();
            told.with("frames." + place, each.getMethodName());
        }
        return told.with("shown", stack);
    }
}
