package com.openfaas.function;

import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.zip.CRC32;

/** Disk I/O: writes text to a temporary file, makes it durable, reads it back and removes it. */
public class Handler extends AbstractHandler {
    private static final int CHUNK = 64 * 1024;
    private static final int MIB = 1024 * 1024;

    /** Moves `sizes.disk-io.mib` MiB of text to the disk and back. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        Map<String, Object> sizes = Slapp.sizes(body);
        int mib = Slapp.size(sizes, "disk-io", "mib", 8);
        String line = Slapp.digest(body);
        byte[] chunk = line.repeat(CHUNK / line.length()).getBytes(StandardCharsets.US_ASCII);
        CRC32 checksum = new CRC32();
        try {
            long length = writeAndRead(chunk, mib * (MIB / CHUNK), checksum);
            return Slapp.answer(
                "function", "disk-io", "bytes", length, "checksum", checksum.getValue(), "sizes", sizes
            );
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static long writeAndRead(byte[] chunk, int chunks, CRC32 checksum) throws IOException {
        String folder = System.getenv().getOrDefault("TMPDIR", System.getProperty("java.io.tmpdir"));
        Path path = Files.createTempFile(Path.of(folder), "disk-io-", "");
        try (FileChannel file = FileChannel.open(path, READ, WRITE)) {
            for (int number = 0; number < chunks; number++) {
                file.write(ByteBuffer.wrap(chunk));
            }
            file.force(true);
            file.position(0);
            long length = 0;
            ByteBuffer found = ByteBuffer.allocate(CHUNK);
            while (file.read(found) > 0) {
                length += found.flip().remaining();
                checksum.update(found);
                found.clear();
            }
            return length;
        } finally {
            Files.delete(path);
        }
    }
}
