//! Metadata columns, and columns of position delete files ("Reserved Field IDs").
//!
//! Ids, names and types come from the specification; required or optional, and comments, from the Java library.

use super::nested::{Field, Type};
use crate::primitive::PrimitiveType as P;

/// Largest id of a table's column; ids above it are reserved.
pub const MAX_COLUMN_ID: i32 = i32::MAX - 200;

/// A field with the same id and name in every table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReservedField<T> {
    /// Field id.
    pub id: i32,
    /// Name.
    pub name: &'static str,
    /// Whether it is never null.
    pub required: bool,
    /// The type.
    pub ty: T,
    /// Comment.
    pub doc: &'static str,
}

/// Type of a reserved field that depends on the table: a struct of its columns or partition fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfTable;

impl ReservedField<P> {
    /// Converts to a schema field.
    pub fn to_field(&self) -> Field {
        self.of_type(self.ty.clone())
    }
}

impl ReservedField<OfTable> {
    /// Converts to a schema field, with the struct type that it has in a table.
    pub fn to_field(&self, ty: impl Into<Type>) -> Field {
        self.of_type(ty)
    }
}

impl<T> ReservedField<T> {
    fn of_type(&self, ty: impl Into<Type>) -> Field {
        Field { required: self.required, ..Field::optional(self.id, self.name, ty).with_doc(self.doc) }
    }
}

const fn required<T>(id: i32, name: &'static str, ty: T, doc: &'static str) -> ReservedField<T> {
    ReservedField { id, name, required: true, ty, doc }
}

const fn optional<T>(id: i32, name: &'static str, ty: T, doc: &'static str) -> ReservedField<T> {
    ReservedField { id, name, required: false, ty, doc }
}

/// Path of the file in which a row is stored.
pub const FILE: ReservedField<P> =
    required(i32::MAX - 1, "_file", P::String, "Path of the file in which a row is stored");

/// Position of a row in its data file, from 0.
pub const POS: ReservedField<P> =
    required(i32::MAX - 2, "_pos", P::Long, "Ordinal position of a row in the source data file");

/// Whether a row has been deleted.
pub const DELETED: ReservedField<P> =
    required(i32::MAX - 3, "_deleted", P::Boolean, "Whether the row has been deleted");

/// Id of the partition spec of a row's file.
pub const SPEC_ID: ReservedField<P> =
    required(i32::MAX - 4, "_spec_id", P::Int, "Spec ID used to track the file containing a row");

/// The partition of a row, as a struct of the fields of all partition specs.
pub const PARTITION: ReservedField<OfTable> =
    optional(i32::MAX - 5, "_partition", OfTable, "Partition to which a row belongs");

/// Id of the column of Java's `position_deletes` table with the offset of a deletion vector in its file.
pub const CONTENT_OFFSET_ID: i32 = i32::MAX - 6;

/// Id of the column of Java's `position_deletes` table with the length of a deletion vector.
pub const CONTENT_SIZE_IN_BYTES_ID: i32 = i32::MAX - 7;

/// Position delete files: path of the data file.
pub const DELETE_FILE_PATH: ReservedField<P> =
    required(i32::MAX - 101, "file_path", P::String, "Path of a file in which a deleted row is stored");

/// Position delete files: position of the deleted row in the data file, from 0.
pub const DELETE_FILE_POS: ReservedField<P> =
    required(i32::MAX - 102, "pos", P::Long, "Ordinal position of a deleted row in the data file");

/// Position delete files: the deleted row, as a struct of the table's columns.
pub const DELETE_FILE_ROW: ReservedField<OfTable> = optional(i32::MAX - 103, "row", OfTable, "Deleted row values");

/// Changelogs: `INSERT`, `DELETE`, `UPDATE_BEFORE` or `UPDATE_AFTER`.
pub const CHANGE_TYPE: ReservedField<P> =
    required(i32::MAX - 104, "_change_type", P::String, "Record type in changelog");

/// Changelogs: position of the change, from 0.
pub const CHANGE_ORDINAL: ReservedField<P> =
    optional(i32::MAX - 105, "_change_ordinal", P::Int, "Change ordinal in changelog");

/// Changelogs: the snapshot in which the change occurred.
pub const COMMIT_SNAPSHOT_ID: ReservedField<P> =
    optional(i32::MAX - 106, "_commit_snapshot_id", P::Long, "Commit snapshot ID");

/// Row lineage: the unique id of a row.
pub const ROW_ID: ReservedField<P> =
    optional(i32::MAX - 107, "_row_id", P::Long, "Implicit row ID that is automatically assigned");

/// Row lineage: sequence number of the commit that last updated a row.
pub const LAST_UPDATED_SEQUENCE_NUMBER: ReservedField<P> =
    optional(i32::MAX - 108, "_last_updated_sequence_number", P::Long, "Sequence number when the row was last updated");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::StructType;

    #[test]
    fn ids_and_types_are_those_of_the_specification() {
        for (id, name, ty, field) in [
            (2_147_483_646, "_file", "string", FILE),
            (2_147_483_645, "_pos", "long", POS),
            (2_147_483_644, "_deleted", "boolean", DELETED),
            (2_147_483_643, "_spec_id", "int", SPEC_ID),
            (2_147_483_546, "file_path", "string", DELETE_FILE_PATH),
            (2_147_483_545, "pos", "long", DELETE_FILE_POS),
            (2_147_483_543, "_change_type", "string", CHANGE_TYPE),
            (2_147_483_542, "_change_ordinal", "int", CHANGE_ORDINAL),
            (2_147_483_541, "_commit_snapshot_id", "long", COMMIT_SNAPSHOT_ID),
            (2_147_483_540, "_row_id", "long", ROW_ID),
            (2_147_483_539, "_last_updated_sequence_number", "long", LAST_UPDATED_SEQUENCE_NUMBER),
        ] {
            assert_eq!((field.id, field.name, field.ty.to_string().as_str()), (id, name, ty));
            let made = field.to_field();
            assert_eq!((made.id, made.required, made.doc.as_deref()), (id, field.required, Some(field.doc)));
        }
        assert_eq!((PARTITION.id, PARTITION.name), (2_147_483_642, "_partition"));
        assert_eq!((DELETE_FILE_ROW.id, DELETE_FILE_ROW.name), (2_147_483_544, "row"));
        assert_eq!([CONTENT_OFFSET_ID, CONTENT_SIZE_IN_BYTES_ID], [2_147_483_641, 2_147_483_640]);
        assert_eq!(MAX_COLUMN_ID, 2_147_483_447);
    }

    #[test]
    fn structs_are_those_of_the_table() {
        let row = StructType::new(vec![Field::required(1, "id", P::Long)]);
        let field = DELETE_FILE_ROW.to_field(row.clone());
        assert_eq!(field, Field::optional(2_147_483_544, "row", row).with_doc("Deleted row values"));
    }
}
