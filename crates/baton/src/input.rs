//! What commands read: payloads from the command line, a file or standard input.

use crate::args::PayloadArgs;
use crate::fault::Fault;
use baton_wire::Object;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;

/// The largest file that is read; the server has its own, smaller limits.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

pub fn payload(args: &PayloadArgs) -> Result<Object, Fault> {
    let text = match (&args.payload, &args.payload_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read(path)?,
        (None, None) => return Ok(Object::new()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Fault::usage("the payload must be a JSON object").hint("such as '{\"message\":\"hello\"}'")),
        Err(error) => Err(Fault::usage(format!("the payload is not JSON: {error}"))
            .hint("quote it for the shell: --payload '{\"message\":\"hello\"}'")),
    }
}

/// A whole file as text; `-` is standard input.
pub fn read(path: &Path) -> Result<String, Fault> {
    let cannot =
        |error: std::io::Error| Fault::new("file_unusable", format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let source: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(cannot)?)
    };
    let read = source.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if read as u64 > FILE_BYTES {
        let detail = format!("{} has more than {FILE_BYTES} bytes", path.display());
        return Err(Fault::new("file_unusable", detail));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_an_object_or_a_clear_no() {
        let inline = |text: &str| PayloadArgs { payload: Some(text.to_owned()), payload_file: None };
        assert_eq!(payload(&PayloadArgs { payload: None, payload_file: None }).unwrap().len(), 0);
        assert_eq!(payload(&inline(r#"{"a":1}"#)).unwrap()["a"], 1);
        for bad in ["", "[]", "1", "{a:1}", "{\"a\":1"] {
            assert!(payload(&inline(bad)).is_err(), "{bad}");
        }
        assert!(payload(&PayloadArgs { payload: None, payload_file: Some("/nowhere".into()) }).is_err());
    }
}
