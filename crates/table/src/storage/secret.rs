//! Hides secrets: the rule for names of secret properties, and the form in which properties, URLs and messages are
//! shown.

pub use icefield_format::secret::{HIDDEN, Secret};

/// Parts of names that indicate a secret, without separators between words.
const PARTS: &[&str] = &[
    "secret",
    "passw",
    "passphrase",
    "token",
    "credential",
    "private",
    "signature",
    "sharedaccess",
    "connectionstring",
    "authorization",
    "bearer",
    "cookie",
    "accesskey",
    "sessionkwargs",
];
/// Words that indicate a secret only as whole words.
const WORDS: &[&str] = &["sas", "sig", "auth", "pwd", "pass"];
/// Last words of names of properties about a secret, such as its expiry or its source.
const ABOUT: &[&str] =
    &["id", "at", "ms", "enabled", "uri", "url", "endpoint", "provider", "type", "path", "file", "scope", "username"];
/// Prefixes of secret properties that end with the name of an account.
const OF_ACCOUNTS: &[&str] = &["adls.sas-token.", "adls.connection-string.", "adls.account-key."];
/// HTTP headers without secrets; any other `header.*` may have one.
const PLAIN_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "x-client-version", "x-iceberg-access-delegation"];

/// Whether the value of a property is a secret, by its name alone; in doubt it is.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if let Some(header) = name.strip_prefix("header.") {
        return !PLAIN_HEADERS.contains(&header);
    }
    if OF_ACCOUNTS.iter().any(|prefix| name.starts_with(prefix)) {
        return true;
    }
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    if matches!(words.as_slice(), [_, .., last] if ABOUT.contains(last)) || name == "gcs.no-auth" {
        return false;
    }
    let joined = words.concat();
    PARTS.iter().any(|part| joined.contains(part))
        || words.iter().any(|word| WORDS.contains(word))
        // `adls.account-key`, `s3.sse.key`, `apikey`
        || joined.ends_with("key")
}

/// The value of a property in a form that may be shown: secrets are replaced by stars, also those in URLs and
/// `name=value` pairs.
pub fn shown(name: &str, value: &str) -> String {
    if is_secret(name) || (!value.contains("://") && has_secret_pair(value)) {
        return HIDDEN.to_owned();
    }
    redacted(value)
}

/// Whether a text has `name=value` pairs with a secret: a connection string, or the query of a URL.
fn has_secret_pair(text: &str) -> bool {
    let words = text.split([';', '&', '?', ',']).flat_map(str::split_whitespace);
    words.filter_map(|word| word.split_once('=')).any(|(name, value)| !value.is_empty() && is_secret(name))
}

/// Removes secrets from the URLs in a message: users, passwords, and queries of web URLs, which may have signatures.
pub fn redacted(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("://") {
        let (scheme, after) = rest.split_at(at + 3);
        shown.push_str(scheme);
        let is_web = scheme.ends_with("http://") || scheme.ends_with("https://");
        let after = without_user(after, is_web, &mut shown);
        let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | ')' | '>' | ',');
        let (url, next) = after.split_at(after.find(ends).unwrap_or(after.len()));
        shown.push_str(&without_query(url, is_web));
        rest = next;
    }
    shown + rest
}

/// Removes user and password from a URL; they may have any character except those that end a host.
fn without_user<'a>(url: &'a str, is_web: bool, shown: &mut String) -> &'a str {
    let end = url.find(|letter: char| letter.is_whitespace() || matches!(letter, '/' | '?' | '#')).unwrap_or(url.len());
    let Some(at) = url.get(..end).and_then(|host| host.rfind('@')) else { return url };
    let (user, host) = url.split_at(at);
    // `container@account` is not a secret.
    if !is_web && !user.contains(':') {
        return url;
    }
    shown.push_str(HIDDEN);
    host
}

/// Removes a query that may have a signature or a password from a URL. Object names in other stores may have question
/// marks.
fn without_query(url: &str, is_web: bool) -> String {
    let starts: &[&str] = if is_web { &["?", "%3F"] } else { &["?", ";"] };
    let start = starts.iter().filter_map(|start| url.find(start)).min();
    match start.map(|at| url.split_at(at)).filter(|(_, query)| is_web || has_secret_pair(query)) {
        // A colon at the end belongs to the message, not to the URL.
        Some((path, query)) => format!("{path}?{HIDDEN}{}", if query.ends_with(':') { ":" } else { "" }),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_by_name() {
        for name in [
            "s3.secret-access-key",
            "s3.session-token",
            "s3.auth-header",
            "s3.sse.key",
            "client.secret-access-key",
            "glue.session-token",
            "adls.sas-token.acc",
            "adls.sas-token.acc.dfs.core.windows.net",
            "adls.sas-token.path",
            "adls.connection-string",
            "adls.account-key",
            "adls.auth.shared-key.account.key",
            "adls.client-secret",
            "gcs.oauth2.token",
            "gcs.service-account-key",
            "gcs.credentials-json",
            "gcs.encryption-key",
            "gcs.session-kwargs",
            "credential",
            "token",
            "auth",
            "password",
            "jdbc.password",
            "rest.auth.basic.password",
            "header.Authorization",
            "header.X-Api-Key",
            "header.Cookie",
            "hf.token",
            "s3.access-key",
            "private-key",
            "connection.string",
            "SharedAccessSignature",
            "AccountKey",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "s3.endpoint",
            "s3.region",
            "s3.access-key-id",
            "s3.signer.uri",
            "s3.session-token-expires-at-ms",
            "gcs.oauth2.token-expires-at",
            "gcs.no-auth",
            "warehouse",
            "uri",
            "path",
            "id",
            "oauth2-server-uri",
            "client.credentials-provider",
            "token-refresh-enabled",
            "rest.auth.type",
            "header.X-Iceberg-Access-Delegation",
            "client-pool-cache-keys",
            "encryption.key-id",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn properties_as_they_may_be_seen() {
        for (name, value, expected) in [
            ("s3.region", "eu", "eu"),
            ("s3.signer.uri", "https://h/?sig=hush", "https://h/?********"),
            ("s3.secret-access-key", "hush", "********"),
            ("uri", "sqlite:///a/b.db", "sqlite:///a/b.db"),
            ("uri", "postgresql://me:hush@host:5432/db", "postgresql://********@host:5432/db"),
            ("uri", "postgresql://me:hu,s'h@host:5432/db", "postgresql://********@host:5432/db"),
            ("uri", "postgresql+psycopg2://host/db?user=me&password=hush", "postgresql+psycopg2://host/db?********"),
            ("uri", "jdbc:sqlserver://host;user=me;password=hush", "jdbc:sqlserver://host?********"),
            ("uri", "host=db user=me password=hush", "********"),
            ("storage", "AccountName=dev;AccountKey=hush", "********"),
            ("s3.endpoint", "https://host/x?sas=hush", "https://host/x?********"),
            ("warehouse", "abfss://files@acc.dfs.core.windows.net/w", "abfss://files@acc.dfs.core.windows.net/w"),
            ("warehouse", "s3://bucket/p=1?x=2", "s3://bucket/p=1?x=2"),
        ] {
            assert_eq!(shown(name, value), expected, "{name}");
        }
    }

    #[test]
    fn messages_without_secrets() {
        let table = [
            ("http://u:pw@host/x.json?sig=abc: not found", "http://********@host/x.json?********: not found"),
            (
                "a PUT https://u:p@ss@h:1/b/x in 5 s, (http://h?t=1)",
                "a PUT https://********@h:1/b/x in 5 s, (http://h?********)",
            ),
            ("GET \"http://h/x%3Fsig=abc\" failed", "GET \"http://h/x?********\" failed"),
            ("postgresql://u:pw@h/db, s3://key:secret@b/k?v", "postgresql://********@h/db, s3://********@b/k?v"),
        ];
        for (message, shown) in table {
            assert_eq!(redacted(message), shown);
        }
        for kept in
            ["abfs://c@acc.dfs.core.windows.net/k", "s3://b/k?x@y:z", "file:///a@b/c?d: x", "http://h/a@b:c", "://"]
        {
            assert_eq!(redacted(kept), kept);
        }
    }
}
