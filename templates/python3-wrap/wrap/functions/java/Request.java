package com.openfaas.model;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class Request implements IRequest {
    private final byte[] body;
    private final Map<String, String> headers;
    private final String query;
    private final String path;

    public Request(String body, Map<String, String> headers) {
        this(body, headers, null, null);
    }

    public Request(String body, Map<String, String> headers, String queryRaw, String path) {
        this(headers, queryRaw, path, body == null ? null : body.getBytes(StandardCharsets.UTF_8));
    }

    private Request(Map<String, String> headers, String query, String path, byte[] body) {
        this.headers = headers;
        this.query = query;
        this.path = path;
        this.body = body;
    }

    /** The request of this body; `query` is null without a question mark. */
    public static Request received(byte[] body, Map<String, String> headers, String query, String path) {
        return new Request(headers, query, path, body);
    }

    @Override
    public String getBody() {
        return body == null ? null : new String(body, StandardCharsets.UTF_8);
    }

    @Override
    public byte[] getBodyBytes() {
        return body;
    }

    @Override
    public Map<String, String> getHeaders() {
        return headers;
    }

    @Override
    public String getHeader(String key) {
        return headers.get(key);
    }

    @Override
    public String getQueryRaw() {
        return query;
    }

    /** Parameter to value; to null without an equals sign. The last of several values counts. */
    @Override
    public Map<String, String> getQuery() {
        Map<String, String> found = new HashMap<>();
        for (String each : query == null ? new String[0] : query.split("&")) {
            String[] parts = each.split("=");
            String key = parts.length > 0 ? decoded(parts[0]) : null;
            found.put(key, parts.length > 1 ? decoded(parts[1]) : null);
        }
        return found;
    }

    @Override
    public String getPathRaw() {
        return path;
    }

    /** Of /a/b/c: a to b, and c to an empty text. */
    @Override
    public Map<String, String> getPath() {
        Map<String, String> found = new HashMap<>();
        String[] parts = path == null || path.isEmpty() ? new String[0] : path.substring(1).split("/");
        String key = "";
        for (String part : parts) {
            if (key.isEmpty()) {
                key = part;
            } else {
                found.put(key, part);
                key = "";
            }
        }
        if (!key.isEmpty()) {
            found.put(key, "");
        }
        return found;
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
