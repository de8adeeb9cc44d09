package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;

/** Network I/O: fetches several texts from the peer, one after the other. */
public class Handler extends AbstractHandler {
    private static final int TIMEOUT_MS = 10_000;
    private static final String GATEWAY_URL = "http://gateway.openfaas:8080"; // as functions reach it in a cluster

    /** Fetches `sizes.network-io.requests` texts of `.bytes` bytes; which ones the input decides. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        Map<String, Object> sizes = Slapp.sizes(body);
        int requests = Slapp.size(sizes, "network-io", "requests", 1);
        int bytes = Slapp.size(sizes, "network-io", "bytes", 16_384);
        String seed = Slapp.digest(body);
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        try {
            for (int number = 0; number < requests; number++) {
                texts.writeBytes(fetch(seed + "/" + number, bytes));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        byte[] received = texts.toByteArray();
        return Slapp.answer(
            "function", "network-io",
            "received", received.length,
            "digest", HexFormat.of().formatHex(Slapp.sha256(received)),
            "sizes", sizes
        );
    }

    /** PEER_URL, else the function slapp-peer behind the gateway. */
    private static String peerUrl() {
        String gateway = System.getenv().getOrDefault("gateway_url", GATEWAY_URL).replaceAll("/+$", "");
        String peer = System.getenv().getOrDefault("PEER_URL", "");
        return peer.isEmpty() ? gateway + "/function/slapp-peer" : peer;
    }

    /** The peer's text of `bytes` bytes for `key`; the JVM keeps the connection for the next one. */
    private static byte[] fetch(String key, int bytes) throws IOException {
        String url = peerUrl();
        HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setConnectTimeout(TIMEOUT_MS);
        connection.setReadTimeout(TIMEOUT_MS);
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", "application/json");
        try (OutputStream asked = connection.getOutputStream()) {
            asked.write(Json.write(Map.of("key", key, "bytes", bytes)).getBytes(StandardCharsets.UTF_8));
        }
        if (connection.getResponseCode() != HttpURLConnection.HTTP_OK) {
            throw new IOException("peer at " + url + " answered " + connection.getResponseCode());
        }
        try (InputStream text = connection.getInputStream()) {
            return text.readAllBytes();
        }
    }
}
