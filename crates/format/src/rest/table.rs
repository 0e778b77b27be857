//! Messages about tables: create, register, load, rename and list them, and commit to one or several.

use std::sync::Arc;

use serde_json::Value as Json;

use super::form::messages;
use super::secret::SecretMap;
use crate::json::StringMap;
use crate::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement};
use crate::spec::{PartitionSpec, SortOrder};
use crate::types::Schema;

messages! {
    /// The name of a table or view.
    #[derive(Eq, Hash)]
    TableIdentifier, "a table identifier" {
        /// Levels of its namespace.
        namespace: Vec<String> = "namespace";
        /// Name in the namespace.
        name: String = "name";
    }

    /// A page of tables or views.
    ListTablesResponse, "a list of tables" {
        /// Token for the next page; missing on the last page.
        next_page_token: Option<String> = "next-page-token";
        /// Names of the tables or views.
        identifiers: Vec<TableIdentifier> = "identifiers" or Vec::new();
    }

    /// Request to create a table.
    CreateTableRequest, "a request to create a table" {
        /// Name in the namespace.
        name: String = "name";
        /// Location of the table; by default the server chooses it.
        location: Option<String> = "location";
        /// Schema, whose ids the server assigns.
        schema: Schema = "schema";
        /// Partition spec.
        partition_spec: Option<PartitionSpec> = "partition-spec";
        /// Sort order.
        write_order: Option<SortOrder> = "write-order";
        /// Whether to only stage the table, which a later commit creates.
        stage_create: bool = "stage-create" or false;
        /// Properties of the table.
        properties: StringMap = "properties" or StringMap::new();
    }

    /// Request to register an existing metadata file as a table.
    RegisterTableRequest, "a request to register a table" {
        /// Name in the namespace.
        name: String = "name";
        /// Location of the metadata file.
        metadata_location: String = "metadata-location";
        /// Whether to replace an existing table with this name.
        overwrite: bool = "overwrite" or false;
    }

    /// Credentials for the files under a location.
    StorageCredential, "a storage credential" {
        /// Prefix of the locations that it applies to; the longest matching prefix wins.
        prefix: String = "prefix";
        /// The credentials, as storage properties.
        config: SecretMap = "config";
    }

    /// Refreshed credentials of a table.
    LoadCredentialsResponse, "credentials of a table" {
        /// The credentials.
        storage_credentials: Vec<StorageCredential> = "storage-credentials";
    }

    /// A loaded or created table.
    LoadTableResult, "a loaded table" {
        /// Location of its metadata file; missing while the table is staged.
        metadata_location: Option<String> = "metadata-location";
        /// Its metadata.
        metadata: Arc<TableMetadata> = "metadata";
        /// Client and storage properties for this table.
        config: SecretMap = "config" or SecretMap::default();
        /// Credentials for its files, which take precedence over those in `config`.
        storage_credentials: Option<Vec<StorageCredential>> = "storage-credentials";
        /// Restrictions that a reader must enforce; if it cannot, it must not read the table.
        read_restrictions: Option<Json> = "read-restrictions";
    }

    /// Request to commit to a table.
    CommitTableRequest, "a commit" {
        /// The table; required in a transaction.
        identifier: Option<TableIdentifier> = "identifier";
        /// Requirements of the commit.
        requirements: Vec<UpdateRequirement> = "requirements";
        /// Updates, in order.
        updates: Vec<MetadataUpdate> = "updates";
    }

    /// State of the table after a commit.
    CommitTableResponse, "an answer to a commit" {
        /// Location of its metadata file.
        metadata_location: String = "metadata-location";
        /// Its metadata.
        metadata: Arc<TableMetadata> = "metadata";
    }

    /// Request to commit to several tables, all or none.
    CommitTransactionRequest, "a transaction" {
        /// The commits.
        table_changes: Vec<CommitTableRequest> = "table-changes";
    }

    /// Request to rename a table or view.
    RenameTableRequest, "a request to rename a table" {
        /// Current name.
        source: TableIdentifier = "source";
        /// New name.
        destination: TableIdentifier = "destination";
    }
}
