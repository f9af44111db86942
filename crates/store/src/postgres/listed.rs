//! Many rows as one parameter: a list of records of a named type.
//!
//! The server takes a list of records apart for a fraction of what as many lists as there are columns cost it. The types
//! are made by the migrations; fields are said in their order, and the server refuses any other.

use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// Bytes that a field's type and length take.
const FIELD_HEAD: usize = 8;
/// What the length of a field says if there is nothing in it.
const NOTHING: i32 = -1;

/// Rows, as they are sent.
#[derive(Debug, Default)]
pub(super) struct Listed {
    rows: i32,
    bytes: Vec<u8>,
}

impl Listed {
    pub fn of<R>(rows: &[R], fields: impl Fn(&R, &mut Record<'_>)) -> Self {
        let mut listed = Self::default();
        for row in rows {
            // Its length and the number of its fields are known behind it.
            let from = listed.bytes.len();
            listed.bytes.extend_from_slice(&[0; FIELD_HEAD]);
            let mut record = Record { bytes: &mut listed.bytes, fields: 0 };
            fields(row, &mut record);
            let count = record.fields;
            let length = size(listed.bytes.len() - from - size_of::<i32>());
            listed.bytes[from..][..4].copy_from_slice(&length.to_be_bytes());
            listed.bytes[from + 4..][..4].copy_from_slice(&count.to_be_bytes());
            listed.rows += 1;
        }
        listed
    }
}

/// More than the protocol can say is refused by the server as nonsense; commands are bounded far below it.
fn size(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

impl ToSql for Listed {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Kind::Array(record) = ty.kind() else { return Err("not a list of records".into()) };
        // One dimension that begins at 1, and no row is missing.
        for word in [1, 0, record.oid().cast_signed(), self.rows, 1] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.bytes);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Array(record) if matches!(record.kind(), Kind::Composite(_)))
    }

    to_sql_checked!();
}

/// One row that is being said.
pub(super) struct Record<'b> {
    bytes: &'b mut Vec<u8>,
    fields: i32,
}

impl Record<'_> {
    pub fn put(&mut self, field: impl Field) -> &mut Self {
        self.fields += 1;
        field.write(self.bytes);
        self
    }
}

/// What a field can hold.
pub(super) trait Field {
    const TYPE: Type;
    fn write(self, out: &mut Vec<u8>);
}

fn write<T: Field>(content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&T::TYPE.oid().to_be_bytes());
    out.extend_from_slice(&size(content.len()).to_be_bytes());
    out.extend_from_slice(content);
}

macro_rules! field {
    ($of:ty, $named:ident, |$value:ident| $content:expr) => {
        impl Field for $of {
            const TYPE: Type = Type::$named;
            fn write(self, out: &mut Vec<u8>) {
                let $value = self;
                write::<Self>($content, out);
            }
        }
    };
}

field!(&str, TEXT, |text| text.as_bytes());
field!(&[u8], BYTEA, |bytes| bytes);
field!(Uuid, UUID, |id| id.as_bytes());
field!(bool, BOOL, |flag| &[u8::from(flag)]);
field!(i16, INT2, |n| &n.to_be_bytes());
field!(i32, INT4, |n| &n.to_be_bytes());
field!(i64, INT8, |n| &n.to_be_bytes());

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => {
                out.extend_from_slice(&T::TYPE.oid().to_be_bytes());
                out.extend_from_slice(&NOTHING.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_its_length_its_fields_and_what_is_missing() {
        let listed = Listed::of(&[7], |n, record| {
            record.put("ab").put(None::<i64>).put(*n);
        });
        let text = [25_i32.to_be_bytes(), 2_i32.to_be_bytes()].concat();
        let missing = [20_i32.to_be_bytes(), NOTHING.to_be_bytes()].concat();
        let number = [23_i32.to_be_bytes(), 4_i32.to_be_bytes(), 7_i32.to_be_bytes()].concat();
        let fields = [text.as_slice(), b"ab", &missing, &number].concat();
        let head = [size(fields.len() + 4).to_be_bytes(), 3_i32.to_be_bytes()].concat();
        assert_eq!(listed.bytes, [head, fields].concat());
        assert_eq!(listed.rows, 1);
    }
}
