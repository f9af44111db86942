use super::*;
use baton_core::Micros;
use baton_core::canon::{Digest, Json};
use baton_core::event::Recorded;
use serde_json::json;
use std::sync::atomic::AtomicU64;
use uuid::Uuid;

/// A history of which every `step`th position is ours; the others are another org's.
struct Book {
    mark: AtomicU64,
    step: u64,
    reads: AtomicUsize,
}

impl Book {
    fn new(mark: u64, step: u64) -> Self {
        Self { mark: AtomicU64::new(mark), step, reads: AtomicUsize::new(0) }
    }

    fn write(&self, positions: u64) {
        self.mark.fetch_add(positions, Ordering::Relaxed);
    }

    fn ours(&self) -> Vec<u64> {
        (1..=self.mark.load(Ordering::Relaxed)).filter(|pos| pos % self.step == 0).collect()
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

impl History for Book {
    fn mark(&self) -> Option<Cursor> {
        Some(at(self.mark.load(Ordering::Relaxed)))
    }

    async fn read(&self, after: Cursor) -> Result<Vec<EventRow>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        // Others come while this one waits.
        tokio::task::yield_now().await;
        let more = self.ours().into_iter().filter(|pos| at(*pos) > after);
        Ok(more.take(RECENT_BATCH).map(row).collect())
    }
}

fn at(pos: u64) -> Cursor {
    format!("c1{pos:016x}").parse().unwrap()
}

fn row(pos: u64) -> EventRow {
    let event = Recorded {
        org: OrgId::default(),
        subject: Uuid::from_u128(u128::from(pos)),
        n: 1,
        at: Micros(0),
        kind: "job.queued".to_owned(),
        actor: "test".to_owned(),
        data: Json::of(&json!({})),
        hash: Digest::ZERO,
    };
    EventRow { cursor: at(pos), event }
}

/// Somebody who reads on from a place, and what they have seen.
struct Reader {
    after: Cursor,
    seen: Vec<Cursor>,
    tail: Arc<Tail>,
}

impl Reader {
    fn new(recent: &Recent, after: u64) -> Self {
        let tail = recent.tail(&OrgId::default(), at(after));
        Self { after: at(after), seen: Vec::new(), tail }
    }

    /// Reads until there is nothing more.
    async fn catch_up(&mut self, book: &Book) {
        loop {
            let more = self.tail.after(self.after, book).await.unwrap();
            let Some(last) = more.last() else { return };
            self.after = last.cursor;
            self.seen.extend(more.iter().map(|told| told.cursor));
        }
    }

    fn check(&self, book: &Book, from: u64) {
        let expected: Vec<_> = book.ours().into_iter().filter(|pos| *pos > from).map(at).collect();
        assert_eq!(self.seen, expected);
    }
}

#[tokio::test]
async fn many_who_listen_cost_one_read_and_silence_costs_one_too() {
    let (book, recent) = (Book::new(100, 1), Recent::new(1 << 20));
    let mut readers: Vec<_> = (0..50).map(|_| Reader::new(&recent, 100)).collect();
    for round in 0..20 {
        book.write(3);
        for reader in &mut readers {
            reader.catch_up(&book).await;
        }
        assert_eq!(book.reads(), 1, "round {round}");
    }
    readers.iter().for_each(|reader| reader.check(&book, 100));
    // Another org's commits move the mark too.
    let (book, recent) = (Book::new(123, 1_000), Recent::new(1 << 20));
    let mut readers: Vec<_> = (0..50).map(|_| Reader::new(&recent, 123)).collect();
    book.write(5);
    for reader in &mut readers {
        reader.catch_up(&book).await;
    }
    assert_eq!(book.reads(), 1);
}

#[tokio::test]
async fn who_comes_while_somebody_reads_waits_for_that() {
    let (book, recent) = (Arc::new(Book::new(10, 1)), Recent::new(1 << 20));
    let readers: Vec<_> = (0..50).map(|_| Reader::new(&recent, 0)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for mut reader in readers {
        let book = book.clone();
        tasks.spawn(async move {
            reader.catch_up(&book).await;
            reader
        });
    }
    while let Some(reader) = tasks.join_next().await {
        reader.unwrap().check(&book, 0);
    }
    assert_eq!(book.reads(), 1);
}

#[tokio::test]
async fn who_is_behind_the_ring_reads_alone_and_finds_its_edge_without_a_gap() {
    // Room for very few events, so that the edge is crossed again and again.
    for room in [0, 600, 2_000, 10_000] {
        let (book, recent) = (Book::new(40, 3), Recent::new(room));
        let mut first = Reader::new(&recent, 40);
        let mut late: Vec<_> = [0, 7, 39, 40, 41, 60].map(|after| (after, Reader::new(&recent, after))).into();
        for _ in 0..10 {
            book.write(7);
            first.catch_up(&book).await;
            // Each reads every other time, so some fall behind.
            for (n, (_, reader)) in late.iter_mut().enumerate() {
                if n % 2 == 0 {
                    reader.catch_up(&book).await;
                }
            }
            late.rotate_left(1);
        }
        for (after, reader) in &mut late {
            reader.catch_up(&book).await;
            reader.check(&book, *after);
        }
        first.check(&book, 40);
    }
}

#[tokio::test]
async fn a_tail_that_lags_far_behind_begins_anew_where_one_listens_now() {
    let (book, recent) = (Book::new(0, 1), Recent::new(1 << 20));
    let mut stuck = Reader::new(&recent, 0);
    book.write(10 * RECENT_BATCH as u64);
    let now = 10 * RECENT_BATCH as u64 - 2;
    let mut live = Reader::new(&recent, now);
    live.catch_up(&book).await;
    live.check(&book, now);
    assert_eq!(book.reads(), 2, "one look, then where it is");
    stuck.catch_up(&book).await;
    stuck.check(&book, 0);
}

#[tokio::test]
async fn a_cursor_that_this_node_has_not_come_to_yet_waits_for_it() {
    let (book, recent) = (Book::new(10, 1), Recent::new(1 << 20));
    let mut ahead = Reader::new(&recent, 15);
    ahead.catch_up(&book).await;
    assert!(ahead.seen.is_empty() && book.reads() == 0);
    book.write(10);
    ahead.catch_up(&book).await;
    ahead.check(&book, 15);
}

#[tokio::test]
async fn what_is_kept_is_divided_and_goes_with_the_last_listener() {
    let recent = Recent::new(1 << 20);
    let orgs: [OrgId; 4] = ["a", "b", "c", "d"].map(|name| name.parse().unwrap());
    let tails = orgs.each_ref().map(|org| recent.tail(org, at(0)));
    assert_eq!(recent.count.load(Ordering::Relaxed), 4);
    assert!(Arc::ptr_eq(&tails[0], &recent.tail(&orgs[0], at(9))), "one for all of an org");
    drop(tails);
    assert_eq!(recent.count.load(Ordering::Relaxed), 0);
    let _again = recent.tail(&orgs[0], at(0));
    assert_eq!(recent.tails.lock().unwrap().len(), 1, "nothing is left of the others");
    let (book, recent) = (Book::new(100, 1), Recent::new(8_000));
    let tails = orgs.each_ref().map(|org| recent.tail(org, at(0)));
    tails[0].after(at(0), &book).await.unwrap();
    let ring = tails[0].ring.lock().await;
    assert!(ring.bytes <= 2_000 && !ring.told.is_empty(), "{}", ring.bytes);
}
