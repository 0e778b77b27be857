//! Computes a schema that fits all files of a folder: the union of their columns by name ("Schema Evolution").

use icefield_format::evolution::UpdateSchema;
use icefield_format::types::arrow::FromArrow;
use icefield_format::types::{Field, ListType, MapType, Schema, StructType, Type};
use rayon::prelude::*;

use super::options::FolderOptions;
use crate::error::{Error, Result};
use crate::file;
use crate::interrupt;
use crate::operation::add_files::format_of;
use crate::runtime;
use crate::storage::{Entry, Storage};

/// The columns of all files. All are optional: some files may lack them, and others may have nulls.
pub(super) fn of_files(storage: &Storage, files: &[Entry], options: &FolderOptions) -> Result<Schema> {
    let read = |file: &Entry| {
        interrupt::check()?;
        of_file(storage, file, options)
    };
    let schemas = runtime::pool()?.install(|| files.par_iter().map(read).collect::<Result<Vec<_>>>())?;
    let mut union: Option<Schema> = None;
    let mut last: Option<&Schema> = None;
    for (file, schema) in files.iter().zip(&schemas) {
        let Some(known) = &union else {
            union = Some(schema.clone());
            last = Some(schema);
            continue;
        };
        // Most files of a folder have the same columns as the previous one.
        if last.is_some_and(|last| last.same_schema(schema)) {
            continue;
        }
        let mut update = UpdateSchema::new(known, known.highest_field_id(), options.format_version);
        let both = update.union_by_name(schema).and_then(|update| update.apply());
        union = Some(both.map_err(|error| {
            Error::invalid(format!("{}: its columns do not fit those of other files: {error}", file.path))
        })?);
        last = Some(schema);
    }
    union.ok_or_else(|| Error::invalid("there are no data files"))
}

fn of_file(storage: &Storage, file: &Entry, options: &FolderOptions) -> Result<Schema> {
    let path = &file.path;
    let format = format_of(storage, path, file.size)?;
    if let Some(wanted) = options.format.filter(|wanted| *wanted != format) {
        let (wanted, found) = (wanted.name().to_lowercase(), format.name().to_lowercase());
        return Err(Error::invalid(format!("{path}: expected a file in the format {wanted}, got {found}")));
    }
    let stored = file::stored_columns(storage, path, format.name(), file.size)?;
    let of_version = |version| Schema::from_arrow(&stored, &FromArrow::for_version(version));
    let schema = of_version(options.format_version).map_err(|error| {
        // The files are not rewritten, so only another format version helps.
        let hint = match options.format_version < 3 && of_version(3).is_ok() {
            true => "; it fits a table of version 3: pass properties={\"format-version\": \"3\"}",
            false => "",
        };
        Error::invalid(format!("{path}: {error}{hint}"))
    })?;
    let fields = schema.fields().iter().map(optional).collect();
    // The table assigns its own field ids.
    Ok(Schema::new(0, fields)?.with_fresh_ids(0, &mut 0)?)
}

/// The field with all of its parts optional, except keys of maps.
fn optional(field: &Field) -> Field {
    let ty = match &field.ty {
        Type::Struct(ty) => Type::from(StructType::new(ty.fields.iter().map(optional).collect())),
        Type::List(list) => Type::from(ListType { element: optional(&list.element) }),
        Type::Map(map) => Type::from(MapType { key: map.key.clone(), value: optional(&map.value) }),
        other => other.clone(),
    };
    Field { required: false, ty, ..field.clone() }
}
