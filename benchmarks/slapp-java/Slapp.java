package com.openfaas.function;

import com.openfaas.model.IResponse;
import com.openfaas.model.Response;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The request and the answer of each function. */
final class Slapp {
    private Slapp() {}

    /** The sizes in the request; after several tasks it is the list of their outputs, which hand them on. */
    static Map<String, Object> sizes(String body) {
        Object request = Json.read(body);
        Map<?, ?> first = (Map<?, ?>) (request instanceof List<?> outputs ? outputs.get(0) : request);
        return map(first.get("sizes"));
    }

    static int size(Map<String, Object> sizes, String function, String field, int otherwise) {
        Object found = map(sizes.get(function)).get(field);
        return found == null ? otherwise : ((Long) found).intValue();
    }

    static byte[] sha256(byte[] content) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(content);
        } catch (GeneralSecurityException never) {
            throw new IllegalStateException(never);
        }
    }

    static String digest(String body) {
        return HexFormat.of().formatHex(sha256(body.getBytes(StandardCharsets.UTF_8)));
    }

    /** The answer of names and values by turns. */
    static IResponse answer(Object... fields) {
        Map<String, Object> named = new LinkedHashMap<>();
        for (int place = 0; place < fields.length; place += 2) {
            named.put((String) fields[place], fields[place + 1]);
        }
        IResponse response = new Response();
        response.setContentType("application/json");
        response.setBody(Json.write(named));
        return response;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object found) {
        return found == null ? Map.of() : (Map<String, Object>) found;
    }
}
