//! The plan of a merge: its clauses bound to the columns of a table and a source, and the columns that they need.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use icefield_format::expr::{Expr, Expression};
use icefield_format::metadata::TableMetadata;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{FILE, POS};
use icefield_format::types::{Field, Schema};

use super::assigned::Assigned;
use super::clause::{Action, Clause, Condition, RowFunction, Rules, When};
use super::condition::BoundCondition;
use super::joined::{SOURCE, Sides, TARGET, of_target};
use super::key::{Equality, Key};
use super::keyed::Doubles;
use super::texts::column_in_text;
use crate::error::{Error, Result};
use crate::operation::replace_rows::columns_to_change;
use crate::write::conform::{Conform, extra_column, is_nameless_index};
use crate::write::intake::Intake;
use crate::write::{Matching, key_length};

/// Rules bound to a table and a source.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) key: Key,
    pub(crate) doubles: Doubles,
    pub(crate) clauses: Vec<Ready>,
    /// The columns to read from the table, followed by the path of the file and the position of the row.
    pub(crate) read: Arc<Schema>,
    /// The columns of the rows to write.
    pub(crate) written: SchemaRef,
    /// Names of the table's columns that are read.
    pub(crate) target: Vec<String>,
    /// The columns of the source as they are held.
    pub(crate) source: SchemaRef,
    /// Indexes of the source columns that joined rows have.
    pub(crate) joined: Vec<usize>,
    /// Whether rows beyond memory are encrypted, as those of the table are.
    pub(crate) is_encrypted: bool,
    given: Option<SourceColumns>,
}

/// A clause bound to the columns.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) when: When,
    pub(crate) condition: ReadyCondition,
    pub(crate) action: ReadyAction,
}

/// A bound condition.
pub(crate) enum ReadyCondition {
    Always,
    Filter(BoundCondition),
    Function(RowFunction),
    /// The columns that both sides have.
    Differs(Vec<String>),
}

impl std::fmt::Debug for ReadyCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Always => "Always",
            Self::Filter(_) => "Filter",
            Self::Function(_) => "Function",
            Self::Differs(_) => "Differs",
        })
    }
}

/// A bound action.
#[derive(Debug)]
pub(crate) enum ReadyAction {
    Delete,
    Write(Box<Assigned>),
}

/// Converts source columns that the table also has to its types; the others follow unchanged.
#[derive(Debug)]
struct SourceColumns {
    stored: Vec<usize>,
    given: SchemaRef,
    intake: Intake,
    others: Vec<usize>,
}

impl Plan {
    /// Binds rules to a table and a source.
    ///
    /// # Errors
    /// No clauses, or clauses that can never apply; missing columns; or types that do not fit.
    pub(crate) fn new(metadata: &TableMetadata, schema: &ArrowSchema, rules: &Rules) -> Result<Self> {
        let table = metadata.current_schema();
        check_order(&rules.clauses)?;
        if let Some(double) = double_name(schema) {
            return Err(Error::column(double, "the data have more than one column of this name"));
        }
        let takes_all = rules
            .clauses
            .iter()
            .any(|clause| matches!(clause.action, Action::WriteAll) || matches!(clause.condition, Condition::Differs));
        // An upsert writes all columns and uses no others; a merge may use more of them in its clauses.
        let is_exact = rules.exact || !rules.matching.allow_missing;
        if takes_all && is_exact {
            Conform::new(table, schema, rules.matching)?;
        }
        let given = takes_all.then(|| SourceColumns::new(table, schema)).transpose()?;
        let source = given.as_ref().map_or_else(|| Ok(Arc::new(schema.clone())), |given| given.schema(schema))?;
        let common: Vec<String> = table
            .fields()
            .iter()
            .map(|field| field.name.clone())
            .filter(|name| source.index_of(name).is_ok())
            .collect();
        let equality = if rules.exact { Equality::Exact } else { Equality::Sql };
        let key = Key::new(table, &source, &rules.on, equality, rules.case_sensitive)?;
        let mut needed = Needed::default();
        let clauses = rules.clauses.iter().map(|clause| {
            let sides = Sides {
                target: (clause.when != When::NotMatched).then_some(&**table),
                source: (clause.when != When::NotMatchedBySource).then_some(&*source),
            };
            ready(clause, table, &sides, &common, rules.case_sensitive, &mut needed)
                .map_err(|error| named(error, &clause.name))
        });
        let clauses = clauses.collect::<Result<Vec<_>>>()?;
        if takes_all && !is_exact && !rules.matching.ignore_extra {
            refuse_unused(table, schema, rules, &needed)?;
        }
        let changes = clauses
            .iter()
            .any(|clause| clause.when != When::NotMatched && matches!(clause.action, ReadyAction::Write(_)));
        let all = columns_to_change(metadata)?;
        let of_key = |field: &Field| key.columns.iter().any(|column| is_within(table, column.id, field.id));
        let is_read = |field: &&Field| {
            changes
                || needed.everything
                || of_key(field)
                || needed.columns.contains(&format!("{TARGET}.{}", field.name))
        };
        let mut fields: Vec<Field> = all.fields().iter().filter(is_read).cloned().collect();
        let target = fields.iter().map(|field| field.name.clone());
        let target = target.filter(|name| table.fields().iter().any(|field| field.name == *name)).collect();
        fields.extend([FILE.to_field(), POS.to_field()]);
        let joined = source.fields().iter().enumerate();
        let is_joined = |name: &str| needed.everything || needed.columns.contains(&format!("{SOURCE}.{name}"));
        let joined = joined.filter(|(_, field)| is_joined(field.name())).map(|(place, _)| place).collect();
        Ok(Self {
            key,
            doubles: if rules.exact { Doubles::Refuse } else { Doubles::Keep },
            clauses,
            read: Arc::new(Schema::new(0, fields)?),
            written: Arc::new(nullable(&all.to_arrow(&ToArrow::default())?)),
            target,
            source,
            joined,
            is_encrypted: key_length(metadata.properties())?.is_some(),
            given,
        })
    }

    /// Converts source rows to the form in which they are held.
    pub(crate) fn prepared(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.given.as_mut().map_or(Ok(batch.clone()), |given| given.prepared(&batch, &self.source))
    }

    /// Whether there is a clause for this kind of rows.
    pub(crate) fn has(&self, when: When) -> bool {
        self.clauses.iter().any(|clause| clause.when == when)
    }

    /// Whether several source rows may match one row of the table: only if all of them delete it unconditionally.
    pub(crate) fn allows_many(&self) -> bool {
        let mut matched = self.clauses.iter().filter(|clause| clause.when == When::Matched);
        let first = matched.next().map(|clause| (&clause.condition, &clause.action));
        matches!(first, Some((ReadyCondition::Always, ReadyAction::Delete))) && matched.next().is_none()
    }
}

/// A filter for table rows without a partner that some clause may apply to.
pub(crate) fn alone(clauses: &[Clause]) -> Expr {
    let clauses = clauses.iter().filter(|clause| clause.when == When::NotMatchedBySource);
    let filters = clauses.map(|clause| match &clause.condition {
        Condition::Filter(filter) => of_target(filter),
        _ => Expression::True,
    });
    Expr::any(filters.collect())
}

/// Rejects source columns that the table lacks and that no key, condition or value uses. Clauses that write all columns
/// would silently drop them, for example after a column of the table was renamed.
fn refuse_unused(table: &Schema, schema: &ArrowSchema, rules: &Rules, needed: &Needed) -> Result<()> {
    let same =
        |one: &str, other: &str| if rules.case_sensitive { one == other } else { one.eq_ignore_ascii_case(other) };
    let is_unused = |field: &&FieldRef| {
        let name = field.name();
        let used = format!("{SOURCE}.{name}");
        let is_of_key = rules.on.iter().any(|(_, of_source)| {
            let inner = of_source.get(name.len()..).is_some_and(|rest| rest.starts_with('.'));
            same(of_source, name) || inner && of_source.get(..name.len()).is_some_and(|front| same(front, name))
        });
        let is_named = needed.columns.contains(&used) || rules.mentions.iter().any(|text| names(text, &used));
        let is_known = table.fields().iter().any(|own| own.name == *name);
        !is_known && !is_of_key && !is_named && !is_nameless_index(name)
    };
    let fault = |field: &FieldRef| {
        let message = extra_column(field.name(), table.fields());
        let function = if needed.everything { " (a function may use it)" } else { "" };
        Error::column(field.name(), format!("{message}; extra_columns=\"ignore\" merges without it{function}"))
    };
    let mut faults: Vec<Error> = schema.fields().iter().filter(is_unused).map(fault).collect();
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.swap_remove(0)),
        _ => Err(Error::Columns(faults.iter().map(ToString::to_string).collect())),
    }
}

/// Whether a text has this name other than as a prefix of a longer one.
fn names(text: &str, name: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c == '_' || c.is_alphanumeric());
    text.match_indices(name).any(|(at, _)| !text.get(at + name.len()..).is_some_and(goes_on))
}

/// The columns that clauses need in joined rows.
#[derive(Debug, Default)]
struct Needed {
    /// Whether all columns are needed: a function may use any of them.
    everything: bool,
    columns: HashSet<String>,
}

fn ready(
    clause: &Clause,
    table: &Schema,
    sides: &Sides<'_>,
    common: &[String],
    case_sensitive: bool,
    needed: &mut Needed,
) -> Result<Ready> {
    let condition = match &clause.condition {
        Condition::Always => ReadyCondition::Always,
        Condition::Filter(filter) => {
            let bound = BoundCondition::new(filter, sides, case_sensitive)?;
            needed.columns.extend(bound.columns());
            ReadyCondition::Filter(bound)
        }
        Condition::Function(function) => {
            needed.everything = true;
            ReadyCondition::Function(function.clone())
        }
        Condition::Differs => {
            needed
                .columns
                .extend(common.iter().flat_map(|name| [format!("{TARGET}.{name}"), format!("{SOURCE}.{name}")]));
            ReadyCondition::Differs(common.to_vec())
        }
    };
    let new = clause.when == When::NotMatched;
    let action = match &clause.action {
        Action::Delete => ReadyAction::Delete,
        Action::WriteAll => {
            if common.is_empty() {
                return Err(Error::invalid("the source has none of the table's columns"));
            }
            needed.columns.extend(common.iter().map(|name| format!("{SOURCE}.{name}")));
            let taken = common.iter().map(|name| (name.clone(), vec![format!("{SOURCE}.{name}")]));
            ReadyAction::Write(Box::new(Assigned::new(table, taken.collect(), &[], None, new)?))
        }
        Action::Write(assignments) => {
            if assignments.taken.is_empty() && assignments.computed.is_empty() {
                return Err(Error::invalid("expected new values of at least one column"));
            }
            needed.everything |= assignments.function.is_some();
            refuse_columns(&assignments.texts, sides)?;
            let taken = assignments.taken.iter().map(|(column, from)| {
                let path = sides.column(from, case_sensitive).ok_or_else(|| {
                    Error::invalid(format!(
                        "there is no column {from} here for the column {column}; if it is meant as text, pass it as a \
                         pyarrow scalar"
                    ))
                })?;
                needed.columns.extend(path.first().cloned());
                Ok((column.clone(), path))
            });
            let taken = taken.collect::<Result<Vec<_>>>()?;
            let function = assignments.function.clone();
            ReadyAction::Write(Box::new(Assigned::new(table, taken, &assignments.computed, function, new)?))
        }
    };
    Ok(Ready { name: clause.name.clone(), when: clause.when, condition, action })
}

/// Rejects strings that look like columns.
fn refuse_columns(texts: &[(String, String)], sides: &Sides<'_>) -> Result<()> {
    for (column, text) in texts {
        let known = |name: &str| {
            [SOURCE, TARGET]
                .map(|side| format!("{side}.{name}"))
                .map(|path| (sides.column(&path, false).is_some(), path))
        };
        let Some(found) = column_in_text(text, |name| known(name).iter().any(|(is_here, _)| *is_here)) else {
            continue;
        };
        let name = found.split_once('.').map_or(found, |(_, name)| name);
        let meant = [name, found].into_iter().flat_map(known).filter(|(is_here, _)| *is_here).map(|(_, path)| path);
        let mut meant: Vec<String> = meant.collect();
        meant.dedup();
        let (first, all) = (meant.first().map_or("source.NAME", String::as_str), meant.join("\" or \""));
        let advice = match found == text.trim() {
            true => format!("write \"{all}\" for the column"),
            false => format!(
                "values are no SQL: pass a function of the rows, or an expression such as pyarrow.compute.field(\"{first}\")"
            ),
        };
        let message = format!(
            "the value {text:?} looks like a column, and is a text: {advice}, pyarrow.scalar({text:?}) for the text"
        );
        return Err(Error::column(column, message));
    }
    Ok(())
}

/// Rejects an empty list, clauses that can never apply, and actions that have no row to work on.
fn check_order(clauses: &[Clause]) -> Result<()> {
    if clauses.is_empty() {
        return Err(Error::invalid("merge: there are no clauses: say what is done with rows that match, or do not"));
    }
    for (number, clause) in clauses.iter().enumerate() {
        let earlier =
            clauses.iter().take(number).find(|earlier| earlier.when == clause.when && is_unconditional(earlier));
        if let Some(earlier) = earlier {
            return Err(Error::invalid(format!(
                "merge: {} can never apply: {} before it has no condition",
                clause.name, earlier.name
            )));
        }
        let fits = match clause.when {
            When::Matched => true,
            When::NotMatched => !matches!(clause.action, Action::Delete),
            When::NotMatchedBySource => !matches!(clause.action, Action::WriteAll),
        };
        if !fits {
            return Err(Error::invalid(format!("merge: {}: there is no row to do that with", clause.name)));
        }
    }
    Ok(())
}

fn is_unconditional(clause: &Clause) -> bool {
    matches!(clause.condition, Condition::Always)
}

/// Adds the name of the clause to an error.
fn named(error: Error, clause: &str) -> Error {
    match error {
        Error::Column { column, message } => Error::Column { column, message: format!("{clause}: {message}") },
        Error::Format(error) => Error::invalid(format!("{clause}: {error}")),
        Error::Invalid(message) => Error::invalid(format!("{clause}: {message}")),
        other => other,
    }
}

fn double_name(schema: &ArrowSchema) -> Option<String> {
    let mut names = HashSet::new();
    schema.fields().iter().find(|field| !names.insert(field.name().as_str())).map(|field| field.name().clone())
}

/// Whether a column is the top-level column `top` or nested in it.
fn is_within(table: &Schema, id: i32, top: i32) -> bool {
    let mut next = Some(id);
    while let Some(id) = next {
        if id == top {
            return true;
        }
        next = table.parent(id);
    }
    false
}

/// All fields as nullable: nulls in required columns are detected when rows are written, where errors have the names of
/// the columns.
fn nullable(schema: &ArrowSchema) -> ArrowSchema {
    let field = |field: &FieldRef| field.as_ref().clone().with_nullable(true);
    ArrowSchema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

impl SourceColumns {
    fn new(table: &Schema, schema: &ArrowSchema) -> Result<Self> {
        let is_common = |place: &usize| {
            let field = schema.fields().get(*place);
            field.is_some_and(|field| table.fields().iter().any(|own| own.name == *field.name()))
        };
        let (stored, others): (Vec<usize>, Vec<usize>) = (0..schema.fields().len()).partition(is_common);
        let given: SchemaRef = Arc::new(nullable(&schema.project(&stored).map_err(internal)?));
        let own = table.fields().iter().filter(|field| given.index_of(&field.name).is_ok());
        let own = own.map(|field| Field { required: false, ..field.clone() }).collect();
        let conform = Conform::new(&Schema::new(0, own)?, &given, Matching::default())?;
        Ok(Self { stored, given, intake: Intake::new(conform, None, None), others })
    }

    fn schema(&self, schema: &ArrowSchema) -> Result<SchemaRef> {
        let others = schema.project(&self.others).map_err(internal)?;
        let stored = self.intake.schema().fields().iter();
        Ok(Arc::new(nullable(&ArrowSchema::new(stored.chain(others.fields()).cloned().collect::<Vec<_>>()))))
    }

    fn prepared(&mut self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let stored = batch.project(&self.stored).map_err(internal)?;
        let stored = RecordBatch::try_new_with_options(self.given.clone(), stored.columns().to_vec(), &options);
        let stored = self.intake.prepare(&stored.map_err(internal)?)?.chunk;
        let others = batch.project(&self.others).map_err(internal)?;
        let columns = stored.columns().iter().chain(others.columns()).cloned().collect();
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(internal)
    }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("the source of a merge: {error}"))
}
