//! Configuration of a catalog (`/v1/config`).

use super::form::messages;
use super::secret::SecretMap;

messages! {
    /// Configuration that a server sends to its clients.
    CatalogConfig, "a catalog's configuration" {
        /// Overrides the client's configuration; applied last.
        overrides: SecretMap = "overrides";
        /// Defaults for the client's configuration; applied first.
        defaults: SecretMap = "defaults";
        /// Supported endpoints, such as `GET /v1/{prefix}/namespaces`; without it, the default list of the
        /// specification.
        endpoints: Option<Vec<String>> = "endpoints";
        /// How long a client may reuse an idempotency key, as an ISO 8601 duration; without it, keys are not supported.
        idempotency_key_lifetime: Option<String> = "idempotency-key-lifetime";
    }
}
