package chiron;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What is told, texts in pairs, and a body. On the wire both lengths come first, and that of each text. */
final class Message {
    private static final int HEAD = 12;
    private static final int SMALL = 1 << 16;

    private final List<String> texts = new ArrayList<>();
    byte[] body = {};

    Message with(String name, Object value) {
        texts.add(name);
        texts.add(String.valueOf(value));
        return this;
    }

    Message carrying(byte[] content) {
        body = content;
        return this;
    }

    /** The value of that name; null without any. */
    String get(String name) {
        for (int place = 0; place < texts.size(); place += 2) {
            if (texts.get(place).equals(name)) {
                return texts.get(place + 1);
            }
        }
        return null;
    }

    /** The values of names that begin so, after what is left of their names. */
    List<String[]> under(String prefix) {
        List<String[]> found = new ArrayList<>();
        for (int place = 0; place < texts.size(); place += 2) {
            if (texts.get(place).startsWith(prefix)) {
                found.add(new String[] {texts.get(place).substring(prefix.length()), texts.get(place + 1)});
            }
        }
        return found;
    }

    /** Reads messages from a channel, and writes them. For one thread. */
    static final class Stream {
        private final ByteChannel channel;
        private final ByteBuffer arrived = ByteBuffer.allocateDirect(SMALL).flip();
        private final ByteBuffer leaving = ByteBuffer.allocateDirect(SMALL);

        Stream(ByteChannel channel) {
            this.channel = channel;
        }

        byte[] read(int length) throws IOException {
            byte[] found = new byte[length];
            for (int done = 0; done < length; ) {
                if (!arrived.hasRemaining()) {
                    arrived.clear();
                    int count = channel.read(arrived);
                    arrived.flip();
                    if (count < 0) {
                        throw new EOFException();
                    }
                }
                int piece = Math.min(length - done, arrived.remaining());
                arrived.get(found, done, piece);
                done += piece;
            }
            return found;
        }

        Message read() throws IOException {
            ByteBuffer head = ByteBuffer.wrap(read(HEAD));
            ByteBuffer told = ByteBuffer.wrap(read(head.getInt()));
            Message found = new Message();
            while (told.hasRemaining()) {
                byte[] text = new byte[told.getInt()];
                told.get(text);
                found.texts.add(new String(text, StandardCharsets.UTF_8));
            }
            return found.carrying(read(Math.toIntExact(head.getLong())));
        }

        void write(Message message) throws IOException {
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            for (String each : message.texts) {
                byte[] text = each.getBytes(StandardCharsets.UTF_8);
                told.writeBytes(ByteBuffer.allocate(4).putInt(text.length).array());
                told.writeBytes(text);
            }
            leaving.clear();
            put(ByteBuffer.allocate(HEAD).putInt(told.size()).putLong(message.body.length).array());
            put(told.toByteArray());
            put(message.body);
            flush();
        }

        private void put(byte[] bytes) throws IOException {
            for (int done = 0; done < bytes.length; ) {
                int piece = Math.min(bytes.length - done, leaving.remaining());
                leaving.put(bytes, done, piece);
                done += piece;
                if (!leaving.hasRemaining()) {
                    flush();
                }
            }
        }

        private void flush() throws IOException {
            leaving.flip();
            while (leaving.hasRemaining()) {
                channel.write(leaving);
            }
            leaving.clear();
        }
    }
}
