//! Suggests known names for unknown ones, and lists known names, in error messages.

/// Maximum number of names in a message.
const LISTED: usize = 20;

/// More or longer names are not compared, so that creating a message is fast.
const COMPARED: usize = 10_000;
const LONGEST: usize = 64;

/// Returns the known name closest to `name`, if it is close enough to be what was meant.
///
/// Case is ignored. A name that starts with the other one is also close: `dist` and `distance`.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name)?;
    let allowed = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known.into_iter().take(COMPARED) {
        let Some(other) = folded(candidate) else { continue };
        let distance = distance(&wanted, &other);
        let prefix = wanted.len().min(other.len()) >= 3 && (other.starts_with(&wanted) || wanted.starts_with(&other));
        let rank = match (distance <= allowed && distance < wanted.len(), prefix) {
            (true, _) => distance,
            (false, true) => allowed + distance,
            (false, false) => continue,
        };
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns `"; did you mean \"name\"?"`, or an empty text.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|found| format!("; did you mean {found:?}?")).unwrap_or_default()
}

/// Lists the names, separated by commas; long lists are cut and end with the number of further names.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        text.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    text
}

fn folded(name: &str) -> Option<Vec<char>> {
    let chars: Vec<char> = name.chars().flat_map(char::to_lowercase).take(LONGEST + 1).collect();
    (1..=LONGEST).contains(&chars.len()).then_some(chars)
}

/// Number of characters to insert, delete, replace or swap with their neighbour.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut next = Vec::with_capacity(last.len());
        next.push(row + 1);
        for (column, b) in to.iter().enumerate() {
            let at = |cells: &[usize], place: usize| cells.get(place).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(a != b);
            let mut least = replaced.min(at(&last, column + 1) + 1).min(at(&next, column) + 1);
            let swapped = row > 0 && column > 0 && from.get(row - 1) == Some(b) && to.get(column - 1) == Some(a);
            if swapped {
                least = least.min(at(&before_last, column - 1) + 1);
            }
            next.push(least);
        }
        before_last = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        let known = ["id", "name", "distance", "departure_time", "x", "größe"];
        let cases = [
            ("nmae", Some("name")),
            ("Name", Some("name")),
            ("names", Some("name")),
            ("dist", Some("distance")),
            ("departuretime", Some("departure_time")),
            ("di", Some("id")),
            ("y", None),
            ("größen", Some("größe")),
            ("carrier", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"n".repeat(1000), known), None);
        assert_eq!(hint("nmae", known), "; did you mean \"name\"?");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..25).map(|number| format!("c{number}")).collect();
        let text = listed(names.iter().map(String::as_str));
        assert!(text.starts_with("c0, c1, ") && text.ends_with(", c19 and 5 more"), "{text}");
        assert_eq!(listed(["a", "b"]), "a, b");
    }
}
