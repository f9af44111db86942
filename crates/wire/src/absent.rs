//! A field that is null is a field that is left out.

use serde::{Deserialize, Deserializer};

/// The default instead of null.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}
