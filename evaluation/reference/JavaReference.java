import java.io.File;
import java.io.FileOutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/**
 * Calls a Java handler in the reference run: see chiron.evaluation.reference.handlers.
 *
 * The first argument is the folder of the templates' classes, of which it uses the model alone.
 */
class JavaReference {
    private static final String HANDLER = "com.openfaas.function.Handler";
    private static final String MODEL = "com.openfaas.model.";

    public static void main(String[] arguments) throws Exception {
        byte[] body = System.in.readAllBytes();
        Path folder = Path.of(arguments[1]);
        Path classes = Files.createTempDirectory("chiron-reference-");
        String told;
        try {
            ClassLoader loader = compiled(Path.of(arguments[0]), folder, classes);
            Thread.currentThread().setContextClassLoader(loader);
            told = answer(loader, body);
        } catch (InvocationTargetException error) {
            told = failure(error.getCause());
        } catch (Throwable error) {
            told = failure(error);
        } finally {
            try (Stream<Path> files = Files.walk(classes)) {
                files.map(Path::toFile).sorted(Collections.reverseOrder()).forEach(File::delete);
            }
        }
        try (FileOutputStream answers = new FileOutputStream("/proc/self/fd/" + arguments[3])) {
            answers.write(told.getBytes(StandardCharsets.UTF_8));
        }
        Runtime.getRuntime().halt(0);
    }

    private static ClassLoader compiled(Path model, Path folder, Path classes) throws Exception {
        List<String> jars = files(folder, ".jar").stream().filter(each -> each.startsWith(folder + "/lib")).toList();
        List<String> words = new ArrayList<>(List.of("-d", classes.toString(), "-nowarn", "-Xlint:none"));
        if (!jars.isEmpty()) {
            words.addAll(List.of("-cp", String.join(File.pathSeparator, jars)));
        }
        for (String source : files(model, ".java")) {
            if (Files.readString(Path.of(source)).startsWith("package com.openfaas.model;")) {
                words.add(source);
            }
        }
        words.addAll(files(folder.resolve("src/main/java"), ".java"));
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, words.toArray(new String[0])) != 0) {
            throw new IllegalStateException("its code cannot be compiled");
        }
        List<URL> urls = new ArrayList<>(List.of(classes.toUri().toURL()));
        urls.add(folder.resolve("src/main/resources").toUri().toURL());
        for (String jar : jars) {
            urls.add(Path.of(jar).toUri().toURL());
        }
        return new URLClassLoader("function", urls.toArray(new URL[0]), JavaReference.class.getClassLoader());
    }

    private static List<String> files(Path folder, String end) throws Exception {
        try (Stream<Path> found = Files.walk(folder)) {
            return found.map(Path::toString).filter(each -> each.endsWith(end)).sorted().toList();
        }
    }

    private static String answer(ClassLoader loader, byte[] body) throws Exception {
        Class<?> request = loader.loadClass(MODEL + "Request");
        Object given = request
            .getMethod("received", byte[].class, Map.class, String.class, String.class)
            .invoke(null, body, Map.of(), null, "/");
        Object handler = loader.loadClass(HANDLER).getDeclaredConstructor().newInstance();
        Object response = loader.loadClass(MODEL + "IHandler")
            .getMethod("Handle", loader.loadClass(MODEL + "IRequest"))
            .invoke(handler, given);
        Class<?> type = loader.loadClass(MODEL + "IResponse");
        Method content = type.getMethod("getBodyBytes");
        String encoded = Base64.getEncoder().encodeToString((byte[]) content.invoke(response));
        return "{\"status\": " + type.getMethod("getStatusCode").invoke(response) + ", \"body\": \"" + encoded + "\"}";
    }

    private static String failure(Throwable error) {
        List<StackTraceElement> frames = Stream.of(error.getStackTrace())
            .filter(each -> "function".equals(each.getClassLoaderName()))
            .collect(Collectors.toCollection(ArrayList::new));
        Collections.reverse(frames);
        String told = frames.stream()
            .map(each -> text(each.getFileName() + ":" + each.getLineNumber() + " in " + each.getMethodName()))
            .collect(Collectors.joining(", "));
        String message = error.getMessage() == null ? "" : error.getMessage();
        return "{\"error\": " + text(error.getClass().getName()) + ", \"message\": " + text(message)
            + ", \"frames\": [" + told + "]}";
    }

    private static String text(String value) {
        StringBuilder made = new StringBuilder("\"");
        for (char each : value.toCharArray()) {
            boolean plain = each >= ' ' && each < 127 && each != '"' && each != '\\';
            made.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        return made.append('"').toString();
    }
}
