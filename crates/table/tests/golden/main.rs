//! Runs what the golden tables say through planning and reading, one test a case.
//!
//! The folder comes from `ICEFIELD_GOLDEN`; without it the copy in `tests/data/golden` is used, else
//! `../shared/golden`. Nothing of a set's content is known here, and a part that a set lacks is skipped: a table
//! without files is ignored. Tables are unpacked to a scratch folder and found there by relocation, whatever location
//! their metadata name.

// A test without the harness: clippy does not see that it is one, and a malformed set may end it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrow_file;
mod encoding;
mod incremental;
mod metadata_columns;
mod metadata_tables;
mod metrics;
mod plans;
mod refused;
mod row_lineage;
mod rows;
mod tables;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // A dot a case, as `cargo test --quiet` has it elsewhere; `-- --format pretty` names each.
    arguments.quiet |= arguments.format.is_none();
    let Some(golden) = tables::Golden::find() else {
        eprintln!("no golden data: set ICEFIELD_GOLDEN");
        std::process::exit(1);
    };
    let (tables, left_out) = golden.tables();
    let of_tables = tables.iter().flat_map(|table| plans::trials(table).into_iter().chain(metrics::trials(table)));
    let of_tables = of_tables.chain(tables.iter().flat_map(incremental::trials));
    let of_tables = of_tables.chain(tables.iter().flat_map(incremental::laws));
    let of_tables = of_tables.chain(tables.iter().flat_map(metadata_columns::trials));
    let of_tables = of_tables.chain(tables.iter().flat_map(rows::trials)).chain(metadata_tables::trials(&tables));
    let ignored = |name: &String| Trial::test(format!("tables::{name}"), || Ok(())).with_ignored_flag(true);
    let of_tables = of_tables.chain(left_out.iter().map(ignored));
    let trials = of_tables.chain(row_lineage::trials(golden.vectors("row_lineage.json"))).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let more_refused = refused::report();
    golden.clean();
    if more_refused {
        std::process::exit(101);
    }
    conclusion.exit();
}
