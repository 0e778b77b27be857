//! OAuth 2 tokens (`/v1/oauth/tokens`; RFC 6749, RFC 8693). Requests are forms, responses are JSON.

use super::form::messages;
use crate::secret::Secret;
use crate::{Error, Result};

const CLIENT_CREDENTIALS: &str = "client_credentials";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

messages! {
    /// A granted token.
    TokenResponse, "a token response" {
        /// The token.
        access_token: Secret = "access_token";
        /// How to send it, usually `bearer`.
        token_type: String = "token_type";
        /// Seconds until it expires.
        expires_in: Option<i64> = "expires_in";
        /// Type of the token.
        issued_token_type: Option<String> = "issued_token_type";
        /// Token for requesting the next one.
        refresh_token: Option<Secret> = "refresh_token";
        /// Scope of the token.
        scope: Option<String> = "scope";
    }

    /// Response if no token is granted.
    OAuthError, "an OAuth error" {
        /// Error code: `invalid_client`, `invalid_grant`, …
        error: String = "error";
        /// Explanation for people.
        error_description: Option<String> = "error_description";
        /// Web page about the error.
        error_uri: Option<String> = "error_uri";
    }
}

/// Request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRequest {
    /// The client requests a token for itself.
    ClientCredentials {
        /// Client id, unless the header `Authorization` has it.
        client_id: Option<String>,
        /// Client secret, unless the header `Authorization` has it.
        client_secret: Option<Secret>,
        /// Requested scope.
        scope: Option<String>,
    },
    /// Exchanges a token for another.
    TokenExchange {
        /// The token of the subject on whose behalf it is requested.
        subject_token: Secret,
        /// Type of the subject's token.
        subject_token_type: String,
        /// The token of the acting party, with its type.
        actor_token: Option<(Secret, String)>,
        /// Requested type of token.
        requested_token_type: Option<String>,
        /// Requested scope.
        scope: Option<String>,
    },
}

impl TokenRequest {
    /// Returns the fields of the form, before encoding as `application/x-www-form-urlencoded`.
    pub fn to_form(&self) -> Vec<(&'static str, &str)> {
        let (grant_type, fields) = match self {
            Self::ClientCredentials { client_id, client_secret, scope } => (
                CLIENT_CREDENTIALS,
                vec![
                    ("client_id", client_id.as_deref()),
                    ("client_secret", client_secret.as_ref().map(Secret::reveal)),
                    ("scope", scope.as_deref()),
                ],
            ),
            Self::TokenExchange { subject_token, subject_token_type, actor_token, requested_token_type, scope } => (
                TOKEN_EXCHANGE,
                vec![
                    ("subject_token", Some(subject_token.reveal())),
                    ("subject_token_type", Some(subject_token_type.as_str())),
                    ("actor_token", actor_token.as_ref().map(|(token, _)| token.reveal())),
                    ("actor_token_type", actor_token.as_ref().map(|(_, ty)| ty.as_str())),
                    ("requested_token_type", requested_token_type.as_deref()),
                    ("scope", scope.as_deref()),
                ],
            ),
        };
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("grant_type", grant_type)).chain(fields).collect()
    }

    /// Reads the decoded fields of a form.
    ///
    /// # Errors
    /// An unknown kind of grant, or a missing field.
    pub fn from_form(fields: &[(&str, &str)]) -> Result<Self> {
        let field = |name: &str| fields.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let required = |name: &str| field(name).ok_or_else(|| Error::corrupt(name, "required, but missing"));
        match required("grant_type")?.as_str() {
            CLIENT_CREDENTIALS => Ok(Self::ClientCredentials {
                client_id: field("client_id"),
                client_secret: field("client_secret").map(Secret::new),
                scope: field("scope"),
            }),
            TOKEN_EXCHANGE => Ok(Self::TokenExchange {
                subject_token: Secret::new(required("subject_token")?),
                subject_token_type: required("subject_token_type")?,
                actor_token: match field("actor_token") {
                    Some(token) => Some((Secret::new(token), required("actor_token_type")?)),
                    None => None,
                },
                requested_token_type: field("requested_token_type"),
                scope: field("scope"),
            }),
            other => Err(Error::corrupt("grant_type", format!("invalid grant: {other:?}"))),
        }
    }
}
