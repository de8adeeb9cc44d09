package com.openfaas.function;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Client of the market data service: one request a page of symbols, over a connection that the JVM keeps. */
final class Quotes {
    private static final int PAGE_SYMBOLS = 12;
    private static final int TIMEOUT_MS = 10_000;
    private static final String GATEWAY_URL = "http://gateway.openfaas:8080"; // as functions reach it in a cluster

    private Quotes() {}

    /** Symbol to price in cents. */
    static Map<String, Object> fetch(List<Object> symbols) throws IOException {
        Map<String, Object> quotes = new LinkedHashMap<>();
        for (int start = 0; start < symbols.size(); start += PAGE_SYMBOLS) {
            List<Object> page = symbols.subList(start, Math.min(start + PAGE_SYMBOLS, symbols.size()));
            quotes.putAll(Json.<Map<String, Object>>read(post(Json.write(page))));
        }
        return quotes;
    }

    /** QUOTES_URL, else the function finra-quotes behind the gateway. */
    private static String serviceUrl() {
        String gateway = System.getenv().getOrDefault("gateway_url", GATEWAY_URL).replaceAll("/+$", "");
        String service = System.getenv().getOrDefault("QUOTES_URL", "");
        return service.isEmpty() ? gateway + "/function/finra-quotes" : service;
    }

    private static String post(String body) throws IOException {
        String url = serviceUrl();
        HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setConnectTimeout(TIMEOUT_MS);
        connection.setReadTimeout(TIMEOUT_MS);
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", "application/json");
        try (OutputStream asked = connection.getOutputStream()) {
            asked.write(body.getBytes(StandardCharsets.UTF_8));
        }
        if (connection.getResponseCode() != HttpURLConnection.HTTP_OK) {
            throw new IOException("market data at " + url + " answered " + connection.getResponseCode());
        }
        try (InputStream answer = connection.getInputStream()) {
            return new String(answer.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
