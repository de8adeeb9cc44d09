package chiron;

import com.openfaas.model.IHandler;
import java.io.IOException;
import java.io.InputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;
import java.util.Deque;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.jar.Manifest;

/** A function: the class of its handler, from a loader of its own, and handlers of which no run has any now. */
final class Function {
    private static final String HANDLER = "com.openfaas.function.Handler";

    final Loader loader;
    private final Class<?> type;
    private final Deque<IHandler> idle = new ConcurrentLinkedDeque<>();

    /** The function `name`, whose code is on the class path, its own classes first. */
    Function(String name, String[] classPath) throws Exception {
        URL[] urls = new URL[classPath.length];
        for (int place = 0; place < urls.length; place++) {
            urls[place] = Path.of(classPath[place]).toUri().toURL();
        }
        loader = new Loader(name, urls, Path.of(classPath[0]));
        Thread.currentThread().setContextClassLoader(loader);
        type = Class.forName(HANDLER, true, loader);
        idle.push(made());
    }

    /** A handler that no other run has: its fields are the run's alone, as the template runs one at a time. */
    IHandler take() throws Exception {
        IHandler handler = idle.poll();
        return handler == null ? made() : handler;
    }

    void giveBack(IHandler handler) {
        idle.push(handler);
    }

    private IHandler made() throws Exception {
        Object made = type.getDeclaredConstructor().newInstance();
        if (made instanceof IHandler handler) {
            return handler;
        }
        throw new ClassCastException(HANDLER + " neither extends AbstractHandler nor implements IHandler");
    }

    /** Loads the function's own classes and those of its jars, as they are but for their exits. */
    static final class Loader extends URLClassLoader {
        /** A setter that no getter tells from its default. */
        static final String FACTORY = "setDefaultSSLSocketFactory";
        /** The JDK's classes that the functions' classes name, and the setter if they name it. */
        static final Set<String> NAMED = ConcurrentHashMap.newKeySet();

        private final Path own;
        private final ProtectionDomain domain;

        Loader(String name, URL[] urls, Path own) {
            super(name, urls, Function.class.getClassLoader());
            this.own = own;
            domain = new ProtectionDomain(new CodeSource(urls[0], (Certificate[]) null), null, this, null);
        }

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            if (name.startsWith("java")) {
                NAMED.add(name);
            }
            return super.loadClass(name);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            String resource = name.replace('.', '/') + ".class";
            Path file = own.resolve(resource);
            if (!Files.isRegularFile(file)) {
                return inJar(name, resource);
            }
            try {
                byte[] code = Exits.redirected(Files.readAllBytes(file));
                if (new String(code, StandardCharsets.ISO_8859_1).contains(FACTORY)) {
                    NAMED.add(FACTORY);
                }
                return defineClass(name, code, 0, code.length, domain);
            } catch (IOException fault) {
                throw new ClassNotFoundException(name, fault);
            }
        }

        /** A class of a jar: as the jar has it, but for its exits. */
        private Class<?> inJar(String name, String resource) throws ClassNotFoundException {
            URL found = findResource(resource);
            try {
                if (found != null && found.openConnection() instanceof JarURLConnection jar) {
                    byte[] given = bytes(jar);
                    byte[] code = Exits.redirected(given);
                    if (code != given) {
                        String place = name.substring(0, Math.max(0, name.lastIndexOf('.')));
                        if (getDefinedPackage(place) == null) {
                            definePackage(place, jar.getManifest() == null ? new Manifest() : jar.getManifest(), null);
                        }
                        CodeSource source = new CodeSource(jar.getJarFileURL(), jar.getCertificates());
                        return defineClass(name, code, 0, code.length, new ProtectionDomain(source, null, this, null));
                    }
                }
            } catch (IOException fault) {
                throw new ClassNotFoundException(name, fault);
            }
            return super.findClass(name);
        }

        private static byte[] bytes(JarURLConnection jar) throws IOException {
            try (InputStream in = jar.getInputStream()) {
                return in.readAllBytes();
            }
        }
    }
}
