//! Messages of the REST catalog protocol (`rest-catalog-open-api.yaml`): requests and responses, as types with a JSON
//! form. HTTP is not part of it.
//!
//! Unknown members are ignored, `null` means missing for optional members, and errors name the place of a member that
//! is missing or of another kind.

mod catalog;
mod error;
mod form;
mod metrics;
mod namespace;
mod oauth;
mod scan;
mod secret;
mod table;

pub use crate::secret::Secret;
pub use catalog::CatalogConfig;
pub use error::{ErrorModel, ErrorResponse};
pub use metrics::{CommitReport, Counter, Metric, ReportMetricsRequest, ScanReport, Timer};
pub use namespace::{
    CreateNamespaceRequest, ListNamespacesResponse, NamespaceResponse, UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
};
pub use oauth::{OAuthError, TokenRequest, TokenResponse};
pub use scan::{
    ContentFile, ContentKind, CountMap, FetchScanTasksRequest, FileScanTask, PlanTableScanRequest, PlanningResult,
    ScanTasks, ValueMap,
};
pub use secret::SecretMap;
pub use table::{
    CommitTableRequest, CommitTableResponse, CommitTransactionRequest, CreateTableRequest, ListTablesResponse,
    LoadCredentialsResponse, LoadTableResult, RegisterTableRequest, RenameTableRequest, StorageCredential,
    TableIdentifier,
};

#[cfg(test)]
mod tests;
