//! A text that never prints.

use std::fmt;

/// A password, key or token: shown as stars, taken out only on purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Guards a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// A message without what the URLs in it give away: user and password, and queries of the web, which may hold signatures.
pub fn redacted(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("://") {
        let (scheme, after) = rest.split_at(at + 3);
        shown.push_str(scheme);
        let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | ')' | '>' | ',');
        let (url, next) = after.split_at(after.find(ends).unwrap_or(after.len()));
        shown.push_str(&of_url(url, scheme.ends_with("http://") || scheme.ends_with("https://")));
        rest = next;
    }
    shown + rest
}

/// What follows the scheme of a URL; names of objects elsewhere than in the web may hold question marks.
fn of_url(url: &str, is_web: bool) -> String {
    let (host, path) = url.split_at(url.find(['/', '?']).unwrap_or(url.len()));
    // `container@account` is no secret.
    let hidden = |user: &str| is_web || user.contains(':');
    let host = match host.rsplit_once('@') {
        Some((user, host)) if hidden(user) => format!("***@{host}"),
        _ => host.to_owned(),
    };
    let query = if is_web { [path.find('?'), path.find("%3F")].into_iter().flatten().min() } else { None };
    match query {
        // The colon of a message that names the URL first is not the URL's.
        Some(at) => format!("{host}{}?***{}", path.split_at(at).0, if path.ends_with(':') { ":" } else { "" }),
        None => host + path,
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn messages_without_secrets() {
        let table = [
            ("http://u:pw@host/x.json?sig=abc: not found", "http://***@host/x.json?***: not found"),
            ("a PUT https://u:p@ss@h:1/b/x in 5 s, (http://h?t=1)", "a PUT https://***@h:1/b/x in 5 s, (http://h?***)"),
            ("GET \"http://h/x%3Fsig=abc\" failed", "GET \"http://h/x?***\" failed"),
            ("postgresql://u:pw@h/db, s3://key:secret@b/k?v", "postgresql://***@h/db, s3://***@b/k?v"),
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
