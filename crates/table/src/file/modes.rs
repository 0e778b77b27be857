//! Metrics modes: which metrics of each column go into manifests (`write.metadata.metrics.*`).

use std::collections::HashMap;

use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{
    DEFAULT_WRITE_METRICS_MODE, METRICS_MAX_INFERRED_COLUMN_DEFAULTS, METRICS_MODE_COLUMN_CONF_PREFIX, MetricsMode,
};
use icefield_format::spec::SortOrder;
use icefield_format::types::{Field, Schema, Type};

use crate::error::Result;

const DEFAULT: MetricsMode = DEFAULT_WRITE_METRICS_MODE.default;
const INFERRED_COLUMNS: usize = METRICS_MAX_INFERRED_COLUMN_DEFAULTS.default as usize;

/// The mode of each column of a schema.
#[derive(Debug, Clone)]
pub struct Modes {
    by_id: HashMap<i32, MetricsMode>,
    default: MetricsMode,
}

impl Modes {
    /// Modes from the properties of a table. An invalid mode is ignored, as in Java: metrics never fail a write.
    pub fn new(properties: &StringMap, schema: &Schema, order: Option<&SortOrder>) -> Result<Self> {
        let mut by_id = HashMap::new();
        let limit = usize::try_from(METRICS_MAX_INFERRED_COLUMN_DEFAULTS.read(properties)?).unwrap_or(INFERRED_COLUMNS);
        let default = match DEFAULT_WRITE_METRICS_MODE.read(properties) {
            Some(mode) => mode,
            None if schema.ids().len() <= limit => DEFAULT,
            None => {
                let mut room = limit;
                first_columns(schema.fields().iter().collect(), &mut room, &mut |id| {
                    by_id.insert(id, DEFAULT);
                });
                MetricsMode::None
            }
        };
        for id in order.into_iter().flat_map(order_preserving) {
            by_id.insert(id, if default.bound_length().is_some() { default } else { DEFAULT });
        }
        for (column, text) in METRICS_MODE_COLUMN_CONF_PREFIX.columns(properties) {
            if let Ok(Some(field)) = schema.find_by_name(column, true) {
                by_id.insert(field.id, MetricsMode::parse(text).unwrap_or(default));
            }
        }
        Ok(Self { by_id, default })
    }

    /// All metrics of every column.
    pub fn full() -> Self {
        Self { by_id: HashMap::new(), default: MetricsMode::Full }
    }

    /// The mode of a column.
    pub fn of(&self, field_id: i32) -> MetricsMode {
        self.by_id.get(&field_id).copied().unwrap_or(self.default)
    }
}

/// Source columns of a sort order whose bounds are useful: those sorted by an order-preserving transform.
fn order_preserving(order: &SortOrder) -> impl Iterator<Item = i32> {
    let fields = order.fields.iter().filter(|field| field.transform.preserves_order());
    fields.filter_map(|field| field.source_ids.first().copied())
}

/// The first columns, up to a limit, that have metrics: fields of a struct before those of nested structs, lists and
/// maps.
fn first_columns(fields: Vec<&Field>, room: &mut usize, take: &mut impl FnMut(i32)) {
    for field in &fields {
        if *room == 0 {
            return;
        }
        if !field.ty.is_nested() {
            take(field.id);
            *room -= 1;
        }
    }
    for field in fields {
        match &field.ty {
            Type::Struct(inner) => first_columns(inner.fields.iter().collect(), room, take),
            Type::List(list) => first_columns(vec![&list.element], room, take),
            Type::Map(map) => first_columns(vec![&map.key, &map.value], room, take),
            Type::Primitive(_) | Type::Variant => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use icefield_format::types::PrimitiveType;

    use super::*;

    fn strings<const N: usize>(properties: [(&str, &str); N]) -> StringMap {
        properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn wide_tables_keep_the_first_hundred() {
        let fields = (1..=150).map(|id| Field::optional(id, format!("c{id}"), PrimitiveType::Int)).collect();
        let schema = Schema::new(0, fields).unwrap();
        let modes = Modes::new(&strings([("write.metadata.metrics.column.c120", "full")]), &schema, None).unwrap();
        assert_eq!([100, 101, 120].map(|id| modes.of(id)), [DEFAULT, MetricsMode::None, MetricsMode::Full]);
        let all = Modes::new(&strings([("write.metadata.metrics.default", "counts")]), &schema, None).unwrap();
        assert_eq!(all.of(150), MetricsMode::Counts);
    }
}
