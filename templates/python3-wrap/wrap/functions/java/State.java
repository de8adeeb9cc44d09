package chiron;

import java.io.IOException;
import java.io.InputStream;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.HttpURLConnection;
import java.net.ProxySelector;
import java.net.ResponseCache;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Provider;
import java.security.Security;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;
import java.util.TreeSet;
import java.util.logging.ConsoleHandler;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;

/** What all functions of the JVM share, by what sets it. */
final class State {
    private static final Map<String, String> FIRST = now();

    private State() {}

    /** What is no longer as when this was first called, with its value now. */
    static Map<String, String> changed() {
        Map<String, String> now = now();
        TreeSet<String> names = new TreeSet<>(FIRST.keySet());
        names.addAll(now.keySet());
        Map<String, String> changed = new HashMap<>();
        for (String name : names) {
            String value = now.get(name);
            if (value == null || !value.equals(FIRST.get(name))) {
                changed.put(name, String.valueOf(value));
            }
        }
        for (String name : Function.Loader.NAMED) {
            try {
                look(name, changed);
            } catch (IOException | GeneralSecurityException unknown) {
                changed.put(name, unknown.toString());
            }
        }
        return changed;
    }

    /** Puts what a JDK's class has no longer as at the start. It takes long, so that a function must name the class. */
    private static void look(String type, Map<String, String> found) throws IOException, GeneralSecurityException {
        switch (type) {
            case "java.net.Authenticator" -> set(found, "Authenticator.setDefault", Authenticator.getDefault());
            case "java.net.CookieHandler" -> set(found, "CookieHandler.setDefault", CookieHandler.getDefault());
            case "java.net.ResponseCache" -> set(found, "ResponseCache.setDefault", ResponseCache.getDefault());
            case "java.net.ProxySelector" -> {
                Object selector = unless(ProxySelector.getDefault(), "sun.net.spi.DefaultProxySelector");
                set(found, "ProxySelector.setDefault", selector);
            }
            case "java.net.HttpURLConnection" -> {
                Object follows = HttpURLConnection.getFollowRedirects() ? null : Boolean.FALSE;
                set(found, "HttpURLConnection.setFollowRedirects", follows);
            }
            case "java.net.URL" -> {
                Object refusal = refusal(() -> URL.setURLStreamHandlerFactory(null));
                set(found, "URL.setURLStreamHandlerFactory", refusal);
            }
            case "java.security.Security" -> security(found);
            case "java.util.logging.Logger" -> loggers(found);
            case "javax.net.ssl.HttpsURLConnection" -> {
                String first = type + "$DefaultHostnameVerifier";
                Object verifier = unless(HttpsURLConnection.getDefaultHostnameVerifier(), first);
                set(found, "HttpsURLConnection.setDefaultHostnameVerifier", verifier);
            }
            case "javax.net.ssl.SSLContext" -> {
                SSLContext context = SSLContext.getDefault();
                set(found, "SSLContext.setDefault", context.getProtocol().equals("Default") ? null : context);
            }
            case Function.Loader.FACTORY -> set(found, "HttpsURLConnection." + type, type);
            default -> { }
        }
    }

    private static Map<String, String> now() {
        Map<String, String> found = new HashMap<>();
        found.put("TimeZone.setDefault", TimeZone.getDefault().getID()); // which may set a property
        StringBuilder locales = new StringBuilder(Locale.getDefault().toLanguageTag());
        for (Locale.Category category : Locale.Category.values()) {
            locales.append(' ').append(Locale.getDefault(category).toLanguageTag());
        }
        found.put("Locale.setDefault", locales.toString());
        found.put("System.setIn", identity(System.in));
        found.put("System.setOut", identity(System.out));
        found.put("System.setErr", identity(System.err));
        Object handler = Thread.getDefaultUncaughtExceptionHandler();
        found.put("Thread.setDefaultUncaughtExceptionHandler", identity(handler));
        System.getProperties().forEach(
            (name, value) -> found.put("System.setProperty(" + name + ")", String.valueOf(value))
        );
        return found;
    }

    private static void set(Map<String, String> found, String name, Object value) {
        if (value != null) {
            found.put(name, identity(value));
        }
    }

    private static Object unless(Object value, String type) {
        return value != null && value.getClass().getName().equals(type) ? null : value;
    }

    /** What a setter raises that may be called once; null if it was not yet. */
    private static Object refusal(Runnable setter) {
        try {
            setter.run();
            return null;
        } catch (Error defined) {
            return Error.class;
        }
    }

    /** The providers, in their order, and the properties that a file sets at the start. */
    private static void security(Map<String, String> found) throws IOException {
        Properties first = new Properties();
        Path set = Path.of(System.getProperty("java.home"), "conf/security/java.security");
        try (InputStream file = Files.newInputStream(set)) {
            first.load(file);
        }
        first.putIfAbsent("networkaddress.cache.ttl", "");
        List<String> names = new ArrayList<>();
        for (String name : first.stringPropertyNames()) {
            String value = Security.getProperty(name);
            if (!first.getProperty(name).trim().equals(value == null ? "" : value)) {
                found.put("Security.setProperty(" + name + ")", String.valueOf(value));
            }
        }
        for (int place = 1; first.containsKey("security.provider." + place); place++) {
            names.add(first.getProperty("security.provider." + place).trim());
        }
        List<String> providers = Arrays.stream(Security.getProviders()).map(Provider::getName).toList();
        if (!providers.equals(names)) {
            found.put("Security.insertProviderAt", providers.toString());
        }
    }

    /** The loggers that are not as without a configuration. */
    private static void loggers(Map<String, String> found) {
        LogManager manager = LogManager.getLogManager();
        for (String name : Collections.list(manager.getLoggerNames())) {
            Logger logger = manager.getLogger(name);
            if (logger == null) {
                continue;
            }
            Handler[] handlers = logger.getHandlers();
            boolean isRoot = name.isEmpty();
            boolean handles = isRoot ? handlers.length != 1 || !isFirst(handlers[0]) : handlers.length > 0;
            boolean isLeveled = logger.getLevel() != (isRoot ? Level.INFO : null);
            if (handles || isLeveled || !logger.getUseParentHandlers() || logger.getFilter() != null) {
                found.put("Logger.getLogger(" + name + ")", Arrays.toString(handlers) + logger.getLevel());
            }
        }
    }

    private static boolean isFirst(Handler handler) {
        return handler.getClass() == ConsoleHandler.class
            && handler.getFormatter().getClass() == SimpleFormatter.class
            && handler.getLevel() == Level.INFO
            && handler.getFilter() == null;
    }

    private static String identity(Object value) {
        return String.valueOf(System.identityHashCode(value));
    }
}
