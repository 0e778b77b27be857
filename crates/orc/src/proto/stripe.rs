//! The footer of a stripe ("Stripes").

use super::message::{Opt, Subs, Text, U32, U64, enumerations, messages};

enumerations! {
    /// What a stream holds.
    StreamKind {
        /// Whether each value is there.
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
        /// Room of the encrypted index streams.
        9 EncryptedIndex "ENCRYPTED_INDEX",
        /// Room of the encrypted data streams.
        10 EncryptedData "ENCRYPTED_DATA",
        /// Encrypted statistics of stripes, in the tail.
        100 StripeStatistics "STRIPE_STATISTICS",
        /// Encrypted statistics of the file; never a stream, only part of an IV.
        101 FileStatistics "FILE_STATISTICS",
    }

    /// How a column is encoded in a stripe.
    EncodingKind {
        /// Plain, run lengths version 1.
        0 Direct "DIRECT",
        /// Dictionary, run lengths version 1.
        1 Dictionary "DICTIONARY",
        /// Plain, run lengths version 2.
        2 DirectV2 "DIRECT_V2",
        /// Dictionary, run lengths version 2.
        3 DictionaryV2 "DICTIONARY_V2",
    }
}

impl StreamKind {
    /// Whether values are read from it.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Present | Self::Data | Self::Length | Self::DictionaryData | Self::Secondary)
    }
}

messages! {
    /// One stream; its offset follows from the order.
    Stream {
        /// What it holds.
        1 kind: Opt<StreamKind>,
        /// Whose it is.
        2 column: Opt<U32>,
        /// Its bytes in the file.
        3 length: Opt<U64>,
    }

    /// How one column is encoded.
    ColumnEncoding {
        /// The encoding.
        1 kind: Opt<EncodingKind>,
        /// Entries of the dictionary.
        2 dictionary_size: Opt<U32>,
        /// 1: timestamps in bloom filters are UTC.
        3 bloom_encoding: Opt<U32>,
    }

    /// The streams of one encrypted variant.
    StripeEncryptionVariant {
        /// In the order of the encrypted areas.
        1 streams: Subs<Stream>,
        /// Of the variant's columns, its root first.
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
