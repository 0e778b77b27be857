//! The footer of a stripe ("Stripes").

use super::message::{Opt, Subs, Text, U32, U64, enumerations, messages};

enumerations! {
    /// What a stream holds.
    StreamKind {
        /// A bit per value: whether it is not null.
        0 Present "PRESENT",
        /// The values.
        1 Data "DATA",
        /// Lengths of values or of dictionary entries.
        2 Length "LENGTH",
        /// The bytes of the dictionary.
        3 DictionaryData "DICTIONARY_DATA",
        /// Unused since Hive 0.11.
        4 DictionaryCount "DICTIONARY_COUNT",
        /// Nanoseconds, or the scales of decimals.
        5 Secondary "SECONDARY",
        /// Positions and statistics of row groups.
        6 RowIndex "ROW_INDEX",
        /// Bloom filters as written before ORC-101.
        7 BloomFilter "BLOOM_FILTER",
        /// Bloom filters over UTF-8.
        8 BloomFilterUtf8 "BLOOM_FILTER_UTF8",
        /// The area of the encrypted index streams.
        9 EncryptedIndex "ENCRYPTED_INDEX",
        /// The area of the encrypted data streams.
        10 EncryptedData "ENCRYPTED_DATA",
        /// Encrypted statistics of stripes, in the tail.
        100 StripeStatistics "STRIPE_STATISTICS",
        /// Encrypted statistics of the file; not a stream, only used in the initialization vector.
        101 FileStatistics "FILE_STATISTICS",
    }

    /// How a column is encoded in a stripe.
    EncodingKind {
        /// Direct, run-length encoding version 1.
        0 Direct "DIRECT",
        /// Dictionary, run-length encoding version 1.
        1 Dictionary "DICTIONARY",
        /// Direct, run-length encoding version 2.
        2 DirectV2 "DIRECT_V2",
        /// Dictionary, run-length encoding version 2.
        3 DictionaryV2 "DICTIONARY_V2",
    }
}

impl StreamKind {
    /// Whether the stream contains data of values, not indexes or statistics.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Present | Self::Data | Self::Length | Self::DictionaryData | Self::Secondary)
    }
}

messages! {
    /// One stream. Its offset is the sum of the lengths of those before it.
    Stream {
        /// What it holds.
        1 kind: Opt<StreamKind>,
        /// The id of its column.
        2 column: Opt<U32>,
        /// Its length in bytes.
        3 length: Opt<U64>,
    }

    /// How one column is encoded.
    ColumnEncoding {
        /// The encoding.
        1 kind: Opt<EncodingKind>,
        /// Number of entries of the dictionary.
        2 dictionary_size: Opt<U32>,
        /// 1: timestamps in bloom filters are UTC.
        3 bloom_encoding: Opt<U32>,
    }

    /// The streams of one encrypted variant.
    StripeEncryptionVariant {
        /// In the order of the encrypted areas.
        1 streams: Subs<Stream>,
        /// By column of the variant, its root first.
        2 encoding: Subs<ColumnEncoding>,
    }

    /// The directory of a stripe.
    StripeFooter {
        /// In the order of the file.
        1 streams: Subs<Stream>,
        /// By column id.
        2 columns: Subs<ColumnEncoding>,
        /// The time zone of local timestamps.
        3 writer_timezone: Opt<Text>,
        /// By variant.
        4 encryption: Subs<StripeEncryptionVariant>,
    }
}
