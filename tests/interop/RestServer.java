import jakarta.servlet.Servlet;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.sparkproject.jetty.server.Handler;
import org.sparkproject.jetty.server.Server;
import org.sparkproject.jetty.server.ServerConnector;

/**
 * Java's own REST catalog, the servlet of iceberg-core's tests, over a catalog in memory whose files are in the folder
 * that is the argument. It runs on PySpark's jars, whose Jetty is renamed, writes its port, and ends with its input.
 */
public final class RestServer {
    public static void main(String[] arguments) throws Exception {
        // Nobody reads what is logged there.
        PrintStream answers = System.out;
        System.setOut(System.err);
        InMemoryCatalog catalog = new InMemoryCatalog();
        catalog.initialize("rest", Map.of(CatalogProperties.WAREHOUSE_LOCATION, arguments[0]));
        // Other programs must see the files.
        Field io = InMemoryCatalog.class.getDeclaredField("io");
        io.setAccessible(true);
        io.set(catalog, new HadoopFileIO(new Configuration()));

        Server server = new Server(0);
        server.setHandler(handler(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))));
        server.start();
        answers.println("port " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
        answers.flush();
        while (System.in.read() >= 0) {
            continue;
        }
        server.stop();
        System.exit(0);
    }

    /** Jetty's servlets have another package since version 12. */
    private static Handler handler(Servlet servlet) throws Exception {
        Class<?> contexts;
        try {
            contexts = Class.forName("org.sparkproject.jetty.ee10.servlet.ServletContextHandler");
        } catch (ClassNotFoundException older) {
            contexts = Class.forName("org.sparkproject.jetty.servlet.ServletContextHandler");
        }
        Class<?> holders = Class.forName(contexts.getPackageName() + ".ServletHolder");
        Object context = contexts.getConstructor().newInstance();
        Object holder = holders.getConstructor(Servlet.class).newInstance(servlet);
        contexts.getMethod("addServlet", holders, String.class).invoke(context, holder, "/*");
        return (Handler) context;
    }
}
