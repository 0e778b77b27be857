//! Metrics modes: which metrics of which column go into manifests (`write.metadata.metrics.*`).

use std::collections::HashMap;

use icefield_format::metadata::properties::{
    DEFAULT_WRITE_METRICS_MODE, METRICS_MAX_INFERRED_COLUMN_DEFAULTS, METRICS_MODE_COLUMN_CONF_PREFIX,
};
use icefield_format::spec::SortOrder;
use icefield_format::types::{Field, Schema, Type};

use crate::error::Result;
use crate::settings::Settings;

const DEFAULT: Mode = Mode::Truncate(16);

/// What is kept of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    None,
    /// Counts of values, nulls and NaNs.
    Counts,
    /// Counts, and bounds cut to this length.
    Truncate(usize),
    /// Counts and whole bounds.
    Full,
}

impl Mode {
    /// Length to which bounds are cut; none where there are no bounds.
    pub fn bound_length(self) -> Option<usize> {
        match self {
            Self::None | Self::Counts => None,
            Self::Truncate(length) => Some(length),
            Self::Full => Some(usize::MAX),
        }
    }

    /// Reads `none`, `counts`, `truncate(16)` or `full`, in any case; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "none" => Some(Self::None),
            "counts" => Some(Self::Counts),
            "full" => Some(Self::Full),
            _ => {
                let length = text.strip_prefix("truncate(")?.strip_suffix(')')?.trim().parse::<usize>().ok()?;
                (length > 0).then_some(Self::Truncate(length))
            }
        }
    }
}

/// The mode of every column of a schema.
#[derive(Debug, Clone)]
pub struct Modes {
    by_id: HashMap<i32, Mode>,
    default: Mode,
}

impl Modes {
    /// Modes by the properties of a table. A mode that is none is passed over, as in Java: metrics never stop a write.
    pub fn new(settings: &Settings, schema: &Schema, order: Option<&SortOrder>) -> Result<Self> {
        let mut by_id = HashMap::new();
        let limit =
            settings.number(METRICS_MAX_INFERRED_COLUMN_DEFAULTS.name, METRICS_MAX_INFERRED_COLUMN_DEFAULTS.default)?;
        let limit = usize::try_from(limit).unwrap_or(100);
        let default = match settings.text(DEFAULT_WRITE_METRICS_MODE.name) {
            Some(text) => Mode::parse(text).unwrap_or(DEFAULT),
            None if schema.ids().len() <= limit => DEFAULT,
            None => {
                let mut room = limit;
                first_columns(schema.fields().iter().collect(), &mut room, &mut |id| {
                    by_id.insert(id, DEFAULT);
                });
                Mode::None
            }
        };
        for id in order.into_iter().flat_map(order_preserving) {
            by_id.insert(id, if default.bound_length().is_some() { default } else { DEFAULT });
        }
        for (column, text) in settings.below(METRICS_MODE_COLUMN_CONF_PREFIX) {
            if let Ok(Some(field)) = schema.find_by_name(column, true) {
                by_id.insert(field.id, Mode::parse(text).unwrap_or(default));
            }
        }
        Ok(Self { by_id, default })
    }

    /// The mode of a column.
    pub fn of(&self, field_id: i32) -> Mode {
        self.by_id.get(&field_id).copied().unwrap_or(self.default)
    }
}

/// Source columns of a sort order whose bounds help: those sorted by a transform that keeps their order.
fn order_preserving(order: &SortOrder) -> impl Iterator<Item = i32> {
    let fields = order.fields.iter().filter(|field| field.transform.preserves_order());
    fields.filter_map(|field| field.source_ids.first().copied())
}

/// The first columns that have metrics: those of a struct before those of the structs, lists and maps in it.
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

    #[test]
    fn names() {
        for (text, mode) in [
            ("none", Some(Mode::None)),
            ("Counts", Some(Mode::Counts)),
            ("TRUNCATE(7)", Some(Mode::Truncate(7))),
            ("full", Some(Mode::Full)),
            ("truncate(0)", None),
            ("truncate(x)", None),
            ("", None),
        ] {
            assert_eq!(Mode::parse(text), mode, "{text}");
        }
    }

    #[test]
    fn wide_tables_keep_the_first_hundred() {
        let fields = (1..=150).map(|id| Field::optional(id, format!("c{id}"), PrimitiveType::Int)).collect();
        let schema = Schema::new(0, fields).unwrap();
        let modes =
            Modes::new(&Settings::new([("write.metadata.metrics.column.c120", "full")]), &schema, None).unwrap();
        assert_eq!([100, 101, 120].map(|id| modes.of(id)), [DEFAULT, Mode::None, Mode::Full]);
        let all = Modes::new(&Settings::new([("write.metadata.metrics.default", "counts")]), &schema, None).unwrap();
        assert_eq!(all.of(150), Mode::Counts);
    }
}
