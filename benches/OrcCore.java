import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;

/**
 * orc-core as a peer of {@code orc.py}: it stays warm, takes a question a line and answers {@code seconds rows}.
 *
 * <p>{@code read FILE THREADS COLUMNS}, {@code filter FILE COLUMN LOW HIGH}, {@code write FILE OUT ROWS} (rows are
 * loaded at the first time only). Batches stay in its own form, {@link VectorizedRowBatch}. Run as a single source file
 * on the jars of PySpark.
 */
public final class OrcCore {
    private static final Configuration CONFIGURATION = new Configuration();

    public static void main(String[] arguments) throws Exception {
        Map<String, List<VectorizedRowBatch>> loaded = new HashMap<>();
        var questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", -1);
            long rows;
            long started = System.nanoTime();
            switch (words[0]) {
                case "read" -> rows = read(words[1], Integer.parseInt(words[2]), words[3]);
                case "filter" -> rows = filter(words[1], words[2], Long.parseLong(words[3]), Long.parseLong(words[4]));
                case "write" -> {
                    if (!loaded.containsKey(words[1])) {
                        loaded.put(words[1], load(words[1], Integer.parseInt(words[3])));
                    }
                    started = System.nanoTime();
                    rows = write(words[1], loaded.get(words[1]), words[2]);
                }
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println((System.nanoTime() - started) / 1e9 + " " + rows);
        }
    }

    private static Reader open(String file) throws Exception {
        return OrcFile.createReader(new Path("file://" + file), OrcFile.readerOptions(CONFIGURATION));
    }

    private static Reader.Options project(Reader reader, String columns) {
        Reader.Options options = reader.options();
        if (columns.isEmpty()) {
            return options;
        }
        boolean[] include = new boolean[reader.getSchema().getMaximumId() + 1];
        include[0] = true;
        for (String name : columns.split(",")) {
            TypeDescription child = reader.getSchema().findSubtype(name);
            for (int id = child.getId(); id <= child.getMaximumId(); id++) {
                include[id] = true;
            }
        }
        return options.include(include);
    }

    private static long drain(Reader reader, Reader.Options options) throws Exception {
        VectorizedRowBatch batch = reader.getSchema().createRowBatch();
        long rows = 0;
        try (RecordReader records = reader.rows(options)) {
            while (records.nextBatch(batch)) {
                rows += batch.size;
            }
        }
        return rows;
    }

    private static long read(String file, int threads, String columns) throws Exception {
        Reader reader = open(file);
        if (threads == 1) {
            return drain(reader, project(reader, columns));
        }
        long[] rows = new long[threads];
        List<Thread> workers = new ArrayList<>();
        long length = new File(file).length() / threads + 1;
        for (int worker = 0; worker < threads; worker++) {
            int number = worker;
            Reader.Options options = project(reader, columns).range(number * length, length);
            workers.add(new Thread(() -> {
                try {
                    rows[number] = drain(open(file), options);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            }));
        }
        workers.forEach(Thread::start);
        for (Thread worker : workers) {
            worker.join();
        }
        return java.util.Arrays.stream(rows).sum();
    }

    /** Rows of the row groups that may match: orc-core drops no single row. */
    private static long filter(String file, String column, long low, long high) throws Exception {
        Reader reader = open(file);
        var between = SearchArgumentFactory.newBuilder()
            .between(column, PredicateLeaf.Type.LONG, low, high).build();
        return drain(reader, reader.options().searchArgument(between, new String[] {column}));
    }

    private static List<VectorizedRowBatch> load(String file, int rows) throws Exception {
        Reader reader = open(file);
        List<VectorizedRowBatch> batches = new ArrayList<>();
        int read = 0;
        try (RecordReader records = reader.rows()) {
            while (read < rows) {
                VectorizedRowBatch batch = reader.getSchema().createRowBatch();
                if (!records.nextBatch(batch)) {
                    break;
                }
                read += batch.size;
                batches.add(batch);
            }
        }
        return batches;
    }

    private static long write(String file, List<VectorizedRowBatch> batches, String out) throws Exception {
        var options = OrcFile.writerOptions(CONFIGURATION)
            .setSchema(open(file).getSchema()).compress(CompressionKind.ZSTD).overwrite(true);
        try (Writer writer = OrcFile.createWriter(new Path("file://" + out), options)) {
            for (VectorizedRowBatch batch : batches) {
                writer.addRowBatch(batch);
            }
        }
        return batches.stream().mapToLong(batch -> batch.size).sum();
    }
}
