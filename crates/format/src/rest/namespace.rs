//! Messages about namespaces: create, load and list them, and change their properties.

use super::form::messages;
use crate::json::StringMap;

messages! {
    /// Request to create a namespace.
    CreateNamespaceRequest, "a request to create a namespace" {
        /// Levels of its name.
        namespace: Vec<String> = "namespace";
        /// Its properties.
        properties: StringMap = "properties" or StringMap::new();
    }

    /// A created or loaded namespace.
    NamespaceResponse, "a namespace" {
        /// Levels of its name.
        namespace: Vec<String> = "namespace";
        /// Its properties; missing if the server does not support properties.
        properties: Option<StringMap> = "properties";
    }

    /// A page of namespaces.
    ListNamespacesResponse, "a list of namespaces" {
        /// Token for the next page; missing on the last page.
        next_page_token: Option<String> = "next-page-token";
        /// The namespaces, each as the levels of its name.
        namespaces: Vec<Vec<String>> = "namespaces" or Vec::new();
    }

    /// Request to change the properties of a namespace.
    UpdateNamespacePropertiesRequest, "a request to update the properties of a namespace" {
        /// Names to remove.
        removals: Vec<String> = "removals" or Vec::new();
        /// Names and values to set.
        updates: StringMap = "updates" or StringMap::new();
    }

    /// Result of a change of a namespace's properties.
    UpdateNamespacePropertiesResponse, "an answer on the properties of a namespace" {
        /// Names that were added or changed.
        updated: Vec<String> = "updated";
        /// Names that were removed.
        removed: Vec<String> = "removed";
        /// Names to remove that did not exist.
        missing: Option<Vec<String>> = "missing";
    }
}
