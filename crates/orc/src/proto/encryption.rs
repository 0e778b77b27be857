//! Keys, masks and variants of encrypted columns ("Column Encryption").

use super::message::{Blob, Opt, Packed, Rep, Subs, Text, U32, enumerations, messages};
use super::statistics::ColumnStatistics;
use super::stripe::Stream;

enumerations! {
    /// The cipher of a key.
    EncryptionAlgorithm {
        /// None that is known.
        0 UnknownEncryption "UNKNOWN_ENCRYPTION",
        /// AES/CTR with 128 bits.
        1 AesCtr128 "AES_CTR_128",
        /// AES/CTR with 256 bits.
        2 AesCtr256 "AES_CTR_256",
    }

    /// Who wraps the local keys.
    KeyProviderKind {
        /// Not said.
        0 UnknownProvider "UNKNOWN",
        /// Hadoop's or Ranger's key server.
        1 Hadoop "HADOOP",
        /// Amazon's.
        2 Aws "AWS",
        /// Google's.
        3 Gcp "GCP",
        /// Microsoft's.
        4 Azure "AZURE",
    }
}

messages! {
    /// How readers without keys see some columns.
    DataMask {
        /// `nullify`, `redact`, `sha256`, or one of the user's.
        1 name: Opt<Text>,
        /// Its parameters.
        2 mask_parameters: Rep<Text>,
        /// The roots it was applied to.
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
        /// Streams of stripe statistics, one a column.
        4 stripe_statistics: Subs<Stream>,
        /// Encrypted [`FileStatistics`].
        5 file_statistics: Opt<Blob>,
    }

    /// All encryption of a file.
    Encryption {
        /// Masks used.
        1 mask: Subs<DataMask>,
        /// Master keys used.
        2 key: Subs<EncryptionKey>,
        /// Variants, in the order of the stripes' local keys.
        3 variants: Subs<EncryptionVariant>,
        /// Who wraps the local keys.
        4 key_provider: Opt<KeyProviderKind>,
    }

    /// Statistics of a variant's columns over the file.
    FileStatistics {
        /// From the variant's root on.
        1 column: Subs<ColumnStatistics>,
    }

    /// Statistics of one column over all stripes.
    ColumnarStripeStatistics {
        /// By stripe.
        1 col_stats: Subs<ColumnStatistics>,
    }
}
