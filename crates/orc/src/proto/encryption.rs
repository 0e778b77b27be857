//! Keys, masks and variants of encrypted columns ("Column Encryption").

use super::message::{Blob, Opt, Packed, Rep, Subs, Text, U32, enumerations, messages};
use super::statistics::ColumnStatistics;
use super::stripe::Stream;

enumerations! {
    /// The cipher of a key.
    EncryptionAlgorithm {
        /// Not known.
        0 UnknownEncryption "UNKNOWN_ENCRYPTION",
        /// AES/CTR with 128 bits.
        1 AesCtr128 "AES_CTR_128",
        /// AES/CTR with 256 bits.
        2 AesCtr256 "AES_CTR_256",
    }

    /// The kind of key store that wraps the local keys.
    KeyProviderKind {
        /// Not specified.
        0 UnknownProvider "UNKNOWN",
        /// The key server of Hadoop or Ranger.
        1 Hadoop "HADOOP",
        /// The key service of AWS.
        2 Aws "AWS",
        /// The key service of Google Cloud.
        3 Gcp "GCP",
        /// The key service of Azure.
        4 Azure "AZURE",
    }
}

messages! {
    /// How some columns are masked for readers without keys.
    DataMask {
        /// `nullify`, `redact`, `sha256`, or the name of a custom mask.
        1 name: Opt<Text>,
        /// Its parameters.
        2 mask_parameters: Rep<Text>,
        /// The root columns that it was applied to.
        3 columns: Packed<U32>,
    }

    /// A master key, by name.
    EncryptionKey {
        /// Its name.
        1 key_name: Opt<Text>,
        /// Its version.
        2 key_version: Opt<U32>,
        /// Its cipher.
        3 algorithm: Opt<EncryptionAlgorithm>,
    }

    /// A subtree of columns under one local key.
    EncryptionVariant {
        /// The column at its root.
        1 root: Opt<U32>,
        /// Index into [`Encryption::key`].
        2 key: Opt<U32>,
        /// The wrapped local key of the file's tail.
        3 encrypted_key: Opt<Blob>,
        /// Streams of stripe statistics, one per column.
        4 stripe_statistics: Subs<Stream>,
        /// Encrypted [`FileStatistics`].
        5 file_statistics: Opt<Blob>,
    }

    /// All encryption of a file.
    Encryption {
        /// The masks in use.
        1 mask: Subs<DataMask>,
        /// The master keys in use.
        2 key: Subs<EncryptionKey>,
        /// Variants, in the order of the stripes' local keys.
        3 variants: Subs<EncryptionVariant>,
        /// The kind of key store that wraps the local keys.
        4 key_provider: Opt<KeyProviderKind>,
    }

    /// Statistics of a variant's columns for the whole file.
    FileStatistics {
        /// By column, starting with the root of the variant.
        1 column: Subs<ColumnStatistics>,
    }

    /// Statistics of one column in all stripes.
    ColumnarStripeStatistics {
        /// By stripe.
        1 col_stats: Subs<ColumnStatistics>,
    }
}
