//! Secrets in messages: passwords, tokens, and configuration that may hold them.

use std::fmt;

use serde_json::Value as Json;

use super::form::Form;
use crate::Result;
use crate::json::StringMap;
use crate::secret::Secret;

impl Form for Secret {
    fn read(json: &Json) -> Result<Self> {
        String::read(json).map(Self::new)
    }

    fn write(&self) -> Json {
        Json::from(self.reveal())
    }
}

/// Configuration that contains credentials: `Debug` prints only the names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretMap(StringMap);

impl SecretMap {
    /// Wraps a configuration.
    pub fn new(map: StringMap) -> Self {
        Self(map)
    }

    /// Returns the configuration.
    pub fn reveal(&self) -> &StringMap {
        &self.0
    }
}

impl fmt::Debug for SecretMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, Secret::new("")))).finish()
    }
}

impl Form for SecretMap {
    fn read(json: &Json) -> Result<Self> {
        StringMap::read(json).map(Self)
    }

    fn write(&self) -> Json {
        self.0.write()
    }
}
