//! iceberg-rust behind a pipe: questions and answers are JSON, one a line.

use std::io::BufRead;
use std::time::Instant;

use futures::TryStreamExt;
use iceberg::expr::{Predicate, Reference};
use iceberg::io::FileIO;
use iceberg::spec::Datum;
use iceberg::table::StaticTable;
use iceberg::TableIdent;
use serde_json::{json, Value};

type Failed = Box<dyn std::error::Error>;

/// `{"day": "2020-02-01"}`, `{"range": [low, high]}`, `{"ids": [..]}` or null.
fn predicate(filter: &Value) -> Result<Option<Predicate>, Failed> {
    if let Some(day) = filter["day"].as_str() {
        let at = |clock: &str| Datum::timestamp_from_str(format!("{day}T{clock}"));
        let ts = || Reference::new("ts");
        return Ok(Some(
            ts().greater_than_or_equal_to(at("00:00:00.000000")?).and(ts().less_than_or_equal_to(at("23:59:59.999999")?)),
        ));
    }
    if let Some(range) = filter["range"].as_array() {
        let number = |at: usize| Datum::double(range[at].as_f64().unwrap_or_default());
        let price = || Reference::new("price");
        return Ok(Some(price().greater_than_or_equal_to(number(0)).and(price().less_than(number(1)))));
    }
    if let Some(ids) = filter["ids"].as_array() {
        let ids = ids.iter().filter_map(Value::as_i64).map(Datum::long);
        return Ok(Some(Reference::new("id").is_in(ids)));
    }
    Ok(None)
}

async fn answer(asked: &Value) -> Result<Value, Failed> {
    let location = asked["table"].as_str().unwrap_or_default();
    let name = TableIdent::from_strs(["bench", "plan"])?;
    let table = StaticTable::from_metadata_file(location, name, FileIO::new_with_fs()).await?.into_table();
    let start = Instant::now();
    let mut scan = table.scan();
    if let Some(filter) = predicate(&asked["filter"])? {
        scan = scan.with_filter(filter);
    }
    let mut tasks = scan.build()?.plan_files().await?;
    let (mut files, mut links) = (0usize, 0usize);
    while let Some(task) = tasks.try_next().await? {
        files += 1;
        links += task.deletes.len();
    }
    Ok(json!({"seconds": start.elapsed().as_secs_f64(), "files": files, "links": links}))
}

fn main() -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    for line in std::io::stdin().lock().lines() {
        let asked = serde_json::from_str(&line?)?;
        let answer = runtime.block_on(answer(&asked)).unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{answer}");
    }
    Ok(())
}
