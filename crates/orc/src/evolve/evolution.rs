//! The relation between the schema of a file and another one, and the steps that convert its columns.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, SchemaRef};

use super::apply::Step;
use super::pairs;
use super::value::{Overflow, Rules};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::read::Projection;
use crate::types::{ArrowOptions, Kind, TypeDescription};

/// How the fields of a file are found, and what becomes of values that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvolutionOptions {
    /// Match the fields of the root by position, not by name (`orc.force.positional.evolution`).
    pub positional: bool,
    /// Whether names differ if only their case does (`orc.schema.evolution.case.sensitive`).
    pub case_sensitive: bool,
    /// What becomes of values that do not fit.
    pub overflow: Overflow,
}

impl Default for EvolutionOptions {
    fn default() -> Self {
        Self { positional: false, case_sensitive: true, overflow: Overflow::Null }
    }
}

/// The relation between the schema of a file and the schema that it is read with.
#[derive(Debug, Clone)]
pub struct Evolution {
    file: TypeDescription,
    schema: TypeDescription,
    /// By column id of `schema`: the column of the file.
    columns: Vec<Option<u32>>,
    /// Columns of the file that are read as exact times, because their timestamps are converted.
    exact: BTreeSet<u32>,
    overflow: Overflow,
}

/// How to read some columns of an evolved schema.
#[derive(Debug)]
pub struct EvolvedColumns {
    /// The columns of the file to read.
    pub projection: Projection,
    /// How they become Arrow.
    pub arrow: ArrowOptions,
    /// The schema of the converted batches.
    pub schema: SchemaRef,
    root: bool,
    step: Step,
    rules: Rules,
}

impl Evolution {
    /// Relates the schema of a file to the schema to read it with.
    ///
    /// # Errors
    ///
    /// A type that orc-core does not convert to the type asked for.
    pub fn try_new(file: &TypeDescription, schema: &TypeDescription, options: &EvolutionOptions) -> Result<Self> {
        let mut schema = schema.clone();
        schema.number();
        let columns = vec![None; schema.end as usize];
        let mut this = Self { file: file.clone(), schema, columns, exact: BTreeSet::new(), overflow: options.overflow };
        // Files of Hive before HIVE-4243 have no names.
        let unnamed = file.kind == Kind::Struct && file.names.iter().all(|name| is_numbered(name));
        let levels = u32::from(options.positional || (unnamed && *file != this.schema));
        let (file, schema) = (file.clone(), this.schema.clone());
        this.relate(&file, &schema, levels, options.case_sensitive, "")?;
        Ok(this)
    }

    /// The schema to read with.
    pub fn schema(&self) -> &TypeDescription {
        &self.schema
    }

    /// The column of the file for a column of the schema; `None` if the file lacks it.
    pub fn file_column(&self, column: u32) -> Option<u32> {
        self.columns.get(column as usize).copied().flatten()
    }

    fn relate(
        &mut self,
        file: &TypeDescription,
        wanted: &TypeDescription,
        levels: u32,
        case_sensitive: bool,
        path: &str,
    ) -> Result<()> {
        let refused = || {
            let place = if path.is_empty() { String::new() } else { format!("column {path}: ") };
            let hint = "use the type of the file, or one that orc-core converts it to";
            Error::invalid(format!("{place}cannot read {} as {}: {hint}", file.kind, wanted.kind))
        };
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match (&file.kind, &wanted.kind) {
            (Kind::Struct, Kind::Struct) if levels > 0 => {
                let pairs = file.children.iter().zip(&wanted.children).zip(&wanted.names);
                for ((file, wanted), name) in pairs {
                    self.relate(file, wanted, levels - 1, case_sensitive, &below(name))?;
                }
            }
            (Kind::Struct, Kind::Struct) => {
                let key = |name: &str| if case_sensitive { name.to_owned() } else { name.to_lowercase() };
                let fields: HashMap<_, _> = file.names.iter().map(|name| key(name)).zip(file.children.iter()).collect();
                for (name, wanted) in wanted.names.iter().zip(&wanted.children) {
                    if let Some(file) = fields.get(&key(name)) {
                        self.relate(file, wanted, 0, case_sensitive, &below(name))?;
                    }
                }
            }
            (Kind::List, Kind::List) | (Kind::Map, Kind::Map) | (Kind::Union, Kind::Union) => {
                if file.children.len() != wanted.children.len() {
                    return Err(refused());
                }
                for (index, (file, child)) in file.children.iter().zip(&wanted.children).enumerate() {
                    let name = below(&wanted.child_name(index));
                    self.relate(file, child, levels.saturating_sub(1), case_sensitive, &name)?;
                }
            }
            (from, to) if pairs::converts(from, to) => {
                let time = matches!(from, Kind::Timestamp | Kind::TimestampInstant);
                if time && from != to {
                    self.exact.insert(file.column);
                }
            }
            _ => return Err(refused()),
        }
        if let Some(slot) = self.columns.get_mut(wanted.column as usize) {
            *slot = Some(file.column);
        }
        Ok(())
    }

    /// Plans the reading of some columns of the schema.
    ///
    /// # Errors
    ///
    /// Columns that the schema lacks.
    pub fn columns(&self, projection: &Projection, arrow: &ArrowOptions) -> Result<EvolvedColumns> {
        let wanted = projection.apply(&self.schema)?;
        let mut needed = Vec::new();
        self.needed(&wanted, &mut needed);
        needed.retain(|column| *column != self.file.column || self.file.kind != Kind::Struct);
        let projection = Projection::Columns(needed);
        let projected = projection.apply(&self.file)?;
        self.planned(projection, &wanted, &projected, arrow)
    }

    /// Plans the conversion of whole top-level columns of the file into whole top-level columns of the schema.
    ///
    /// # Errors
    ///
    /// Columns that the schema lacks.
    pub fn tops(&self, names: &BTreeSet<&str>, arrow: &ArrowOptions) -> Result<EvolvedColumns> {
        let kept =
            self.schema.names.iter().zip(&self.schema.children).filter(|(name, _)| names.contains(name.as_str()));
        let (names, children): (Vec<_>, Vec<_>) = kept.map(|(name, child)| (name.clone(), child.clone())).unzip();
        let files = children.iter().filter_map(|child| self.file_column(child.column)).collect();
        let projection = Projection::Columns(files);
        let projected = projection.apply(&self.file)?;
        let wanted = TypeDescription { names, children, ..self.schema.clone() };
        self.planned(projection, &wanted, &projected, arrow)
    }

    fn planned(
        &self,
        projection: Projection,
        wanted: &TypeDescription,
        projected: &TypeDescription,
        arrow: &ArrowOptions,
    ) -> Result<EvolvedColumns> {
        let schema = Arc::new(wanted.to_arrow(arrow));
        let root = wanted.kind == Kind::Struct;
        let step = self.step(wanted, projected, "");
        let arrow = ArrowOptions { exact_times: self.exact.clone(), ..arrow.clone() };
        let rules = Rules { overflow: self.overflow, strings: arrow.strings };
        Ok(EvolvedColumns { projection, arrow, schema, root, step, rules })
    }

    /// Collects the columns of the file for a part of the schema. Returns false if there are none.
    fn needed(&self, wanted: &TypeDescription, needed: &mut Vec<u32>) -> bool {
        let Some(own) = self.file_column(wanted.column) else { return false };
        let mut any = false;
        for child in &wanted.children {
            any |= self.needed(child, needed);
        }
        if !any {
            needed.push(own);
        }
        true
    }

    fn step(&self, wanted: &TypeDescription, file: &TypeDescription, path: &str) -> Step {
        let below = |index: usize| {
            let name = wanted.child_name(index);
            if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") }
        };
        let child = |index: usize| match (wanted.children.get(index), file.children.get(index)) {
            (Some(wanted), Some(file)) => self.step(wanted, file, &below(index)),
            _ => Step::Missing,
        };
        match &wanted.kind {
            Kind::Struct => {
                let field = |(index, node): (usize, &TypeDescription)| {
                    let own = self.file_column(node.column)?;
                    let at = file.children.iter().position(|child| child.column == own)?;
                    Some((at, self.step(node, file.children.get(at)?, &below(index))))
                };
                Step::Struct(wanted.children.iter().enumerate().map(field).collect())
            }
            Kind::List => Step::List(Box::new(child(0))),
            Kind::Map => Step::Map(Box::new([child(0), child(1)]), path.to_owned()),
            Kind::Union => Step::Union((0..wanted.children.len()).map(child).collect()),
            kind if *kind == file.kind && !self.exact.contains(&file.column) => Step::Keep,
            kind => Step::Leaf { from: file.kind.clone(), to: kind.clone(), column: path.to_owned() },
        }
    }

    /// The part of a predicate on the schema that also holds for the stored values: it may skip stripes and row groups.
    ///
    /// Only conversions that keep every value and its order are safe, a part of what orc-core's `isPPDSafeConversion`
    /// accepts: text that is cut may match what its statistics exclude.
    pub fn predicate(&self, predicate: &Predicate) -> Option<Predicate> {
        match predicate {
            Predicate::And(parts) => {
                let parts: Vec<_> = parts.iter().filter_map(|part| self.predicate(part)).collect();
                (!parts.is_empty()).then_some(Predicate::And(parts))
            }
            Predicate::Or(parts) => {
                Some(Predicate::Or(parts.iter().map(|part| self.whole(part)).collect::<Option<_>>()?))
            }
            other => self.whole(other),
        }
    }

    /// A predicate with the columns of the file; `None` if the conversion of any of them is not safe.
    fn whole(&self, predicate: &Predicate) -> Option<Predicate> {
        let all = |parts: &[Predicate]| parts.iter().map(|part| self.whole(part)).collect::<Option<Vec<_>>>();
        Some(match predicate {
            Predicate::And(parts) => Predicate::And(all(parts)?),
            Predicate::Or(parts) => Predicate::Or(all(parts)?),
            Predicate::Not(inner) => Predicate::Not(Box::new(self.whole(inner)?)),
            Predicate::Leaf(column, test) => {
                let own = self.file_column(*column)?;
                let (wanted, stored) = (self.schema.find(*column)?, self.file.find(own)?);
                if !pairs::keeps_order(&stored.kind, &wanted.kind) {
                    return None;
                }
                Predicate::Leaf(own, test.clone())
            }
        })
    }
}

impl EvolvedColumns {
    /// Converts a batch of the file.
    ///
    /// # Errors
    ///
    /// Values that do not fit, with [`Overflow::Error`].
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let fields = self.schema.fields();
        if self.root {
            let columns = batch.columns().to_vec();
            let own = batch.schema().fields().clone();
            let whole: ArrayRef = Arc::new(StructArray::try_new_with_length(own, columns, None, batch.num_rows())?);
            let done = self.step.apply(&whole, &DataType::Struct(fields.clone()), &self.rules)?;
            let parts = arrow_array::cast::AsArray::as_struct_opt(&done).map(|done| done.columns().to_vec());
            return Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), parts.unwrap_or_default(), &rows)?);
        }
        let columns = batch.columns().iter().zip(fields);
        let columns = columns.map(|(column, field)| self.step.apply(column, field.data_type(), &self.rules));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.collect::<Result<_>>()?, &rows)?)
    }
}

/// Whether a name is `_col` and a number, as in files without names.
fn is_numbered(name: &str) -> bool {
    let digits = name.strip_prefix("_col").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
