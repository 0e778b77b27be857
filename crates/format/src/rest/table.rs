//! Tables: to create, register, load, rename and list them, and to commit to one or to several.

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
        /// The levels of its namespace.
        namespace: Vec<String> = "namespace";
        /// Its own name.
        name: String = "name";
    }

    /// A page of tables or views.
    ListTablesResponse, "a list of tables" {
        /// Asks for the next page; without it this one is the last.
        next_page_token: Option<String> = "next-page-token";
        /// The names.
        identifiers: Vec<TableIdentifier> = "identifiers" or Vec::new();
    }

    /// A table to create.
    CreateTableRequest, "a request to create a table" {
        /// Its name in the namespace.
        name: String = "name";
        /// Its location; without it the server chooses.
        location: Option<String> = "location";
        /// Its schema; the server assigns ids.
        schema: Schema = "schema";
        /// How it is partitioned.
        partition_spec: Option<PartitionSpec> = "partition-spec";
        /// How it is sorted.
        write_order: Option<SortOrder> = "write-order";
        /// Whether the table is only prepared, to be created by a commit.
        stage_create: bool = "stage-create" or false;
        /// Its properties.
        properties: StringMap = "properties" or StringMap::new();
    }

    /// A table that exists as a metadata file, to be registered in the catalog.
    RegisterTableRequest, "a request to register a table" {
        /// Its name in the namespace.
        name: String = "name";
        /// Its metadata file.
        metadata_location: String = "metadata-location";
        /// Whether it may take the place of a table of this name.
        overwrite: bool = "overwrite" or false;
    }

    /// Credentials for the files below a location.
    StorageCredential, "a storage credential" {
        /// The beginning of the locations that it is for; the longest one counts.
        prefix: String = "prefix";
        /// The credentials, as properties of the storage.
        config: SecretMap = "config";
    }

    /// Refreshed credentials of a table.
    LoadCredentialsResponse, "credentials of a table" {
        /// The credentials.
        storage_credentials: Vec<StorageCredential> = "storage-credentials";
    }

    /// A table that was loaded or created.
    LoadTableResult, "a loaded table" {
        /// Its metadata file; without it the table is staged and not committed.
        metadata_location: Option<String> = "metadata-location";
        /// Its metadata.
        metadata: Arc<TableMetadata> = "metadata";
        /// Properties of the client and the storage for this table.
        config: SecretMap = "config" or SecretMap::default();
        /// Credentials for its files, which go before those in `config`.
        storage_credentials: Option<Vec<StorageCredential>> = "storage-credentials";
        /// What a reader must enforce, or else not read the table.
        read_restrictions: Option<Json> = "read-restrictions";
    }

    /// A commit to a table.
    CommitTableRequest, "a commit" {
        /// The table; required in a transaction.
        identifier: Option<TableIdentifier> = "identifier";
        /// What must hold for the commit to be made.
        requirements: Vec<UpdateRequirement> = "requirements";
        /// What is changed, in order.
        updates: Vec<MetadataUpdate> = "updates";
    }

    /// The table after a commit.
    CommitTableResponse, "an answer to a commit" {
        /// Its metadata file.
        metadata_location: String = "metadata-location";
        /// Its metadata.
        metadata: Arc<TableMetadata> = "metadata";
    }

    /// Commits to several tables, made all or not at all.
    CommitTransactionRequest, "a transaction" {
        /// The commits.
        table_changes: Vec<CommitTableRequest> = "table-changes";
    }

    /// A table or view that gets another name.
    RenameTableRequest, "a request to rename a table" {
        /// The name that it has.
        source: TableIdentifier = "source";
        /// The name that it gets.
        destination: TableIdentifier = "destination";
    }
}
