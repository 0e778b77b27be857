//! Features that are not built yet may be refused (README, "What stands, and what refuses"), and these refusals are
//! counted. All other refusals are failures.

use std::collections::BTreeMap;
use std::sync::Mutex;

use icefield_format::types::{Schema, Type};
use icefield_table::plan::Plan;
use libtest_mimic::Failed;

static REFUSED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Records a refusal if the table may be refused; otherwise it is a failure.
pub fn note(table: &str, may: bool, message: &str) -> Result<(), Failed> {
    if !may {
        return Err(format!("nothing here is unbuilt, and yet: {message}").into());
    }
    *REFUSED.lock().unwrap().entry(table.to_owned()).or_default() += 1;
    Ok(())
}

/// Whether reading a plan may be refused, because a variant may be shredded.
pub fn may_refuse(plan: &Plan, schema: &Schema) -> bool {
    fn variant(ty: &Type) -> bool {
        match ty {
            Type::Struct(own) => own.fields.iter().any(|field| variant(&field.ty)),
            Type::List(own) => variant(&own.element.ty),
            Type::Map(own) => variant(&own.value.ty),
            other => *other == Type::Variant,
        }
    }
    !plan.is_empty() && schema.fields().iter().any(|field| variant(&field.ty))
}

/// Prints how many cases of each table were refused. Returns whether a table of the repository's set has more of them
/// than in `tests/golden/refused.json`.
pub fn report() -> bool {
    let refused = REFUSED.lock().unwrap();
    let listed: Vec<String> = refused.iter().map(|(table, count)| format!("{table} {count}")).collect();
    if !listed.is_empty() {
        eprintln!("{} of the passed refused (unsupported): {}", refused.values().sum::<usize>(), listed.join(", "));
    }
    if std::env::var_os("ICEFIELD_GOLDEN").is_some() {
        return false;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/refused.json");
    let stored: BTreeMap<String, BTreeMap<String, usize>> =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let stored = |table: &str| stored["rust"].get(table).copied().unwrap_or_default();
    let more: Vec<_> = refused.iter().filter(|(table, count)| **count > stored(table)).collect();
    for (table, count) in &more {
        eprintln!("{table}: {count} cases refused, {} in tests/golden/refused.json", stored(table));
    }
    !more.is_empty()
}
