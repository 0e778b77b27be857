import java.io.IOException;
import java.io.PrintStream;
import java.net.ServerSocket;
import java.net.Socket;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/**
 * A Hive metastore whose database, an embedded Derby, and warehouse are in the folder that is the argument. It runs on
 * PySpark's jars behind its own, writes its port, and ends with its input.
 */
public final class HiveServer {
    public static void main(String[] arguments) throws Exception {
        // Nobody reads what is logged there.
        PrintStream answers = System.out;
        System.setOut(System.err);
        String folder = arguments[0];
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        System.setProperty("derby.stream.error.file", folder + "/derby.log");
        Configuration conf = MetastoreConf.newMetastoreConf();
        String database = "jdbc:derby:;databaseName=" + folder + "/database;create=true";
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.CONNECT_URL_KEY, database);
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.CONNECTION_DRIVER, "org.apache.derby.jdbc.EmbeddedDriver");
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.WAREHOUSE, folder + "/warehouse");
        MetastoreConf.setBoolVar(conf, MetastoreConf.ConfVars.AUTO_CREATE_ALL, true);
        MetastoreConf.setBoolVar(conf, MetastoreConf.ConfVars.SCHEMA_VERIFICATION, false);
        // Others are in jars of Hive itself.
        String task = "org.apache.hadoop.hive.metastore.events.EventCleanerTask";
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.TASK_THREADS_ALWAYS, task);
        // The tables of locks.
        TxnDbUtil.setConfValues(conf);
        TxnDbUtil.prepDb(conf);
        Thread serving = new Thread(() -> {
            try {
                HiveMetaStore.startMetaStore(port, HadoopThriftAuthBridge.getBridge(), conf);
            } catch (Throwable failure) {
                failure.printStackTrace();
                System.exit(1);
            }
        });
        serving.setDaemon(true);
        serving.start();
        while (true) {
            try (Socket reached = new Socket("127.0.0.1", port)) {
                break;
            } catch (IOException notYet) {
                Thread.sleep(50);
            }
        }
        answers.println("port " + port);
        answers.flush();
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }
}
