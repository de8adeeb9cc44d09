package com.openfaas.model;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class Request implements IRequest {
    private final byte[] body;
    private final Map<String, String> headers;
    private final String queryRaw;
    private final Map<String, String> query;
    private final String pathRaw;
    private final Map<String, String> path;

    /** A request without a query and without a path: their maps are null. */
    public Request(String body, Map<String, String> headers) {
        this.body = bytes(body);
        this.headers = headers;
        queryRaw = null;
        query = null;
        pathRaw = null;
        path = null;
    }

    public Request(String body, Map<String, String> headers, String queryRaw, String path) {
        this(bytes(body), headers, queryRaw, path);
    }

    private Request(byte[] body, Map<String, String> headers, String queryRaw, String pathRaw) {
        this.body = body;
        this.headers = headers;
        this.queryRaw = queryRaw;
        query = parameters(queryRaw);
        this.pathRaw = pathRaw;
        path = pairs(pathRaw);
    }

    /** The request of this body; `query` is null without a question mark. */
    public static Request received(byte[] body, Map<String, String> headers, String query, String path) {
        return new Request(body, headers, query, path);
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
        return queryRaw;
    }

    @Override
    public Map<String, String> getQuery() {
        return query;
    }

    @Override
    public String getPathRaw() {
        return pathRaw;
    }

    @Override
    public Map<String, String> getPath() {
        return path;
    }

    /** Parameter to value; to null without an equals sign. The last of several values counts. */
    private static Map<String, String> parameters(String query) {
        Map<String, String> found = new HashMap<>();
        for (String each : query == null ? new String[0] : query.split("&")) {
            String[] parts = each.split("=");
            String key = parts.length > 0 ? decoded(parts[0]) : null;
            found.put(key, parts.length > 1 ? decoded(parts[1]) : null);
        }
        return found;
    }

    /** Of /a/b/c: a to b, and c to an empty text. */
    private static Map<String, String> pairs(String path) {
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

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
