package org.apache.iceberg.hadoop;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.LockManagers;

/**
 * Java's folder catalog with the encryption of its Hive catalog, which alone has it and needs a metastore. The keys are
 * those of iceberg-core's tests.
 */
public class KeyedCatalog extends HadoopCatalog {
    @Override
    protected TableOperations newTableOps(TableIdentifier identifier) {
        return new Operations(new Path(defaultWarehouseLocation(identifier)), getConf());
    }

    /** Encrypts keys as MemoryMockKMS of iceberg-core's tests does. */
    public static class Keys implements KeyManagementClient {
        private static final Map<String, String> KEYS = Map.of("keyA", "0123456789012345", "keyB", "1123456789012345");

        @Override
        public void initialize(Map<String, String> properties) {}

        @Override
        public ByteBuffer wrapKey(ByteBuffer key, String id) {
            return ByteBuffer.wrap(new Ciphers.AesGcmEncryptor(key(id)).encrypt(key.array(), null));
        }

        @Override
        public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
            return ByteBuffer.wrap(new Ciphers.AesGcmDecryptor(key(id)).decrypt(wrapped.array(), null));
        }

        private static byte[] key(String id) {
            return KEYS.get(id).getBytes(StandardCharsets.UTF_8);
        }
    }

    private static final class Operations extends HadoopTableOperations {
        private TableMetadata known;
        private EncryptionManager manager;

        Operations(Path location, Configuration conf) {
            super(location, new HadoopFileIO(conf), conf, LockManagers.defaultLockManager());
        }

        @Override
        public synchronized TableMetadata refresh() {
            TableMetadata found = super.refresh();
            if (found != known) {
                known = found;
                manager = null;
            }
            return found;
        }

        @Override
        public synchronized EncryptionManager encryption() {
            if (known == null) {
                return PlaintextEncryptionManager.instance();
            }
            if (manager == null) {
                manager =
                    EncryptionUtil.createEncryptionManager(known.encryptionKeys(), known.properties(), new Keys());
            }
            return manager;
        }

        @Override
        public FileIO io() {
            EncryptionManager own = encryption();
            return own instanceof StandardEncryptionManager ? EncryptingFileIO.combine(super.io(), own) : super.io();
        }

        @Override
        public void commit(TableMetadata base, TableMetadata metadata) {
            TableMetadata.Builder with = TableMetadata.buildFrom(metadata);
            if (encryption() instanceof StandardEncryptionManager) {
                for (EncryptedKey key : EncryptionUtil.encryptionKeys(encryption()).values()) {
                    with.addEncryptionKey(key);
                }
            }
            super.commit(base, base == metadata ? metadata : with.build());
        }
    }
}
