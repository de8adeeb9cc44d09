package com.openfaas.model;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class Response implements IResponse {
    private final Map<String, String> headers = new HashMap<>();
    private String body = "";
    /** The body as it was set, if as bytes. */
    private byte[] bytes;
    private String contentType = "";
    private int statusCode = 200;

    @Override
    public String getBody() {
        return bytes == null ? body : new String(bytes, StandardCharsets.UTF_8);
    }

    @Override
    public void setBody(String text) {
        body = text;
        bytes = null;
    }

    /** The bytes of what getBody gives, which a subclass may override. */
    @Override
    public byte[] getBodyBytes() {
        return bytes == null ? getBody().getBytes(StandardCharsets.UTF_8) : bytes;
    }

    @Override
    public void setBodyBytes(byte[] content) {
        body = null;
        bytes = content;
    }

    @Override
    public String getHeader(String key) {
        return headers.get(key);
    }

    @Override
    public void setHeader(String key, String value) {
        if (value == null && headers.containsKey(key)) {
            headers.remove(key);
        } else {
            headers.put(key, value);
        }
    }

    @Override
    public Map<String, String> getHeaders() {
        return headers;
    }

    @Override
    public String getContentType() {
        return contentType;
    }

    @Override
    public void setContentType(String type) {
        contentType = type;
    }

    @Override
    public int getStatusCode() {
        return statusCode;
    }

    @Override
    public void setStatusCode(int code) {
        statusCode = code;
    }
}
