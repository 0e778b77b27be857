//! Caches parsed writer's schemas. The manifests of a table have few distinct schemas, and parsing one takes longer
//! than reading a small manifest.

use std::cell::RefCell;
use std::sync::Arc;

use super::Schema;
use crate::{Limits, Result};

/// Maximum number of schemas that a thread caches.
const MOST: usize = 16;
/// Maximum length of a cached schema text.
const LONGEST: usize = 1 << 15;

/// A schema text and the parsed schema.
type ParsedText = (Box<[u8]>, Arc<Schema>);

thread_local! {
    /// Recently used schemas at the end.
    static PARSED: RefCell<Vec<ParsedText>> = const { RefCell::new(Vec::new()) };
}

/// Returns the schema of a header, from the cache of this thread if it has the same text.
///
/// # Errors
/// Those of [`Schema::parse`].
pub fn parse_shared(json: &[u8], limits: &Limits) -> Result<Arc<Schema>> {
    if json.len() > LONGEST {
        return Schema::parse(json, limits).map(Arc::new);
    }
    if let Some(schema) = PARSED.with_borrow_mut(|parsed| known(parsed, json)) {
        // It may have been parsed under wider limits.
        schema.check_size(limits)?;
        return Ok(schema);
    }
    let schema = Arc::new(Schema::parse(json, limits)?);
    PARSED.with_borrow_mut(|parsed| {
        if parsed.len() == MOST {
            parsed.remove(0);
        }
        parsed.push((json.into(), schema.clone()));
    });
    Ok(schema)
}

fn known(parsed: &mut [ParsedText], json: &[u8]) -> Option<Arc<Schema>> {
    let place = parsed.iter().rposition(|(text, _)| **text == *json)?;
    parsed.get_mut(place..)?.rotate_left(1);
    parsed.last().map(|(_, schema)| schema.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: usize) -> String {
        format!(r#"{{"type": "record", "name": "r{name}", "fields": [{{"name": "a", "type": "int"}}]}}"#)
    }

    #[test]
    fn a_text_is_parsed_once_and_few_are_remembered() {
        let limits = Limits::default();
        let parse = |name| parse_shared(text(name).as_bytes(), &limits).unwrap();
        let first = parse(0);
        assert_eq!(*first, Schema::parse(text(0).as_bytes(), &limits).unwrap());
        (1..MOST).for_each(|name| drop(parse(name)));
        assert!(Arc::ptr_eq(&first, &parse(0)));
        (MOST..2 * MOST - 1).for_each(|name| drop(parse(name)));
        assert!(Arc::ptr_eq(&first, &parse(0)), "it was asked for after the others");
        (0..MOST).for_each(|name| drop(parse(100 + name)));
        assert!(!Arc::ptr_eq(&first, &parse(0)));
        assert_eq!(PARSED.with_borrow(Vec::len), MOST);
    }

    #[test]
    fn limits_hold_for_what_is_known() {
        let json = text(7);
        assert!(parse_shared(json.as_bytes(), &Limits::default()).is_ok());
        assert!(parse_shared(json.as_bytes(), &Limits { fields: 1, ..Limits::default() }).is_err());
        assert!(parse_shared(b"{", &Limits::default()).is_err());
        assert!(parse_shared(b"{", &Limits::default()).is_err());
    }
}
