//! Flat JSON objects that are read field by field.
//!
//! `exec` and `spawn` share the fields of a `Program`. Serde's `flatten` cannot express that: it
//! accepts unknown fields, and it refuses the lone surrogates that [`OsText`](crate::text::OsText)
//! needs.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer as _;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};

/// A struct that is read from a JSON object.
pub trait Fields: Default {
    /// The names of all fields, in groups.
    const NAMES: &'static [&'static [&'static str]];
    /// Fields without a default.
    const REQUIRED: &'static [&'static str] = &[];

    /// Reads the value of the field `name`. Returns false, without reading, if there is no such
    /// field.
    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// Reads one JSON object. Unknown, repeated and missing fields are errors; `id` and `op`, which
/// every request has, are ignored.
pub fn from_json<T: Fields>(json: &[u8]) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = deserializer.deserialize_map(FieldsVisitor(PhantomData))?;
    deserializer.end()?;
    Ok(value)
}

struct FieldsVisitor<T>(PhantomData<T>);

impl<'de, T: Fields> Visitor<'de> for FieldsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut value = T::default();
        let mut seen: Vec<String> = Vec::with_capacity(16);
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            if name == "id" || name == "op" {
                map.next_value::<IgnoredAny>()?;
            } else if !value.read(&name, &mut map)? {
                let known = T::NAMES.concat().join("`, `");
                let unknown = format_args!("unknown field `{name}`, expected one of `{known}`");
                return Err(A::Error::custom(unknown));
            }
            seen.push(name);
        }
        match T::REQUIRED.iter().find(|name| !seen.iter().any(|seen| seen == **name)) {
            Some(missing) => Err(A::Error::custom(format_args!("missing field `{missing}`"))),
            None => Ok(value),
        }
    }
}
