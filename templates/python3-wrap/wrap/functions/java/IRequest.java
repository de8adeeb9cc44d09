package com.openfaas.model;

import java.nio.charset.StandardCharsets;
import java.util.Map;

public interface IRequest {
    String getBody();

    /** Of the template's first versions. */
    default byte[] getBodyBytes() {
        return getBody().getBytes(StandardCharsets.UTF_8);
    }

    Map<String, String> getHeaders();

    String getHeader(String key);

    String getQueryRaw();

    Map<String, String> getQuery();

    String getPathRaw();

    Map<String, String> getPath();
}
