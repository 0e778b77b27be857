import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.CompressionKind;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.InMemoryKeystore;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;

/**
 * orc-core as a peer of {@code test_orc.py}: it takes a request a line, words apart by tabs, and answers a line.
 *
 * <p>{@code rows FILE OUT [NAME=HEX ...]} writes every row as JSON and answers how many there are;
 * {@code kept FILE OUT COLUMN TYPE VALUE} writes those of row groups in which the column may have the value;
 * {@code evolved FILE OUT SCHEMA POSITIONAL CASE_AWARE} writes them as they are read with another schema;
 * {@code rewrite FILE OUT CODEC} writes the rows with its own defaults and answers the bytes of the new file.
 */
public final class OrcPeer {
    private static final Configuration CONFIGURATION = new Configuration();

    public static void main(String[] arguments) throws Exception {
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split("\t", -1);
            try {
                System.out.println("ok " + switch (words[0]) {
                    case "rows" -> rows(open(words, 3), words[2], null, null);
                    case "kept" -> rows(open(words, words.length), words[2], words[3], equal(words));
                    case "evolved" -> evolved(open(words, words.length), words);
                    case "rewrite" -> rewrite(words[1], words[2], CompressionKind.valueOf(words[3]));
                    default -> throw new IllegalArgumentException(line);
                });
            } catch (Exception | LinkageError error) {
                System.out.println("error " + String.valueOf(error).replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    private static Path path(String file) {
        return new Path("file://" + file);
    }

    private static Reader open(String[] words, int keysFrom) throws Exception {
        var options = OrcFile.readerOptions(CONFIGURATION).useUTCTimestamp(true).convertToProlepticGregorian(true);
        if (words.length > keysFrom) {
            var keys = new InMemoryKeystore();
            for (String key : Arrays.asList(words).subList(keysFrom, words.length)) {
                byte[] material = HexFormat.of().parseHex(key.substring(key.indexOf('=') + 1));
                var algorithm = material.length > 16 ? EncryptionAlgorithm.AES_CTR_256 : EncryptionAlgorithm.AES_CTR_128;
                keys.addKey(key.substring(0, key.indexOf('=')), algorithm, material);
            }
            options.setKeyProvider(keys);
        }
        return OrcFile.createReader(path(words[1]), options);
    }

    private static SearchArgument equal(String[] words) {
        Object value = switch (words[4]) {
            case "LONG" -> Long.valueOf(words[5]);
            case "FLOAT" -> Double.valueOf(words[5]);
            case "STRING" -> words[5];
            case "DATE" -> java.sql.Date.valueOf(words[5]);
            case "DECIMAL" -> new HiveDecimalWritable(words[5]);
            default -> throw new IllegalArgumentException(words[4]);
        };
        return SearchArgumentFactory.newBuilder().equals(words[3], PredicateLeaf.Type.valueOf(words[4]), value).build();
    }

    private static long evolved(Reader reader, String[] words) throws Exception {
        TypeDescription schema = TypeDescription.fromString(words[3]);
        Reader.Options options = reader.options().schema(schema)
            .forcePositionalEvolution(Boolean.parseBoolean(words[4]))
            .isSchemaEvolutionCaseAware(Boolean.parseBoolean(words[5]));
        return rows(reader, options, schema, words[2]);
    }

    private static long rows(Reader reader, String file, String column, SearchArgument wanted) throws Exception {
        Reader.Options options = reader.options();
        if (wanted != null) {
            options.searchArgument(wanted, new String[] {column});
        }
        long count = rows(reader, options, reader.getSchema(), file);
        if (wanted == null && count != reader.getNumberOfRows()) {
            throw new IllegalStateException(count + " rows of " + reader.getNumberOfRows());
        }
        return count;
    }

    private static long rows(Reader reader, Reader.Options options, TypeDescription schema, String file)
        throws Exception {
        long count = 0;
        try (RecordReader records = reader.rows(options);
            BufferedWriter out = Files.newBufferedWriter(java.nio.file.Path.of(file), StandardCharsets.UTF_8)) {
            VectorizedRowBatch batch = schema.createRowBatch();
            List<TypeDescription> types = schema.getChildren();
            var text = new StringBuilder();
            while (records.nextBatch(batch)) {
                for (int row = 0; row < batch.size; row++) {
                    text.setLength(0);
                    text.append('[');
                    for (int at = 0; at < types.size(); at++) {
                        text.append(at == 0 ? "" : ",");
                        value(text, types.get(at), batch.cols[at], row);
                    }
                    out.append(text.append("]\n"));
                    count++;
                }
            }
        }
        return count;
    }

    /** Floats as their bits, times as seconds and nanoseconds, decimals as text, maps as pairs, unions as tag and value. */
    private static void value(StringBuilder out, TypeDescription type, ColumnVector vector, int slot) {
        int row = vector.isRepeating ? 0 : slot;
        if (!vector.noNulls && vector.isNull[row]) {
            out.append("null");
            return;
        }
        List<TypeDescription> children = type.getChildren();
        switch (type.getCategory()) {
            case BOOLEAN -> out.append(((LongColumnVector) vector).vector[row] != 0);
            case BYTE, SHORT, INT, LONG, DATE -> out.append(((LongColumnVector) vector).vector[row]);
            case FLOAT -> out.append(Float.floatToRawIntBits((float) ((DoubleColumnVector) vector).vector[row]));
            case DOUBLE -> out.append(Double.doubleToRawLongBits(((DoubleColumnVector) vector).vector[row]));
            case STRING, CHAR, VARCHAR -> {
                var texts = (BytesColumnVector) vector;
                string(out, new String(texts.vector[row], texts.start[row], texts.length[row], StandardCharsets.UTF_8));
            }
            case BINARY, Geometry, Geography -> {
                var bytes = (BytesColumnVector) vector;
                int start = bytes.start[row];
                string(out, HexFormat.of().formatHex(bytes.vector[row], start, start + bytes.length[row]));
            }
            case DECIMAL -> {
                var decimal = ((DecimalColumnVector) vector).vector[row].getHiveDecimal();
                BigInteger unscaled = decimal.bigDecimalValue().setScale(type.getScale()).unscaledValue();
                string(out, unscaled.toString());
            }
            case TIMESTAMP, TIMESTAMP_INSTANT -> {
                var times = (TimestampColumnVector) vector;
                out.append('[').append(Math.floorDiv(times.time[row], 1000L)).append(',').append(times.nanos[row])
                    .append(']');
            }
            case LIST -> {
                var lists = (ListColumnVector) vector;
                out.append('[');
                for (int at = 0; at < lists.lengths[row]; at++) {
                    out.append(at == 0 ? "" : ",");
                    value(out, children.get(0), lists.child, (int) lists.offsets[row] + at);
                }
                out.append(']');
            }
            case MAP -> {
                var maps = (MapColumnVector) vector;
                out.append('[');
                for (int at = 0; at < maps.lengths[row]; at++) {
                    out.append(at == 0 ? "[" : ",[");
                    value(out, children.get(0), maps.keys, (int) maps.offsets[row] + at);
                    value(out.append(','), children.get(1), maps.values, (int) maps.offsets[row] + at);
                    out.append(']');
                }
                out.append(']');
            }
            case STRUCT -> {
                var fields = ((StructColumnVector) vector).fields;
                out.append('[');
                for (int at = 0; at < fields.length; at++) {
                    value(out.append(at == 0 ? "" : ","), children.get(at), fields[at], row);
                }
                out.append(']');
            }
            case UNION -> {
                var union = (UnionColumnVector) vector;
                int tag = union.tags[row];
                value(out.append('[').append(tag).append(','), children.get(tag), union.fields[tag], row);
                out.append(']');
            }
            default -> throw new IllegalArgumentException(type.toString());
        }
    }

    private static void string(StringBuilder out, String text) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char character = text.charAt(at);
            if (character < ' ' || character == '"' || character == '\\' || character > '~') {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        out.append('"');
    }

    private static long rewrite(String file, String out, CompressionKind codec) throws Exception {
        Reader reader = open(new String[] {"", file}, 2);
        var options = OrcFile.writerOptions(CONFIGURATION).setSchema(reader.getSchema()).compress(codec).overwrite(true)
            .useUTCTimestamp(true).setProlepticGregorian(true);
        try (RecordReader records = reader.rows(); Writer writer = OrcFile.createWriter(path(out), options)) {
            VectorizedRowBatch batch = reader.getSchema().createRowBatch();
            while (records.nextBatch(batch)) {
                writer.addRowBatch(batch);
            }
        }
        return Files.size(java.nio.file.Path.of(out));
    }
}
