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
import org.apache.iceberg.util.PropertyUtil;

/**
 * Java's folder catalog with the encryption of its Hive catalog, which alone has it and needs a metastore. The keys are
 * the catalog properties "keys.ID".
 */
public class KeyedCatalog extends HadoopCatalog {
    private Map<String, String> keys;

    @Override
    public void initialize(String name, Map<String, String> properties) {
        super.initialize(name, properties);
        keys = PropertyUtil.propertiesWithPrefix(properties, "keys.");
    }

    @Override
    protected TableOperations newTableOps(TableIdentifier identifier) {
        return new Operations(new Path(defaultWarehouseLocation(identifier)), getConf(), new Keys(keys));
    }

    /** Encrypts keys as MemoryMockKMS of iceberg-core's tests does. */
    private static final class Keys implements KeyManagementClient {
        private final Map<String, String> keys;

        Keys(Map<String, String> keys) {
            this.keys = keys;
        }

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

        private byte[] key(String id) {
            if (!keys.containsKey(id)) {
                throw new IllegalStateException("no key " + id);
            }
            return keys.get(id).getBytes(StandardCharsets.UTF_8);
        }
    }

    private static final class Operations extends HadoopTableOperations {
        private final Keys keys;
        private TableMetadata known;
        private EncryptionManager manager;

        Operations(Path location, Configuration conf, Keys keys) {
            super(location, new HadoopFileIO(conf), conf, LockManagers.defaultLockManager());
            this.keys = keys;
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
                manager = EncryptionUtil.createEncryptionManager(known.encryptionKeys(), known.properties(), keys);
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
