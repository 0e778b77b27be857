//! Seeded mutations of a corpus, for the ordinary tests of each crate: what a fuzzer does, without coverage.

use std::path::Path;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Takes any bytes; it may refuse them, it may not panic.
type Target = fn(&[u8]);

/// Mutations of each seed.
const MUTATIONS: u64 = 60;

/// Changes some bytes, cuts, repeats.
fn mutated(seed: &[u8], rng: &mut TestRng) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=rng.next_u32() % 4 {
        let at = rng.next_u32() as usize % data.len().max(1);
        match rng.next_u32() % 5 {
            _ if data.is_empty() => data.push(0),
            0 => data[at] ^= 1 << (rng.next_u32() % 8),
            1 => data[at] = [0, 1, 0x7f, 0x80, 0xff][rng.next_u32() as usize % 5],
            2 => data.truncate(at),
            3 => {
                let from = rng.next_u32() as usize % data.len();
                let piece = data[from..data.len().min(from + 16)].to_vec();
                data.splice(at..at, piece);
            }
            _ => {
                data.remove(at);
            }
        }
    }
    data
}

/// Runs every target over its corpus and mutations of it; fails where one panics, or has no corpus.
pub fn run(targets: &[(&str, Target)]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in targets {
        let mut seeds: Vec<_> =
            std::fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{name} has no corpus");
        for path in seeds {
            let seed = std::fs::read(&path).unwrap();
            target(&seed);
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
            for number in 0..MUTATIONS {
                let data = mutated(&seed, &mut rng);
                let outcome = std::panic::catch_unwind(|| target(&data));
                assert!(outcome.is_ok(), "{name}: mutation {number} of {}", path.display());
            }
        }
    }
}
