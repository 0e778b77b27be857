//! `evolution.json`: batches of changes of a schema, and the name mapping that follows.

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::Error;
use icefield_format::evolution::{NewColumn, UpdateSchema};
use icefield_format::types::value_json;
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping, PrimitiveType, Schema, Type, is_promotion_allowed};
use icefield_format::value::Value;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::name_mapping::sorted_names;
use crate::typed::same;
use crate::values::text;
use crate::{Golden, trial};

/// Trials of all cases: the schemas at the start of the file, and their changes.
pub fn trials(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let starts = cases.iter().filter(|case| case["kind"] == "start");
    let starts: HashMap<_, _> = starts.map(|case| (case["name"].to_string(), case.clone())).collect();
    let starts = Arc::new(starts);
    let check_of = |(number, case): (usize, Json)| {
        let starts = Arc::clone(&starts);
        trial("evolution", number, move || match text(&case, "kind")? {
            "start" => check_start(&case),
            "evolve" => {
                let start = starts.get(&case["start"].to_string()).ok_or("no such start")?;
                check(&case, Table::new(start, &case)?)
            }
            kind => Err(format!("no check for kind {kind}").into()),
        })
    };
    cases.into_iter().enumerate().map(check_of).collect()
}

/// Checks a new table: its name mapping is derived from its schema.
fn check_start(case: &Json) -> Result<(), Failed> {
    let schema = Schema::from_json(&case["schema"])?;
    same("schema", &schema.to_json(), &case["schema"])?;
    same("last_column_id", &Json::from(schema.highest_field_id()), &case["last_column_id"])?;
    let mapping = NameMapping::of_schema(&schema)?;
    same("name_mapping", &sorted_names(&mapping.to_json()), &sorted_names(&case["name_mapping"]))
}

fn check(case: &Json, mut table: Table) -> Result<(), Failed> {
    let start = table.mapping.clone();
    let result = table.run(case["ops"].as_array().ok_or("no ops")?);
    match (result, case.get("error")) {
        (Ok(()), None) => {}
        (Err(_), Some(error)) => {
            let at = error.get("at").map_or(Some(table.done), Json::as_u64);
            // An operation that the library rejects is done here, and a later one fails.
            if table.differs() && at.is_some_and(|at| at < table.done) {
                return Ok(());
            }
            return same("operation that fails", &Some(table.done), &at);
        }
        (Ok(()), Some(_)) if table.differs() => return Ok(()),
        (Ok(()), Some(error)) => return Err(format!("done, but is an error: {error}").into()),
        (Err(error), None) => return Err(error.to_string().into()),
    }
    same("schema", &table.current()?.to_json(), &case["schema"])?;
    same("last_column_id", &Json::from(table.last_column_id), &case["last_column_id"])?;
    let expected = case.get("name_mapping").map_or(serde_json::from_str(&start)?, Json::clone);
    same("name_mapping", &sorted_names(&serde_json::from_str(&table.mapping)?), &sorted_names(&expected))
}

/// The schemas of a table.
struct Table {
    schemas: Vec<Schema>,
    current: usize,
    last_column_id: i32,
    format_version: u8,
    mapping: String,
    /// The number of successful operations.
    done: u64,
    /// Whether a promotion needs version 3, which the library does not support (docs/differences.md, "Promotions of
    /// version 3").
    promoted_by_version_3: bool,
    /// Whether a nested identifier field was renamed, which the library loses track of (docs/differences.md,
    /// "Identifier fields under another name").
    renamed_identifier: bool,
}

/// Whether a change promotes a type in a way that version 2 does not allow.
fn promotes(base: &Schema, schema: &Schema) -> bool {
    base.ids().iter().any(|id| {
        let to = schema.find_type(*id).and_then(Type::as_primitive);
        base.find_type(*id).zip(to).is_some_and(|(from, to)| !is_promotion_allowed(from, to, 2))
    })
}

/// Whether the full name of a nested identifier field has changed.
fn renames_identifier(base: &Schema, schema: &Schema) -> bool {
    schema.identifier_field_ids().iter().any(|id| {
        let before = base.column_name(*id);
        before.is_some_and(|name| name.contains('.')) && before != schema.column_name(*id)
    })
}

impl Table {
    fn differs(&self) -> bool {
        self.promoted_by_version_3 || self.renamed_identifier
    }

    fn new(start: &Json, case: &Json) -> Result<Self, Failed> {
        Ok(Self {
            schemas: vec![Schema::from_json(&start["schema"])?],
            current: 0,
            last_column_id: serde_json::from_value(start["last_column_id"].clone())?,
            format_version: serde_json::from_value(case["format"].clone())?,
            mapping: start["name_mapping"].to_string(),
            done: 0,
            promoted_by_version_3: false,
            renamed_identifier: false,
        })
    }

    fn current(&self) -> Result<&Schema, Failed> {
        self.schemas.get(self.current).ok_or_else(|| "no schema".into())
    }

    fn run(&mut self, ops: &[Json]) -> Result<(), Error> {
        for batch in ops.split(|op| op["op"] == "commit") {
            let base = self.schemas[self.current].clone();
            let mut update = UpdateSchema::new(&base, self.last_column_id, self.format_version);
            let mut added = HashMap::new();
            for op in batch {
                if let Err(error) = apply(&mut update, op, &base, &mut added) {
                    self.promoted_by_version_3 |= update.apply().is_ok_and(|schema| promotes(&base, &schema));
                    return Err(error);
                }
                self.done += 1;
            }
            self.commit(&update, &base)?;
            self.done += 1;
        }
        Ok(())
    }

    fn commit(&mut self, update: &UpdateSchema, base: &Schema) -> Result<(), Error> {
        let schema = update.apply()?;
        self.promoted_by_version_3 |= promotes(base, &schema);
        self.renamed_identifier |= renames_identifier(base, &schema);
        let properties = [(NAME_MAPPING_PROPERTY, self.mapping.as_str())];
        for (key, value) in update.property_changes(&schema, properties).set {
            assert_eq!(key, NAME_MAPPING_PROPERTY);
            self.mapping = value;
        }
        self.last_column_id = self.last_column_id.max(schema.highest_field_id());
        self.current = match self.schemas.iter().position(|known| known.same_schema(&schema)) {
            Some(known) => known,
            None => {
                let next = self.schemas.iter().map(Schema::schema_id).max().unwrap_or(0) + 1;
                self.schemas.push(schema.with_schema_id(next));
                self.schemas.len() - 1
            }
        };
        Ok(())
    }
}

type Added = HashMap<String, Type>;

fn apply(update: &mut UpdateSchema, op: &Json, base: &Schema, added: &mut Added) -> Result<(), Error> {
    let name = op["name"].as_str().unwrap_or_default();
    let other = |key: &str| op[key].as_str().ok_or_else(|| Error::invalid(format!("{key} is not text")));
    match op["op"].as_str().unwrap_or_default() {
        kind @ ("add" | "add_required") => {
            let column = new_column(op, name, added)?;
            update.add(if kind == "add" { column } else { column.required() })?
        }
        "delete" => update.delete(name)?,
        "rename" => update.rename(name, other("to")?)?,
        "update_type" => {
            update.update_type(name, &PrimitiveType::parse(other("type")?)?)?;
            match op.get("doc") {
                Some(doc) => update.update_doc(name, doc.as_str())?,
                None => update,
            }
        }
        "update_doc" => update.update_doc(name, op["doc"].as_str())?,
        "update_default" => {
            let field = base.find_by_name(name, true)?.map(|field| &field.ty);
            let value = match field.or_else(|| added.get(name)) {
                Some(ty) => value_json::from_json_or_null(&op["default"], ty)?,
                None => Some(Value::Boolean(true)),
            };
            update.update_default(name, value)?
        }
        "require" => update.require(name)?,
        "optional" => update.make_optional(name)?,
        "move_first" => update.move_first(name)?,
        "move_before" => update.move_before(name, other("ref")?)?,
        "move_after" => update.move_after(name, other("ref")?)?,
        "union" => update.union_by_name(&Schema::from_json(&op["schema"])?)?,
        "set_identifier" => {
            let names: Vec<_> = op["names"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            update.set_identifier_fields(&names)
        }
        "allow_incompatible" => update.allow_incompatible(),
        "case_sensitive" => update.case_sensitive(op["value"] == true),
        kind => return Err(Error::unsupported(format!("the test has no operation {kind:?}"))),
    };
    Ok(())
}

fn new_column(op: &Json, name: &str, added: &mut Added) -> Result<NewColumn, Error> {
    let ty = Type::from_json(&op["type"])?;
    let default = op.get("default").map(|json| value_json::from_json_or_null(json, &ty)).transpose()?.flatten();
    let parent = op.get("parent").map(Json::as_str);
    added.insert(parent.flatten().map_or(name.to_owned(), |parent| format!("{parent}.{name}")), ty.clone());
    let column = match parent {
        None => NewColumn::new(name, ty)?,
        Some(parent) => NewColumn::inside(parent, name, ty),
    };
    Ok(column.with_doc(op["doc"].as_str().map(str::to_owned)).with_default(default))
}
