//! Configuration of a catalog (`/v1/config`).

use super::form::messages;
use super::secret::SecretMap;

messages! {
    /// The configuration that a server sends to a client.
    CatalogConfig, "a catalog's configuration" {
        /// Replaces what the client has; applied last.
        overrides: SecretMap = "overrides";
        /// Defaults of the client's configuration; applied first.
        defaults: SecretMap = "defaults";
        /// What the server supports, as `GET /v1/{prefix}/namespaces`; without it, what the specification says.
        endpoints: Option<Vec<String>> = "endpoints";
        /// How long a client may use an idempotency key again, as an ISO 8601 duration; without it keys are not supported.
        idempotency_key_lifetime: Option<String> = "idempotency-key-lifetime";
    }
}
