package chiron;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeSet;

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
        return changed;
    }

    private static Map<String, String> now() {
        Map<String, String> found = new HashMap<>();
        found.put("TimeZone.setDefault", TimeZone.getDefault().getID()); // which may set a property
        found.put("Locale.setDefault", Locale.getDefault().toLanguageTag());
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

    private static String identity(Object value) {
        return String.valueOf(System.identityHashCode(value));
    }
}
