package chiron;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** What functions print: lines with the name of the function whose thread, or whose thread's thread, prints. */
final class Output extends OutputStream {
    /** A line of the log that is longer is broken. */
    private static final int LONGEST_LINE = 1 << 15;

    private static final FileOutputStream LOG = new FileOutputStream(FileDescriptor.out);
    private static final InheritableThreadLocal<Lines> CURRENT = new InheritableThreadLocal<>();
    private static final Lines UNKNOWN = new Lines("java");

    /** The lines of one run, or of the import of a handler, and whether its code has called System.exit. */
    static final class Lines {
        private final byte[] prefix;
        private final ByteArrayOutputStream begun = new ByteArrayOutputStream();
        private final Thread runner = Thread.currentThread();
        private Exits.Exited exited;
        private boolean ended;

        Lines(String name) {
            prefix = ("[" + name + "] ").getBytes(StandardCharsets.UTF_8);
        }

        synchronized void print(byte[] bytes, int from, int length) throws IOException {
            for (int place = from; place < from + length; place++) {
                if (bytes[place] != '\n') {
                    begun.write(bytes[place]);
                }
                if (bytes[place] == '\n' || begun.size() >= LONGEST_LINE) {
                    say();
                }
            }
        }

        /** Makes this exit the answer, whatever the code catches. A run that waits for its thread is interrupted. */
        synchronized void exit(Exits.Exited exit) {
            if (ended) {
                return;
            }
            exited = exit;
            if (Thread.currentThread() != runner) {
                runner.interrupt();
            }
        }

        synchronized Exits.Exited exited() {
            return exited;
        }

        synchronized void end() {
            ended = true;
            try {
                if (begun.size() > 0) {
                    say();
                }
            } catch (IOException gone) {
                begun.reset();
            }
        }

        private void say() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            line.writeBytes(prefix);
            line.writeBytes(begun.toByteArray());
            line.write('\n');
            begun.reset();
            LOG.write(line.toByteArray());
        }
    }

    /** Has System.out and System.err print by function. */
    static void install() {
        PrintStream stream = new PrintStream(new Output(), true, StandardCharsets.UTF_8);
        System.setOut(stream);
        System.setErr(stream);
    }

    static void begin(Lines lines) {
        CURRENT.set(lines);
    }

    static void end(Lines lines) {
        CURRENT.remove();
        lines.end();
    }

    static void exit(Exits.Exited exited) {
        Lines lines = CURRENT.get();
        if (lines != null) {
            lines.exit(exited);
        }
    }

    @Override
    public void write(int each) throws IOException {
        write(new byte[] {(byte) each}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
        Lines lines = CURRENT.get();
        (lines == null ? UNKNOWN : lines).print(bytes, from, length);
    }
}
