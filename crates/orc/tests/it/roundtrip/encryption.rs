//! Encrypted columns: readers with the keys read what was written, others the masked values, and the file reveals no
//! more.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;
use icefield_orc::proto::EncryptionAlgorithm;
use icefield_orc::{
    ArrowOptions, EncryptionOptions, Error, KeyName, KeyProvider, Kind, Limits, Mask, MemoryKeys, Reader,
    TypeDescription, WriterOptions,
};
use proptest::prelude::*;

use super::arbitrary::{self, Draw, assert_same};
use super::{read, write};

/// Two master keys; the first also has an older version.
fn keys(only: Option<&str>) -> Arc<MemoryKeys> {
    let mut keys = MemoryKeys::default();
    for (name, version, algorithm, material) in [
        ("alpha", 1, EncryptionAlgorithm::AesCtr128, vec![9; 16]),
        ("alpha", 3, EncryptionAlgorithm::AesCtr128, vec![1; 16]),
        ("beta", 0, EncryptionAlgorithm::AesCtr256, vec![2; 32]),
    ] {
        if only.is_none_or(|only| only == name) {
            keys.add(KeyName { name: name.to_owned(), version, algorithm }, &material).unwrap();
        }
    }
    Arc::new(keys)
}

/// Whether a mask can be applied to a type: keys of maps cannot become null.
fn maskable(mask: &Mask, node: &TypeDescription) -> bool {
    *mask == Mask::Nullify || !node.walk().iter().any(|node| node.kind == Kind::Map)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_show_the_values_and_masks_hide_them(seed in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut draw = Draw::new(&seed);
        let types = arbitrary::schema(&mut draw);
        let arrow = arbitrary::arrow(&mut draw);
        let (schema, batches) = arbitrary::batches(&mut draw, &types, &arrow);
        let plain = arbitrary::options(&mut draw, &types);
        let known = [Mask::Nullify, Mask::Sha256, Mask::named("redact", &[]).unwrap()];
        let (mut columns, mut masks) = (Vec::new(), Vec::new());
        let mut hidden = Vec::new();
        for (name, child) in types.names.iter().zip(&types.children) {
            let mask = draw.pick(&known);
            let mask = if maskable(&mask, child) { mask } else { Mask::Nullify };
            let key = draw.pick(&["alpha", "beta", ""]);
            if !key.is_empty() {
                columns.push((key.to_owned(), vec![name.clone()]));
                masks.push((mask.clone(), vec![name.clone()]));
            }
            hidden.push((!key.is_empty()).then_some((key, mask)));
        }
        let encryption = EncryptionOptions { keys: keys(None), columns, masks };
        let options = WriterOptions { encryption: Some(encryption), ..plain.clone() };
        let (bytes, _) = write(&schema, &batches, 1000, options).unwrap();
        let open = |keys: Option<Arc<MemoryKeys>>| {
            let keys = keys.map(|keys| keys as Arc<dyn KeyProvider>);
            Reader::open_with(bytes.clone(), Limits::default(), keys).unwrap()
        };
        assert_same(&schema, &batches, &read(&open(Some(keys(None))), &arrow, 500).unwrap());

        // Without a key, a file looks like one with the masked values.
        for only in [None, Some("alpha"), Some("beta")] {
            let seen = |hidden: &Option<(&str, Mask)>| hidden.as_ref().filter(|(key, _)| Some(*key) != only).is_some();
            let masked: Vec<RecordBatch> = batches.iter().map(|batch| {
                let columns = batch.columns().iter().zip(&hidden).zip(&types.children).map(|((array, hidden), node)| {
                    match hidden {
                        Some((_, Mask::Nullify)) if seen(hidden) && node.kind == Kind::Union => null_unions(array.len(), array.data_type()),
                        Some((_, mask)) if seen(hidden) => mask.apply(node, array).unwrap(),
                        _ => Arc::clone(array),
                    }
                });
                let columns: Vec<_> = columns.collect();
                let fields = schema.fields().iter().zip(&columns).map(|(field, column)| {
                    field.as_ref().clone().with_data_type(column.data_type().clone())
                });
                let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                RecordBatch::try_new(schema, columns).unwrap()
            }).collect();
            let masked_schema = masked.first().map_or_else(|| Arc::clone(&schema), RecordBatch::schema);
            let (same, _) = write(&masked_schema, &masked, 1000, plain.clone()).unwrap();
            let wanted = read(&Reader::open(same).unwrap(), &arrow, 500).unwrap();
            let got = read(&open(only.map(|only| keys(Some(only)))), &arrow, 500).unwrap();
            assert_same(&schema, &wanted, &got);
        }
    }
}

/// Null unions.
fn null_unions(count: usize, data_type: &arrow_schema::DataType) -> arrow_array::ArrayRef {
    let arrow_schema::DataType::Union(fields, _) = data_type else { panic!("no union") };
    let (id, _) = fields.iter().last().unwrap();
    let mut children: Vec<_> =
        fields.iter().map(|(_, field)| arrow_array::new_empty_array(field.data_type())).collect();
    *children.last_mut().unwrap() = Arc::new(arrow_array::NullArray::new(count));
    let offsets = (0..count as i32).collect::<Vec<_>>();
    Arc::new(
        arrow_array::UnionArray::try_new(fields.clone(), vec![id; count].into(), Some(offsets.into()), children)
            .unwrap(),
    )
}

fn one_column(values: Vec<Option<&str>>) -> RecordBatch {
    let array = Arc::new(arrow_array::StringArray::from(values)) as arrow_array::ArrayRef;
    RecordBatch::try_from_iter([("secret", array)]).unwrap()
}

fn under(key: &str, path: &str, masks: Vec<(Mask, Vec<String>)>) -> WriterOptions {
    let encryption =
        EncryptionOptions { keys: keys(None), columns: vec![(key.to_owned(), vec![path.to_owned()])], masks };
    WriterOptions {
        encryption: Some(encryption),
        bloom_filter_columns: vec![path.to_owned()],
        ..WriterOptions::default()
    }
}

/// No true values, nor their statistics or Bloom filters, are in the file unencrypted.
#[test]
fn nothing_leaks() {
    use icefield_orc::proto::StreamKind;
    let batch = one_column(vec![Some("Ada Lovelace"), None, Some("Grace Hopper")]);
    let options =
        WriterOptions { compression: icefield_orc::proto::CompressionKind::None, ..under("alpha", "secret", vec![]) };
    let (bytes, _) = write(&batch.schema(), &[batch], 10, options).unwrap();
    for word in ["Ada Lovelace", "Grace Hopper", "Lovelace"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
    let reader = Reader::open(bytes).unwrap();
    let masked = &reader.metadata().file_statistics().unwrap()[1];
    assert_eq!((masked.number_of_values, masked.has_null), (Some(0), Some(true)));
    let streams = reader.directory(0).unwrap().streams;
    let filters = streams.iter().filter(|stream| stream.kind == StreamKind::BloomFilterUtf8);
    assert_eq!(filters.map(|stream| stream.variant).collect::<Vec<_>>(), [None, Some(0)]);
    let (root, key) = (&reader.metadata().schema, "encrypt");
    assert_eq!(root.children[0].attribute(key), Some("alpha"));
}

/// The newest version of a master key is used, and every file has its own local keys.
#[test]
fn local_keys_are_fresh() {
    let write_once = || {
        write(&one_column(vec![]).schema(), &[one_column(vec![Some("x")])], 10, under("alpha", "secret", vec![]))
            .unwrap()
            .0
    };
    let keys_of = |bytes: &bytes::Bytes| {
        let reader = Reader::open(bytes.clone()).unwrap();
        let footer = &reader.metadata().footer;
        let encryption = footer.encryption.clone().unwrap();
        assert_eq!(encryption.key[0].key_version, Some(3));
        assert_eq!(encryption.variants[0].encrypted_key.as_ref(), footer.stripes[0].encrypted_local_keys.first());
        encryption.variants[0].encrypted_key.clone().unwrap()
    };
    let (one, other) = (write_once(), write_once());
    assert_ne!(keys_of(&one), keys_of(&other));
    assert_eq!(keys_of(&one).len(), 16);
}

#[test]
fn what_cannot_be_encrypted_is_refused() {
    let batch = one_column(vec![Some("x")]);
    let twice = |columns: &[(&str, &str)], masks: Vec<(Mask, Vec<String>)>| {
        let columns = columns.iter().map(|(key, path)| ((*key).to_owned(), vec![(*path).to_owned()])).collect();
        let encryption = EncryptionOptions { keys: keys(None), columns, masks };
        write(
            &batch.schema(),
            std::slice::from_ref(&batch),
            10,
            WriterOptions { encryption: Some(encryption), ..Default::default() },
        )
    };
    let wrong_mask = vec![(Mask::Sha256, vec!["other".to_owned()])];
    for (result, message) in [
        (twice(&[("gamma", "secret")], vec![]), "unknown master key gamma"),
        (twice(&[("alpha", "other")], vec![]), "column other to encrypt does not exist"),
        (twice(&[("alpha", "")], vec![]), "column  to encrypt does not exist"),
        (twice(&[("alpha", "secret"), ("beta", "secret")], vec![]), "column secret is encrypted twice"),
        (twice(&[("alpha", "secret")], wrong_mask), "column other to encrypt does not exist"),
        (twice(&[], vec![(Mask::Sha256, vec!["secret".to_owned()])]), "column secret has a mask but is not encrypted"),
    ] {
        assert!(matches!(result, Err(Error::Invalid(text)) if text == message));
    }
}

/// Bytes that are decrypted with a wrong key look corrupt.
#[test]
fn errors_name_the_key_that_may_be_wrong() {
    let batch = one_column(vec![Some("a"), Some("b"), None]);
    let (bytes, _) =
        write(&batch.schema(), std::slice::from_ref(&batch), 1000, under("beta", "secret", vec![])).unwrap();
    let mut wrong = MemoryKeys::default();
    let name = KeyName { name: "beta".to_owned(), version: 0, algorithm: EncryptionAlgorithm::AesCtr256 };
    wrong.add(name, &[7; 32]).unwrap();
    let reader = Reader::open_with(bytes, Limits::default(), Some(Arc::new(wrong) as Arc<dyn KeyProvider>)).unwrap();
    let errors = [
        read(&reader, &ArrowOptions::default(), 500).unwrap_err(),
        reader.metadata().stripe_statistics().unwrap_err(),
        reader.metadata().file_statistics().unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().ends_with("; the file is encrypted, its key may be wrong"), "{error}");
    }
}
