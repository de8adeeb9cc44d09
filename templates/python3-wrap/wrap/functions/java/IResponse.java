package com.openfaas.model;

import java.nio.charset.StandardCharsets;
import java.util.Map;

public interface IResponse {
    String getBody();

    void setBody(String body);

    /** Of the template's first versions. */
    default byte[] getBodyBytes() {
        return getBody().getBytes(StandardCharsets.UTF_8);
    }

    /** Of the template's first versions. */
    default void setBodyBytes(byte[] body) {
        setBody(new String(body, StandardCharsets.UTF_8));
    }

    String getHeader(String key);

    void setHeader(String key, String value);

    Map<String, String> getHeaders();

    void setContentType(String contentType);

    String getContentType();

    void setStatusCode(int code);

    int getStatusCode();
}
