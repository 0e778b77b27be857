//! Compares planning and reading with the golden tables, one test per case.
//!
//! The folder is `ICEFIELD_GOLDEN`, or else the copy in `tests/data/golden`, or else `../shared/golden`. The code does
//! not depend on the contents of a set; missing parts are skipped, and tables without files are ignored. Tables are
//! unpacked to a scratch folder and relocated there, whatever location their metadata has.

// Clippy does not recognize a test without the harness, and a malformed set may end it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrow_file;
mod encoding;
mod fsck;
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
    // Print a dot per case, like `cargo test --quiet`; `-- --format pretty` names each case.
    arguments.quiet |= arguments.format.is_none();
    let Some(golden) = tables::Golden::find() else {
        eprintln!("no golden data: set ICEFIELD_GOLDEN");
        std::process::exit(1);
    };
    let (tables, left_out) = golden.tables();
    let of_tables = tables.iter().flat_map(|table| plans::trials(table).into_iter().chain(metrics::trials(table)));
    let of_tables = of_tables.chain(tables.iter().flat_map(incremental::trials));
    let of_tables =
        of_tables.chain(tables.iter().flat_map(incremental::laws)).chain(tables.iter().flat_map(fsck::trials));
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
