//! Limits what errors repeat of a server's response. Responses may contain confidential data: anything from an internal
//! server, or a store's copy of the signed request with its tokens.

use serde_json::Value as Json;

use crate::storage::Scheme;

/// How errors of `object_store` introduce the body of a response.
const STARTS: [&str; 2] = ["Server returned non-2xx status code: ", "Server returned error response: "];
/// Maximum length of the store's own message.
const SHOWN: usize = 300;

/// Removes the body of a response from a message, except for the code and message of a store's error.
pub(super) fn without_answer(scheme: Scheme, message: &str) -> String {
    let Some((at, start)) = STARTS.iter().find_map(|start| Some((message.find(start)?, *start))) else {
        return message.to_owned();
    };
    let (before, rest) = message.split_at(at + start.len());
    // The status ends at a colon; a response with an error instead of an object has no status.
    let (status, body) = match start == STARTS[0] {
        true => rest.split_once(':').unwrap_or((rest, "")),
        false => ("an error", rest),
    };
    let mut kept = format!("{before}{}", status.trim());
    if scheme == Scheme::Http {
        if status.trim_start().starts_with('3') {
            kept.push_str(" (redirects are not followed: name the location that they lead to)");
        }
    } else if let Some(said) = said(body) {
        kept.push_str(": ");
        kept.extend(said.chars().take(SHOWN));
    }
    kept
}

/// Code and message of an error in XML (S3, Azure) or JSON (Google, credential services).
fn said(body: &str) -> Option<String> {
    let tag = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    if let Some(code) = tag("Code") {
        return Some(match tag("Message") {
            Some(sentence) => format!("{code}: {sentence}"),
            None => code,
        });
    }
    let start = body.find('{')?;
    let json = serde_json::Deserializer::from_str(body.get(start..)?).into_iter::<Json>().next()?.ok()?;
    let error = json.get("error").unwrap_or(&json);
    let texts = [error.as_str(), error.get("message").and_then(Json::as_str)];
    let described = json.get("error_description").and_then(Json::as_str);
    let found: Vec<&str> = texts.into_iter().chain([described]).flatten().collect();
    (!found.is_empty()).then(|| found.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_not_repeated() {
        let head = "Error performing GET http://h/k in 3ms - Server returned non-2xx status code: 403 Forbidden";
        let xml = "<?xml?><Error><Code>SignatureDoesNotMatch</Code><Message>The request signature\n is wrong.</Message>\
                   <CanonicalRequest>x-amz-security-token:hush</CanonicalRequest></Error>";
        let json = r#"{"error": {"code": 403, "message": "no access", "details": "hush"}}"#;
        let oauth = r#"{"error": "invalid_client", "error_description": "expired", "access_token": "hush"}"#;
        for (scheme, body, said) in [
            (Scheme::Http, xml, ""),
            (Scheme::Http, json, ""),
            (Scheme::Http, "hush: hush", ""),
            (Scheme::S3, xml, ": SignatureDoesNotMatch: The request signature\n is wrong."),
            (Scheme::S3, "<html>hush</html>", ""),
            (Scheme::S3, "{\"SecretAccessKey\": \"hush\"}", ""),
            (Scheme::Azure, xml, ": SignatureDoesNotMatch: The request signature\n is wrong."),
            (Scheme::Azure, oauth, ": invalid_client: expired"),
            (Scheme::Gcs, json, ": no access"),
        ] {
            assert_eq!(
                without_answer(scheme, &format!("{head}: {body}")),
                format!("{head}{said}"),
                "{scheme:?} {body}"
            );
        }
        let whole =
            "Error performing PUT x - Server returned error response: <Error><Code>SlowDown</Code></Error> hush";
        assert!(without_answer(Scheme::S3, whole).ends_with("error response: an error: SlowDown"));
        let moved = "GET http://h - Server returned non-2xx status code: 302 Found: ";
        assert!(without_answer(Scheme::Http, moved).contains("302 Found (redirects are not followed"));
        for other in ["error sending request for url (http://h/k): connection refused", ""] {
            assert_eq!(without_answer(Scheme::Http, other), other);
        }
    }
}
