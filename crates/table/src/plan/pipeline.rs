//! Processes manifests and manifest lists concurrently and returns the results in order, with bounded buffering.
//!
//! Local files are read where they are decoded. Remote files are fetched by separate threads, many at a time, while
//! the processor pool decodes what has arrived.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::error::{Error, Result};
use crate::{interrupt, runtime};

/// Maximum concurrent fetches.
const FETCHES: usize = 32;
/// Maximum bytes of files in flight, unless a single one is larger.
const AHEAD_BYTES: i64 = 64 << 20;
/// No new work starts once finished results that wait for their turn take this many bytes.
const WAITING_BYTES: usize = 256 << 20;

/// Work on a file: fetch its bytes, then process them.
pub trait Work: Send + Sync + 'static {
    /// Identifies the file.
    type Item: Send + Sync + 'static;
    /// The fetched data.
    type Fetched: Send + 'static;
    /// The result.
    type Done: Send + 'static;

    /// Bytes of the file, as far as known.
    fn bytes(item: &Self::Item) -> i64;
    /// Waits for the storage.
    fn fetch(&self, item: &Self::Item) -> Result<Self::Fetched>;
    /// Uses a processor.
    fn run(&self, item: &Self::Item, fetched: Self::Fetched) -> Result<Self::Done>;
    /// Bytes of the result in memory.
    fn memory(done: &Self::Done) -> usize;
}

/// The results in the order of the items, computed on demand and a little ahead.
pub struct Ordered<W: Work> {
    work: Arc<W>,
    items: Arc<[W::Item]>,
    remote: bool,
    sender: Sender<(usize, Result<W::Done>)>,
    receiver: Receiver<(usize, Result<W::Done>)>,
    waiting: BTreeMap<usize, Result<W::Done>>,
    started: usize,
    next: usize,
    ahead_bytes: i64,
    waiting_bytes: usize,
}

impl<W: Work> std::fmt::Debug for Ordered<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ordered").field("next", &self.next).field("of", &self.items.len()).finish_non_exhaustive()
    }
}

impl<W: Work> Ordered<W> {
    /// Starts nothing until the first result is requested.
    pub fn new(work: Arc<W>, items: Vec<W::Item>, remote: bool) -> Self {
        let (sender, receiver) = channel();
        Self {
            work,
            items: items.into(),
            remote,
            sender,
            receiver,
            waiting: BTreeMap::new(),
            started: 0,
            next: 0,
            ahead_bytes: 0,
            waiting_bytes: 0,
        }
    }

    fn length(&self, place: usize) -> i64 {
        self.items.get(place).map_or(0, |item| W::bytes(item).max(0))
    }

    /// Whether to run on the calling thread: a single file needs no other, and a thread of the pool must not wait for
    /// the pool.
    fn is_alone(&self) -> Result<bool> {
        Ok(self.items.len() == 1 || runtime::pool()?.current_thread_index().is_some())
    }

    fn start_some(&mut self) -> Result<()> {
        let most = if self.remote { FETCHES } else { 2 * runtime::threads() };
        while self.started < self.items.len() && self.started - self.next < most {
            let length = self.length(self.started);
            let full = self.waiting_bytes > WAITING_BYTES || self.ahead_bytes.saturating_add(length) > AHEAD_BYTES;
            if self.started > self.next && full {
                break;
            }
            self.ahead_bytes = self.ahead_bytes.saturating_add(length);
            self.start(self.started)?;
            self.started += 1;
        }
        Ok(())
    }

    fn start(&self, place: usize) -> Result<()> {
        let (work, items, sender) = (self.work.clone(), self.items.clone(), self.sender.clone());
        let pool = runtime::pool()?;
        // If the receiver is gone, the result is not needed.
        if self.remote {
            return runtime::in_background(move || match guarded(|| work.fetch(found(&items, place)?)) {
                Err(error) => drop(sender.send((place, Err(error)))),
                Ok(fetched) => pool.spawn(move || {
                    let done = guarded(|| work.run(found(&items, place)?, fetched));
                    drop(sender.send((place, done)));
                }),
            });
        }
        pool.spawn(move || {
            let done = guarded(|| both(&*work, found(&items, place)?));
            drop(sender.send((place, done)));
        });
        Ok(())
    }

    fn wait(&mut self, place: usize, done: Result<W::Done>) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(memory::<W>(&done));
        self.waiting.insert(place, done);
    }

    fn take_next(&mut self) -> Result<W::Done> {
        let place = self.next;
        interrupt::check()?;
        if self.is_alone()? {
            self.next += 1;
            return both(&*self.work, found(&self.items, place)?);
        }
        loop {
            self.start_some()?;
            if let Some(done) = self.waiting.remove(&place) {
                self.next += 1;
                self.waiting_bytes = self.waiting_bytes.saturating_sub(memory::<W>(&done));
                self.ahead_bytes = self.ahead_bytes.saturating_sub(self.length(place));
                self.start_some()?;
                return done;
            }
            let (place, done) =
                interrupt::receive(&self.receiver)?.ok_or_else(|| Error::Internal("no thread works".to_owned()))?;
            self.wait(place, done);
            while let Ok((place, done)) = self.receiver.try_recv() {
                self.wait(place, done);
            }
        }
    }
}

impl<W: Work> Iterator for Ordered<W> {
    type Item = Result<W::Done>;

    /// Nothing follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.items.len() {
            return None;
        }
        let done = self.take_next();
        if done.is_err() {
            self.next = usize::MAX;
        }
        Some(done)
    }
}

fn found<T>(items: &[T], place: usize) -> Result<&T> {
    items.get(place).ok_or_else(|| Error::Internal("a manifest without a place".to_owned()))
}

fn both<W: Work>(work: &W, item: &W::Item) -> Result<W::Done> {
    work.run(item, work.fetch(item)?)
}

fn memory<W: Work>(done: &Result<W::Done>) -> usize {
    done.as_ref().map_or(0, W::memory)
}

/// A panic in a thread of the pool fails the plan, not the process.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::Internal("a thread that read a manifest panicked".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Sleeps in `fetch`, counts concurrent calls, and fails or panics at one item.
    #[derive(Default)]
    struct Sleepy {
        now: AtomicUsize,
        most: AtomicUsize,
        bad: Option<(i64, bool)>,
        begun: AtomicUsize,
        /// The first result comes last.
        late: bool,
    }

    /// A number and a length.
    type Numbered = (i64, i64);

    impl Work for Sleepy {
        type Item = Numbered;
        type Fetched = i64;
        type Done = i64;

        fn bytes((_, length): &Numbered) -> i64 {
            *length
        }

        fn fetch(&self, (number, _): &Numbered) -> Result<i64> {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            let late = self.late && *number == 0;
            let pause = if late { 300 } else { 20 - number.unsigned_abs() % 20 };
            std::thread::sleep(Duration::from_millis(pause));
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(*number)
        }

        fn run(&self, _: &Numbered, number: i64) -> Result<i64> {
            match self.bad {
                Some((bad, true)) if bad == number => panic!("meant"),
                Some((bad, false)) if bad == number => Err(Error::invalid("meant")),
                _ => Ok(number),
            }
        }

        /// From the thousandth manifest on they are large.
        fn memory(number: &i64) -> usize {
            if *number < 1000 { 8 } else { WAITING_BYTES }
        }
    }

    fn items(count: i64, length: i64) -> Vec<Numbered> {
        (0..count).map(|number| (number, length)).collect()
    }

    #[test]
    fn results_come_in_order_and_fetches_overlap() {
        let work = Arc::new(Sleepy::default());
        let all: Vec<i64> = Ordered::new(work.clone(), items(100, 1), true).map(Result::unwrap).collect();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        let most = work.most.load(Ordering::SeqCst);
        assert!((2..=FETCHES).contains(&most), "{most} at a time");
    }

    #[test]
    fn large_files_come_one_at_a_time() {
        let work = Arc::new(Sleepy::default());
        let all = Ordered::new(work.clone(), items(10, AHEAD_BYTES), true);
        assert_eq!(all.filter_map(Result::ok).count(), 10);
        assert_eq!(work.most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn nothing_is_done_far_ahead_of_who_asks() {
        let work = Arc::new(Sleepy::default());
        let mut all = Ordered::new(work.clone(), items(1000, 1), true);
        assert_eq!(all.next().unwrap().unwrap(), 0);
        std::thread::sleep(Duration::from_millis(100));
        assert!(work.begun.load(Ordering::SeqCst) <= 1 + FETCHES);
    }

    #[test]
    fn nothing_is_begun_while_large_results_wait() {
        let begun = |from: i64| {
            let work = Arc::new(Sleepy { late: true, ..Sleepy::default() });
            let mut all = items(1, 1);
            all.extend(items(from + 200, 1).split_off(from as usize));
            assert!(Ordered::new(work.clone(), all, true).next().is_some());
            std::thread::sleep(Duration::from_millis(100));
            work.begun.load(Ordering::SeqCst)
        };
        assert_eq!(begun(1), 1 + FETCHES);
        assert_eq!(begun(1000), FETCHES);
    }

    #[test]
    fn errors_and_panics_end_it() {
        for remote in [false, true] {
            for panics in [false, true] {
                let work = Arc::new(Sleepy { bad: Some((5, panics)), ..Sleepy::default() });
                let mut all = Ordered::new(work, items(20, 1), remote);
                assert_eq!(all.by_ref().take(5).filter_map(Result::ok).count(), 5);
                assert!(all.next().unwrap().is_err());
                assert!(all.next().is_none());
            }
        }
    }

    #[test]
    fn a_thread_of_the_pool_works_alone() {
        let all = || Ordered::new(Arc::new(Sleepy::default()), items(8, 1), false).filter_map(Result::ok).count();
        assert_eq!(runtime::pool().unwrap().install(all), 8);
    }
}
