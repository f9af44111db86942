//! Between SQLite and its own way to files: everything goes through as it is, but for what is written to a log.
//!
//! SQLite knows a way to files as a table of functions (`sqlite3_vfs`), and an open file as memory that begins with a
//! pointer to another (`sqlite3_io_methods`). Ours is a copy of the first, but for opening; and an open log is [`Log`] with
//! SQLite's own file behind it in the same memory.

#![allow(unsafe_code, reason = "SQLite is asked to go through here in C, and its own functions are called in turn")]

use super::held::{Code, File, Held};
use rusqlite::ffi::{
    SQLITE_ERROR, SQLITE_MISUSE, SQLITE_OK, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_filename, sqlite3_int64,
    sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// Files of SQLite's are aligned to this, as all its memory is.
const ALIGNED: usize = 8;
const _: () = assert!(align_of::<Log>() <= ALIGNED && size_of::<Log>().is_multiple_of(ALIGNED));

const NAME: &CStr = c"baton-log";

/// SQLite's own way to files. It is there as long as the process.
struct Own(*mut sqlite3_vfs);

// SAFETY: SQLite calls it from every thread itself; here it is only read.
unsafe impl Send for Own {}
// SAFETY: as above.
unsafe impl Sync for Own {}

static OWN: OnceLock<Result<Own, Code>> = OnceLock::new();

/// The name under which SQLite knows this way, from the first time that somebody asks.
pub(super) fn name() -> rusqlite::Result<&'static CStr> {
    match OWN.get_or_init(register) {
        Ok(_) => Ok(NAME),
        Err(code) => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(*code), None)),
    }
}

fn register() -> Result<Own, Code> {
    // SAFETY: a null name asks for the one that is used by default; the answer is null or lives as long as the process.
    let own = unsafe { sqlite3_vfs_find(ptr::null()) };
    // SAFETY: see above; nobody changes it.
    let Some(known) = (unsafe { own.as_ref() }) else { return Err(SQLITE_ERROR) };
    let room = c_int::try_from(size_of::<Log>()).map_err(|_| SQLITE_ERROR)?;
    let ours = sqlite3_vfs {
        szOsFile: known.szOsFile + room,
        pNext: ptr::null_mut(),
        zName: NAME.as_ptr(),
        xOpen: Some(open),
        ..*known
    };
    // SAFETY: it is complete and is never freed. The functions that it shares with SQLite's own are given ours instead of
    // theirs, and look at nothing in it but what was copied.
    let code = unsafe { sqlite3_vfs_register(Box::leak(Box::new(ours)), 0) };
    if code == SQLITE_OK { Ok(Own(own)) } else { Err(code) }
}

/// An open log, in memory of SQLite's. Behind it in the same memory is the file as SQLite has it.
#[repr(C)]
struct Log {
    /// What makes it a file for SQLite. Must be first.
    base: sqlite3_file,
    held: Held,
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Neither mapped into memory nor shared: that is the business of the database's file.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(is_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// SQLite's own files take less than 128 KB in one call.
const WRITE_MAX: usize = 127 * 1024;

/// SQLite's own file behind a log.
struct Real(*mut sqlite3_file);

/// Calls a function of SQLite's own file; `SQLITE_MISUSE` if it has none.
macro_rules! own {
    ($real:expr, $method:ident $(, $arg:expr)*) => {{
        let real: *mut sqlite3_file = $real;
        // SAFETY: SQLite opened it, so it begins with a pointer to its functions, and closes it only in `close`.
        match unsafe { (*real).pMethods.as_ref() }.and_then(|methods| methods.$method) {
            // SAFETY: its own function with its own file and what SQLite gave us for it.
            Some(method) => unsafe { method(real $(, $arg)*) },
            None => SQLITE_MISUSE,
        }
    }};
}

fn told(code: c_int) -> Result<(), Code> {
    if code == SQLITE_OK { Ok(()) } else { Err(code) }
}

fn code(result: Result<(), Code>) -> c_int {
    result.err().unwrap_or(SQLITE_OK)
}

impl File for Real {
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), Code> {
        for (n, piece) in bytes.chunks(WRITE_MAX).enumerate() {
            let (at, len) = (at + (n * WRITE_MAX) as u64, c_int::try_from(piece.len()).unwrap_or(0));
            told(own!(self.0, xWrite, piece.as_ptr().cast::<c_void>(), len, at.cast_signed()))?;
        }
        Ok(())
    }
}

/// The log that SQLite gave us, and its own file behind it.
///
/// # Safety
/// `file` was opened as a log by [`open`] and is not closed, and nobody else uses it meanwhile. SQLite uses the files of a
/// connection from one thread at a time.
unsafe fn parts<'a>(file: *mut sqlite3_file) -> (&'a mut Log, Real) {
    let log = file.cast::<Log>();
    // SAFETY: `open` wrote a log there, and asked for memory for both.
    unsafe { (&mut *log, Real(log.add(1).cast::<sqlite3_file>())) }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some(Ok(Own(own))) = OWN.get() else { return SQLITE_MISUSE };
    // SAFETY: see `register`.
    let Some(opens) = (unsafe { (**own).xOpen }) else { return SQLITE_MISUSE };
    if flags & SQLITE_OPEN_WAL == 0 {
        // SAFETY: what SQLite gave us for its own function; there is memory for its file, and more.
        return unsafe { opens(*own, name, file, flags, out) };
    }
    let log = file.cast::<Log>();
    // SAFETY: SQLite gives as much memory as `register` asked for, aligned to eight bytes, which is all that both need.
    let real = unsafe { log.add(1).cast::<sqlite3_file>() };
    // SAFETY: as above. A file that could not be opened has no functions, and SQLite closes only one that has some.
    unsafe {
        (*file).pMethods = ptr::null();
        let code = opens(*own, name, real, flags, out);
        if code == SQLITE_OK {
            log.write(Log { base: sqlite3_file { pMethods: &raw const METHODS }, held: Held::default() });
        }
        code
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: called by SQLite with a log, for the last time.
    let (log, real) = unsafe { parts(file) };
    // What is still held back was never committed.
    log.held = Held::default();
    let code = own!(real.0, xClose);
    log.base.pMethods = ptr::null();
    code
}

unsafe extern "C" fn read(file: *mut sqlite3_file, into: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: called by SQLite with a log.
    let (log, mut real) = unsafe { parts(file) };
    let wanted = (at.cast_unsigned(), usize::try_from(len).unwrap_or(0));
    if log.held.holds(wanted.0, wanted.1)
        && let Err(code) = log.held.flush(&mut real)
    {
        return code;
    }
    own!(real.0, xRead, into, len, at)
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, len: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: called by SQLite with a log, and with so many bytes.
    let (log, mut real) = unsafe { parts(file) };
    // SAFETY: as above.
    let piece = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(len).unwrap_or(0)) };
    code(log.held.write(piece, at.cast_unsigned(), &mut real))
}

/// First what is held back, then what was asked for.
macro_rules! after_flush {
    ($file:ident, $method:ident $(, $arg:expr)*) => {{
        // SAFETY: called by SQLite with a log.
        let (log, mut real) = unsafe { parts($file) };
        match log.held.flush(&mut real) {
            Ok(()) => own!(real.0, $method $(, $arg)*),
            Err(code) => code,
        }
    }};
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    after_flush!(file, xTruncate, len)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    after_flush!(file, xSync, flags)
}

unsafe extern "C" fn size(file: *mut sqlite3_file, len: *mut sqlite3_int64) -> c_int {
    after_flush!(file, xFileSize, len)
}

unsafe extern "C" fn control(file: *mut sqlite3_file, what: c_int, with: *mut c_void) -> c_int {
    after_flush!(file, xFileControl, what, with)
}

/// What has nothing to do with what is held back.
macro_rules! passed_on {
    ($file:ident, $method:ident $(, $arg:expr)*) => {{
        // SAFETY: called by SQLite with a log.
        let (_, real) = unsafe { parts($file) };
        own!(real.0, $method $(, $arg)*)
    }};
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    passed_on!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    passed_on!(file, xUnlock, level)
}

unsafe extern "C" fn is_reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    passed_on!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn sector(file: *mut sqlite3_file) -> c_int {
    passed_on!(file, xSectorSize)
}

unsafe extern "C" fn characteristics(file: *mut sqlite3_file) -> c_int {
    passed_on!(file, xDeviceCharacteristics)
}
