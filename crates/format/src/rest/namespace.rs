//! Namespaces: to create, load and list them, and to change their properties.

use super::form::messages;
use crate::json::StringMap;

messages! {
    /// A namespace to create.
    CreateNamespaceRequest, "a request to create a namespace" {
        /// The levels of its name.
        namespace: Vec<String> = "namespace";
        /// Its properties.
        properties: StringMap = "properties" or StringMap::new();
    }

    /// A namespace that was created or loaded.
    NamespaceResponse, "a namespace" {
        /// The levels of its name.
        namespace: Vec<String> = "namespace";
        /// Its properties; without them the server does not support any.
        properties: Option<StringMap> = "properties";
    }

    /// A page of namespaces.
    ListNamespacesResponse, "a list of namespaces" {
        /// Asks for the next page; without it this one is the last.
        next_page_token: Option<String> = "next-page-token";
        /// The namespaces, each as the levels of its name.
        namespaces: Vec<Vec<String>> = "namespaces" or Vec::new();
    }

    /// Changes of the properties of a namespace.
    UpdateNamespacePropertiesRequest, "a request to update the properties of a namespace" {
        /// Names to remove.
        removals: Vec<String> = "removals" or Vec::new();
        /// Names and values to set.
        updates: StringMap = "updates" or StringMap::new();
    }

    /// The result of an update of the properties of a namespace.
    UpdateNamespacePropertiesResponse, "an answer on the properties of a namespace" {
        /// Names that were added or changed.
        updated: Vec<String> = "updated";
        /// Names that were removed.
        removed: Vec<String> = "removed";
        /// Names that should have been removed and were not there.
        missing: Option<Vec<String>> = "missing";
    }
}
