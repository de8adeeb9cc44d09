package com.openfaas.function;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** JSON as maps, lists, strings, longs, doubles, booleans and null, written as Python's json.dumps does. */
final class Json {
    private static final Pattern INTEGER = Pattern.compile("-?\\d+");
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a document that is known to be valid. */
    @SuppressWarnings("unchecked")
    static <T> T read(String text) {
        return (T) new Json(text).value();
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream()
                .map(each -> quoted((String) each.getKey()) + ": " + write(each.getValue()))
                .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Json::write).collect(Collectors.joining(", ", "[", "]"));
        }
        return value instanceof String string ? quoted(string) : String.valueOf(value);
    }

    private static String quoted(String value) {
        StringBuilder made = new StringBuilder("\"");
        for (char each : value.toCharArray()) {
            if (each == '"' || each == '\\') {
                made.append('\\').append(each);
            } else if (each >= ' ' && each < 127) {
                made.append(each);
            } else {
                made.append(String.format("\\u%04x", (int) each));
            }
        }
        return made.append('"').toString();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private Object value() {
        switch (next()) {
            case '{':
                return object();
            case '[':
                return list();
            case '"':
                return string();
            default:
                return literal();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        for (at++; next() != '}'; ) {
            String key = string();
            next();
            at++; // the colon
            found.put(key, value());
            if (next() == ',') {
                at++;
                next();
            }
        }
        at++;
        return found;
    }

    private List<Object> list() {
        List<Object> found = new ArrayList<>();
        for (at++; next() != ']'; ) {
            found.add(value());
            if (next() == ',') {
                at++;
            }
        }
        at++;
        return found;
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char each = text.charAt(at);
            if (each == '\\') {
                each = text.charAt(++at);
                if (each == 'u') {
                    each = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                } else {
                    int control = "bfnrt".indexOf(each);
                    each = control < 0 ? each : "\b\f\n\r\t".charAt(control);
                }
            }
            found.append(each);
        }
        at++;
        return found.toString();
    }

    private Object literal() {
        int begin = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String found = text.substring(begin, at);
        switch (found) {
            case "null":
                return null;
            case "true":
            case "false":
                return Boolean.valueOf(found);
            default:
                return INTEGER.matcher(found).matches() ? (Object) Long.valueOf(found) : Double.valueOf(found);
        }
    }
}
