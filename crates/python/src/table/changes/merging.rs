//! Converts the clauses of a merge from Python dicts.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema as ArrowRustSchema;
use icefield_format::expr::Condition as RowCondition;
use icefield_table::operation::merge::clause::{Action, Assignments, Clause, Condition, RowFunction, When};
use icefield_table::operation::merge::texts;
use pyo3::prelude::*;

use crate::callback::{ENDED, call_python};
use crate::capsule::{ArrayInput, ArrowSchema, ArrowTable};
use crate::errors::{InvalidArgumentError, Result, from_callback};
use crate::format::expr::expressions::ConditionInput;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(column_in_text, module)?)?;
    module.add_class::<PyJoinCondition>()
}

/// The part of a text that looks like one of some columns; none where the text is plainly a value.
#[pyfunction]
#[pyo3(name = "column_in_text")]
fn column_in_text(text: &str, columns: Vec<String>) -> Option<&str> {
    texts::column_in_text(text, |name| columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
}

/// A filter of joined rows, in which two columns may be compared.
#[pyclass(frozen, name = "JoinCondition", module = "icefield._core")]
#[derive(Debug)]
pub(crate) struct PyJoinCondition(RowCondition);

#[pymethods]
impl PyJoinCondition {
    /// An expression, or the text of a condition.
    #[new]
    fn py_new(condition: ConditionInput) -> Self {
        Self(condition.0)
    }

    fn __repr__(&self) -> String {
        format!("JoinCondition({})", self.0)
    }
}

/// A clause of a merge. Its functions are called with rows (a pyarrow table) and the schema of the requested values;
/// conditions get no schema.
#[derive(Debug, FromPyObject)]
pub(crate) struct ClauseInput {
    /// Its name, for errors.
    #[pyo3(item)]
    name: String,
    /// `matched`, `not-matched` or `not-matched-by-source`.
    #[pyo3(item)]
    when: String,
    /// A condition over columns `target.NAME` and `source.NAME`.
    #[pyo3(item)]
    filter: Option<Py<PyJoinCondition>>,
    /// A function that replaces the filter.
    #[pyo3(item)]
    condition: Option<Py<PyAny>>,
    /// `delete`, `all` or `columns`.
    #[pyo3(item)]
    action: String,
    /// Columns to set, and the columns of either side with their values.
    #[pyo3(item)]
    taken: Vec<(String, String)>,
    /// Columns to set to texts, and the texts.
    #[pyo3(item)]
    texts: Vec<(String, String)>,
    /// Columns whose values a function computes.
    #[pyo3(item)]
    computed: Vec<String>,
    #[pyo3(item)]
    function: Option<Py<PyAny>>,
}

impl ClauseInput {
    /// Converts the clause.
    pub(super) fn clause(self) -> Result<Clause> {
        let when = match self.when.as_str() {
            "matched" => When::Matched,
            "not-matched" => When::NotMatched,
            "not-matched-by-source" => When::NotMatchedBySource,
            other => return Err(InvalidArgumentError::new_err(format!("{other:?} is no kind of clause")).into()),
        };
        let condition = match (self.filter, self.condition) {
            (Some(filter), _) => Condition::Filter(filter.get().0.clone()),
            (None, Some(function)) => Condition::Function(asking(function)),
            (None, None) => Condition::Always,
        };
        let action = match self.action.as_str() {
            "delete" => Action::Delete,
            "all" => Action::WriteAll,
            "columns" => {
                let function = self.function.map(asking);
                Action::Write(Assignments { taken: self.taken, texts: self.texts, computed: self.computed, function })
            }
            other => return Err(InvalidArgumentError::new_err(format!("{other:?} is no action of a clause")).into()),
        };
        Ok(Clause { name: self.name, when, condition, action })
    }
}

fn asking(function: Py<PyAny>) -> RowFunction {
    std::sync::Arc::new(move |rows, schema| asked(&function, rows, schema))
}

fn asked(
    function: &Py<PyAny>,
    rows: RecordBatch,
    schema: Option<&ArrowRustSchema>,
) -> icefield_table::Result<ArrayRef> {
    let answer = call_python(|py| {
        let ask = || {
            let rows = Bound::new(py, ArrowTable::from(rows))?.call_method0("to_pyarrow")?;
            let schema =
                schema.map(|schema| Bound::new(py, ArrowSchema(schema.clone().into()))?.call_method0("to_pyarrow"));
            function.bind(py).call1((rows, schema.transpose()?))?.extract::<ArrayInput>()?.checked(py)
        };
        ask().map_err(|error| from_callback(py, error))
    });
    answer.unwrap_or_else(|| Err(icefield_table::Error::Interrupted(ENDED.into())))
}
