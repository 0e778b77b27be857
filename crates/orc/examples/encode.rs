//! Writes the rows of an ORC file again and prints how long that took: `encode FILE [CODEC] [--rounds N] [--batch N]`.

use std::time::Instant;

use bytes::Bytes;
use icefield_orc::proto::CompressionKind;
use icefield_orc::{ReadOptions, Reader, Result, Writer, WriterOptions};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let Some(path) = arguments.first() else { return Ok(()) };
    let reader = Reader::open(Bytes::from(std::fs::read(path)?))?;
    let options = ReadOptions { batch_size: number("--batch", 8192), ..ReadOptions::default() };
    let schema = reader.schema(&options)?;
    let batches = reader.batches(options)?.collect::<Result<Vec<_>>>()?;
    let wanted = arguments.get(1).map_or("ZSTD", String::as_str);
    let compression = (0..7).map(CompressionKind::from_number).find(|kind| kind.name() == wanted).unwrap_or_default();
    for _ in 0..number("--rounds", 5) {
        let start = Instant::now();
        let options = WriterOptions { compression, ..WriterOptions::default() };
        let mut writer = Writer::try_new(Vec::new(), &schema, options)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        let (_, file) = writer.finish()?;
        eprintln!("{} rows, {} bytes in {:.1} ms", file.rows, file.length, start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
