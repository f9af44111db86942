//! Pieces of a log that are held back until they are worth writing.

/// What a failed call to the system is told as.
pub(super) type Code = std::ffi::c_int;

/// What pieces are written to.
pub(super) trait File {
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), Code>;
}

/// Every page in a log has one in front of it.
const HEADER: usize = 24;
/// Where a header tells how large the database is after the commit that its page completes; 0 if it completes none.
const COMMIT: std::ops::Range<usize> = 4..8;
/// More than this is not held back: longer calls gain little.
const HELD_MAX: usize = 64 * 1024;

/// Pieces that follow each other: headers and pages of a transaction that is not complete.
///
/// Pages come whole: SQLite takes them apart only for disks where a write may damage what stands beside it, which it is
/// built not to expect.
#[derive(Default)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// Where they begin; where the last piece ended, if there are none.
    at: u64,
    header: Option<Header>,
}

/// The last piece was one, and its page is to follow.
#[derive(Clone, Copy)]
struct Header {
    commits: bool,
}

impl Header {
    fn read(piece: &[u8]) -> Option<Self> {
        let commits = piece.get(COMMIT).filter(|_| piece.len() == HEADER)?.iter().any(|byte| *byte != 0);
        Some(Self { commits })
    }
}

impl Held {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Takes a piece: a header where the last piece ended, and the page behind it. Whatever else comes is written at once,
    /// behind what is held back.
    ///
    /// Where that fails SQLite gives up the whole transaction, and tells that it was not committed. So nothing of it may
    /// come into the file later.
    pub fn write(&mut self, piece: &[u8], at: u64, file: &mut impl File) -> Result<(), Code> {
        let written = self.take(piece, at, file);
        if written.is_err() {
            self.bytes.clear();
            self.header = None;
        }
        written
    }

    fn take(&mut self, piece: &[u8], at: u64, file: &mut impl File) -> Result<(), Code> {
        let before = self.header.take();
        let header = Header::read(piece);
        if header.is_some() && at == self.at {
            // Begun again from there, so what was held back is of a transaction that was given up.
            self.bytes.clear();
        }
        if at == self.end() && header.is_some() != before.is_some() {
            self.bytes.extend_from_slice(piece);
            self.header = header;
            let complete = before.is_some_and(|header| header.commits);
            return if complete || self.bytes.len() >= HELD_MAX { self.flush(file) } else { Ok(()) };
        }
        self.flush(file)?;
        file.write(piece, at)?;
        self.at = at + piece.len() as u64;
        Ok(())
    }

    /// Writes what is held back. If that fails it stays: the transaction may go on.
    pub fn flush(&mut self, file: &mut impl File) -> Result<(), Code> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        file.write(&self.bytes, self.at)?;
        self.at = self.end();
        self.bytes.clear();
        Ok(())
    }

    /// Whether some of these bytes are held back.
    pub fn holds(&self, at: u64, len: usize) -> bool {
        !self.bytes.is_empty() && at < self.end() && at + len as u64 > self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file in memory, and how often it was written to.
    #[derive(Default)]
    struct Paper {
        bytes: Vec<u8>,
        writes: usize,
        full: bool,
    }

    impl File for Paper {
        fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), Code> {
            if self.full {
                return Err(13);
            }
            let at = usize::try_from(at).unwrap();
            self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            self.writes += 1;
            Ok(())
        }
    }

    const PAGE: usize = 512;
    const FRAME: u64 = (HEADER + PAGE) as u64;

    fn header(commits: bool) -> [u8; HEADER] {
        let mut header = [7; HEADER];
        header[COMMIT].copy_from_slice(&u32::from(commits).to_be_bytes());
        header
    }

    fn frame(held: &mut Held, paper: &mut Paper, n: u64, fill: u8, commits: bool) -> Result<(), Code> {
        let at = 32 + n * FRAME;
        held.write(&header(commits), at, paper)?;
        held.write(&[fill; PAGE], at + HEADER as u64, paper)
    }

    #[test]
    fn a_commit_is_written_at_once_and_completely() {
        let (mut held, mut paper) = (Held::default(), Paper::default());
        held.write(&[1; 32], 0, &mut paper).unwrap();
        for n in 0..5 {
            frame(&mut held, &mut paper, n, 9, false).unwrap();
        }
        assert_eq!((paper.writes, paper.bytes.len()), (1, 32));
        frame(&mut held, &mut paper, 5, 9, true).unwrap();
        assert_eq!((paper.writes, paper.bytes.len() as u64), (2, 32 + 6 * FRAME));
        frame(&mut held, &mut paper, 6, 9, true).unwrap();
        assert_eq!(paper.writes, 3);
    }

    #[test]
    fn what_was_held_back_for_a_transaction_that_was_given_up_is_not_written() {
        let (mut held, mut paper) = (Held::default(), Paper::default());
        held.write(&[1; 32], 0, &mut paper).unwrap();
        for n in 0..3 {
            frame(&mut held, &mut paper, n, 6, false).unwrap();
        }
        frame(&mut held, &mut paper, 0, 8, true).unwrap();
        assert_eq!(paper.bytes.len() as u64, 32 + FRAME);
    }

    #[test]
    fn a_commit_that_failed_never_comes_into_the_file() {
        let (mut held, mut paper) = (Held::default(), Paper::default());
        held.write(&[1; 32], 0, &mut paper).unwrap();
        frame(&mut held, &mut paper, 0, 3, false).unwrap();
        paper.full = true;
        assert_eq!(frame(&mut held, &mut paper, 1, 4, true), Err(13));
        paper.full = false;
        held.flush(&mut paper).unwrap();
        assert_eq!(paper.bytes.len(), 32);
        // Tried again from its beginning.
        frame(&mut held, &mut paper, 0, 5, true).unwrap();
        assert_eq!(paper.bytes.len() as u64, 32 + FRAME);
        assert_eq!(paper.bytes[32 + HEADER], 5);
    }

    #[test]
    fn what_somebody_else_could_not_write_is_still_there_for_the_commit() {
        let (mut held, mut paper) = (Held::default(), Paper::default());
        held.write(&[1; 32], 0, &mut paper).unwrap();
        frame(&mut held, &mut paper, 0, 3, false).unwrap();
        paper.full = true;
        // Somebody reads there.
        assert_eq!(held.flush(&mut paper), Err(13));
        paper.full = false;
        frame(&mut held, &mut paper, 1, 4, true).unwrap();
        assert_eq!(paper.bytes.len() as u64, 32 + 2 * FRAME);
    }

    #[test]
    fn no_more_is_held_back_than_that() {
        let (mut held, mut paper) = (Held::default(), Paper::default());
        held.write(&[1; 32], 0, &mut paper).unwrap();
        for n in 0..1_000 {
            frame(&mut held, &mut paper, n, 1, false).unwrap();
            assert!(held.bytes.len() < HELD_MAX + PAGE);
        }
        assert!((8..10).contains(&paper.writes), "{}", paper.writes);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Frame { skip_back: u64, fill: u8, commits: bool },
        Page { back: u64, fill: u8 },
        Header { back: u64, commits: bool },
        Odd { at: u64, len: usize },
        Flush,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (prop_oneof![9 => Just(0), 1 => 0..6_u64], any::<u8>(), prop::bool::weighted(0.2))
                .prop_map(|(skip_back, fill, commits)| Step::Frame { skip_back, fill, commits }),
            1 => (1..6_u64, any::<u8>()).prop_map(|(back, fill)| Step::Page { back, fill }),
            1 => (1..6_u64, any::<bool>()).prop_map(|(back, commits)| Step::Header { back, commits }),
            1 => (0..9_000_u64, 1..700_usize).prop_map(|(at, len)| Step::Odd { at, len }),
            1 => Just(Step::Flush),
        ]
    }

    proptest! {
        /// Whatever comes, in whatever order: what was not given up is on paper as if nothing had ever been held back,
        /// and whatever a reader asks for that is not held back too.
        #[test]
        fn in_the_end_it_is_as_if_nothing_had_been_held_back(steps in prop::collection::vec(step(), 1..60)) {
            let (mut held, mut paper, mut plain) = (Held::default(), Paper::default(), Paper::default());
            let mut next = 0;
            for step in steps {
                let pieces: Vec<(Vec<u8>, u64)> = match step {
                    Step::Frame { skip_back, fill, commits } => {
                        next -= skip_back.min(next);
                        let at = 32 + next * FRAME;
                        next += 1;
                        vec![(header(commits).to_vec(), at), (vec![fill; PAGE], at + HEADER as u64)]
                    }
                    Step::Page { back, fill } => {
                        vec![(vec![fill; PAGE], 32 + next.saturating_sub(back) * FRAME + HEADER as u64)]
                    }
                    Step::Header { back, commits } => {
                        vec![(header(commits).to_vec(), 32 + next.saturating_sub(back) * FRAME)]
                    }
                    Step::Odd { at, len } => vec![(vec![2; len], at)],
                    Step::Flush => {
                        held.flush(&mut paper).unwrap();
                        Vec::new()
                    }
                };
                for (piece, at) in pieces {
                    let restarts = Header::read(&piece).is_some() && at == held.at && !held.bytes.is_empty();
                    if restarts {
                        // Given up: nobody reads what stood there.
                        let from = usize::try_from(at).unwrap();
                        plain.bytes.truncate(from.max(paper.bytes.len()));
                        let until = plain.bytes.len();
                        if from < until {
                            plain.bytes[from..until].copy_from_slice(&paper.bytes[from..until]);
                        }
                    }
                    held.write(&piece, at, &mut paper).unwrap();
                    plain.write(&piece, at).unwrap();
                }
                for (n, byte) in plain.bytes.iter().enumerate().filter(|(n, _)| !held.holds(*n as u64, 1)) {
                    prop_assert_eq!(paper.bytes.get(n), Some(byte), "at {}", n);
                }
            }
            held.flush(&mut paper).unwrap();
            prop_assert_eq!(paper.bytes, plain.bytes);
        }
    }
}
