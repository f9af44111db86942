//! A field that is null is a field that is left out.

use crate::Object;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The default instead of null.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// A part that is an object, or null. A list would be read as its fields in their order, which nobody promised.
pub(crate) fn part<'de, D: Deserializer<'de>, T: DeserializeOwned>(d: D) -> Result<Option<T>, D::Error> {
    Option::<Object>::deserialize(d)?.map(|fields| read(fields)).transpose()
}

/// Parts that are objects.
pub(crate) fn parts<'de, D: Deserializer<'de>, T: DeserializeOwned>(d: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<Object>>::deserialize(d)?.unwrap_or_default().into_iter().map(|fields| read(fields)).collect()
}

fn read<T: DeserializeOwned, E: de::Error>(fields: Object) -> Result<T, E> {
    serde_json::from_value(Value::Object(fields)).map_err(E::custom)
}
