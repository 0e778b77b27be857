//! Properties that hold for every schema.

use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;

use super::arrow::{FromArrow, ToArrow};
use super::{
    Checks, Field, ListType, MapType, NameMapping, PrimitiveType, Schema, StructType, Type, is_promotion_allowed,
};
use crate::evolution::UpdateSchema;
use crate::value::Value;

fn primitive() -> impl Strategy<Value = PrimitiveType> {
    use PrimitiveType as P;
    let plain = [
        P::Boolean,
        P::Int,
        P::Long,
        P::Float,
        P::Double,
        P::Date,
        P::Time,
        P::Timestamp,
        P::Timestamptz,
        P::TimestampNs,
        P::TimestamptzNs,
        P::String,
        P::Uuid,
        P::Binary,
        P::Unknown,
        P::Geometry { crs: None },
    ];
    let crs = || proptest::option::of("[A-Za-z]{1,4}:[0-9]{1,5}").prop_map(|crs| crs.map(Into::into));
    prop_oneof![
        8 => proptest::sample::select(plain.to_vec()),
        1 => (1..=38u8).prop_flat_map(|precision| (Just(precision), 0..=precision))
            .prop_map(|(precision, scale)| P::Decimal { precision, scale }),
        1 => (0..=i32::MAX.unsigned_abs()).prop_map(P::Fixed),
        1 => crs().prop_map(|crs| P::Geometry { crs }),
        1 => (crs(), proptest::sample::select(super::EdgeAlgorithm::ALL.to_vec()))
            .prop_map(|(crs, algorithm)| P::Geography { crs, algorithm: Some(algorithm) }),
    ]
}

/// Fields without ids, whose names are unique by position and have no dots.
fn fields(ty: impl Strategy<Value = Type> + Clone, range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Field>> {
    let field = (ty, any::<bool>(), "[a-zA-Zé /]{0,3}", proptest::option::of("\\PC{0,5}"));
    proptest::collection::vec(field, range).prop_map(|fields| {
        let numbered = fields.into_iter().enumerate();
        numbered
            .map(|(position, (ty, required, name, doc))| {
                let required = required && ty != Type::Primitive(PrimitiveType::Unknown);
                Field { required, doc, ..Field::optional(0, format!("{name}{position}"), ty) }
            })
            .collect()
    })
}

fn any_type() -> impl Strategy<Value = Type> + Clone {
    let leaf = prop_oneof![10 => primitive().prop_map(Type::Primitive), 1 => Just(Type::Variant)].boxed();
    leaf.prop_recursive(4, 24, 4, |inner| {
        let known = inner.clone().prop_filter("keys and required elements are of a known type", |ty| {
            *ty != Type::Primitive(PrimitiveType::Unknown)
        });
        prop_oneof![
            fields(inner.clone(), 1..4).prop_map(|fields| StructType { fields }.into()),
            inner.clone().prop_map(|ty| ListType::optional(0, ty).into()),
            known.clone().prop_map(|ty| ListType::required(0, ty).into()),
            (known, inner).prop_map(|(key, value)| MapType::optional(0, key, 0, value).into()),
        ]
    })
}

/// Schemas with the ids of a new table.
fn schema() -> impl Strategy<Value = Schema> {
    fields(any_type(), 0..6).prop_map(|fields| {
        let Ok(Type::Struct(root)) = Type::from(StructType { fields }).with_fresh_ids(&mut 0) else { unreachable!() };
        Schema::from_struct(0, root).unwrap()
    })
}

fn ids(schema: &Schema) -> BTreeSet<i32> {
    schema.ids().iter().copied().collect()
}

proptest! {
    #[test]
    fn text_of_types_is_read_again(ty in primitive()) {
        prop_assert_eq!(PrimitiveType::parse(&ty.to_string()).unwrap(), ty.clone());
        prop_assert_eq!(PrimitiveType::parse_lenient(&ty.to_string()).unwrap(), ty);
    }

    #[test]
    fn any_text_is_a_type_or_an_error(text in "\\PC{0,20}|(decimal|fixed|geometry|geography)[\\[(,0-9a-z )\\]]{0,12}") {
        if let Ok(ty) = Type::parse(&text) {
            prop_assert_eq!(Type::parse(&ty.to_string()).unwrap(), ty);
        }
        if let Ok(ty) = Type::parse_lenient(&text) {
            prop_assert_eq!(Type::parse_lenient(&ty.to_string()).unwrap(), ty);
        }
    }

    #[test]
    fn json_is_read_again(schema in schema(), default in any::<i64>()) {
        let mut fields = schema.fields().to_vec();
        for field in fields.iter_mut().filter(|field| field.ty == Type::Primitive(PrimitiveType::Long)) {
            field.initial_default = Some(Value::Long(default));
            field.write_default = Some(Value::Long(default.wrapping_neg()));
        }
        let schema = Schema::new(3, fields).unwrap();
        let text = schema.to_json().to_string();
        let json = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&Schema::from_json(&json).unwrap(), &schema);
        prop_assert_eq!(Schema::from_metadata_json(&json, &Default::default()).unwrap(), schema);
    }

    #[test]
    fn fields_are_found(schema in schema()) {
        for id in schema.ids() {
            let name = schema.column_name(*id).unwrap();
            prop_assert_eq!(schema.find_field(*id).unwrap().id, *id);
            prop_assert_eq!(schema.find_by_name(name, true).unwrap().unwrap().id, *id);
            let inside_collection = std::iter::successors(schema.parent(*id), |id| schema.parent(*id))
                .any(|id| !matches!(schema.find_type(id).unwrap(), Type::Struct(_)));
            prop_assert_eq!(schema.accessor(*id).is_none(), inside_collection);
        }
    }

    #[test]
    fn fresh_ids_are_unique_and_keep_the_structure(schema in schema(), from in 0..1000) {
        let mut last = from;
        let fresh = schema.with_fresh_ids(1, &mut last).unwrap();
        let count = i32::try_from(schema.ids().len()).unwrap();
        prop_assert_eq!(ids(&fresh), (from + 1..=from + count).collect());
        prop_assert_eq!(last, from + count);
        prop_assert!(fresh.with_ids_of(&schema, true).unwrap().same_schema(&schema));
        prop_assert!(fresh.with_ids_of_or_fresh(&schema, true).unwrap().same_schema(&schema));
        prop_assert!(fresh.with_fresh_ids_from(&schema, &mut 0).unwrap().same_schema(&schema));
    }

    #[test]
    fn projections(schema in schema(), chosen in proptest::collection::hash_set(1..40, 0..10)) {
        prop_assert!(schema.project(&schema.projected_ids()).unwrap().same_schema(&schema));
        prop_assert!(schema.select_ids(&schema.ids().iter().copied().collect()).unwrap().same_schema(&schema));
        prop_assert_eq!(schema.select_ids(&HashSet::new()).unwrap().fields().len(), 0);
        let selected = schema.select_ids(&chosen).unwrap();
        let there = ids(&schema);
        // As in the Java library, parts of a map's key cannot be selected on their own.
        let in_key = |id: i32| std::iter::successors(schema.parent(id), |id| schema.parent(*id))
            .any(|id| schema.find_field(id).unwrap().name == "key");
        let wanted: BTreeSet<_> = chosen.iter().copied().filter(|id| there.contains(id) && !in_key(*id)).collect();
        prop_assert!(ids(&selected).is_superset(&wanted) && ids(&selected).is_subset(&there));
        for field in selected.fields() {
            let original = schema.find_field(field.id).unwrap();
            prop_assert_eq!((&field.name, field.required, &field.doc), (&original.name, original.required, &original.doc));
        }
    }

    #[test]
    fn promotion_is_transitive(a in primitive(), b in primitive(), c in primitive(), version in 1..=3u8) {
        let allowed = |from: &PrimitiveType, to| is_promotion_allowed(&from.clone().into(), to, version);
        prop_assert!(allowed(&a, &a));
        prop_assert!(!(allowed(&a, &b) && allowed(&b, &c)) || allowed(&a, &c));
        prop_assert!(!(allowed(&a, &b) && allowed(&b, &a)) || a == b);
    }

    #[test]
    fn a_schema_fits_itself(schema in schema()) {
        for checks in [Checks::WRITE, Checks::WRITE_UNORDERED, Checks::TYPES, Checks::READ] {
            prop_assert_eq!(schema.compatibility_errors(&schema, checks), Vec::<String>::new());
        }
        prop_assert!(schema.check_compatibility(3).is_ok());
    }

    #[test]
    fn arrow_comes_back(schema in schema()) {
        let arrow = schema.to_arrow(&ToArrow::default()).unwrap();
        prop_assert_eq!(Schema::from_arrow(&arrow, &FromArrow::for_version(3)).unwrap(), schema);
    }

    #[test]
    fn name_mappings_lead_to_ids(schema in schema()) {
        let mapping = NameMapping::of_schema(&schema).unwrap();
        prop_assert_eq!(&NameMapping::from_json(&mapping.to_json()).unwrap(), &mapping);
        prop_assert_eq!(mapping.by_id().into_keys().collect::<BTreeSet<_>>(), ids(&schema));
        for id in schema.ids() {
            prop_assert_eq!(mapping.id(schema.column_name(*id).unwrap()), Some(*id));
        }
    }

    #[test]
    fn unions(schema in schema(), chosen in proptest::collection::hash_set(1..40, 0..10)) {
        let mut same = UpdateSchema::new(&schema, 1000, 3);
        prop_assert!(same.union_by_name(&schema).unwrap().apply().unwrap().same_schema(&schema));
        prop_assert_eq!(same.last_column_id(), 1000);
        // From a part to the whole schema, only new optional columns are added.
        let part = schema.select_ids(&chosen).unwrap();
        let mut update = UpdateSchema::new(&part, 1000, 3);
        let grown = update.union_by_name(&schema).unwrap().apply().unwrap();
        let names = |schema: &Schema| schema.names().keys().cloned().collect::<BTreeSet<_>>();
        prop_assert_eq!(names(&grown), names(&schema));
        for id in part.ids() {
            prop_assert_eq!(grown.column_name(*id), part.column_name(*id));
        }
        for field in grown.fields().iter().filter(|field| field.id > 1000) {
            prop_assert!(!field.required);
        }
    }

    #[test]
    fn moves_only_change_the_order(schema in schema(), moves in proptest::collection::vec((0..6usize, 0..6usize, 0..3), 0..6)) {
        let mut update = UpdateSchema::new(&schema, 1000, 3);
        let name = |at: usize| schema.fields().get(at).map(|field| field.name.clone());
        for (moved, other, kind) in moves {
            let (Some(moved), Some(other)) = (name(moved), name(other)) else { continue };
            let done = match kind {
                0 => update.move_first(&moved),
                1 => update.move_before(&moved, &other),
                _ => update.move_after(&moved, &other),
            };
            prop_assert_eq!(done.is_ok(), kind == 0 || moved != other);
        }
        let after = update.apply().unwrap();
        prop_assert_eq!(ids(&after), ids(&schema));
        for field in after.fields() {
            prop_assert_eq!(Some(field), schema.find_field(field.id));
        }
    }
}
