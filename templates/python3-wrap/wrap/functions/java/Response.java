package com.openfaas.model;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class Response implements IResponse {
    private final Map<String, String> headers = new HashMap<>();
    private byte[] body = {};
    private String contentType = "";
    private int statusCode = 200;

    @Override
    public String getBody() {
        return new String(body, StandardCharsets.UTF_8);
    }

    @Override
    public void setBody(String text) {
        body = text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public byte[] getBodyBytes() {
        return body;
    }

    @Override
    public void setBodyBytes(byte[] bytes) {
        body = bytes;
    }

    @Override
    public String getHeader(String key) {
        return headers.get(key);
    }

    @Override
    public void setHeader(String key, String value) {
        if (value == null) {
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
