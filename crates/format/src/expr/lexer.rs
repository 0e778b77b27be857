//! Splits the SQL-like text of expressions into tokens.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// A token and its offset in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// A name or keyword without quotes.
    Word(&'a str),
    /// A name in double quotes or backticks.
    Name(Cow<'a, str>),
    /// A string in single quotes.
    Text(Cow<'a, str>),
    /// Digits, optionally with a point and an exponent; a sign is a separate token.
    Number(&'a str),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 19] =
    ["<=>", "::", ":", "<=", ">=", "<>", "!=", "==", "<", ">", "=", "(", ")", "[", "]", ",", ".", "-", "+"];

/// Words that must be quoted to be names.
const KEYWORDS: [&str; 11] = ["and", "or", "not", "in", "is", "null", "nan", "like", "between", "true", "false"];

/// Whether a word is a keyword, in any case.
pub(super) fn is_reserved(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// Whether a name can be written without quotes.
pub(super) fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
        && chars.all(|c| c == '_' || c.is_alphanumeric())
        && !is_reserved(name)
}

/// Splits a text into tokens; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let start = text.len() - rest.len();
        let (kind, after) = token(rest).map_err(|message| place(text, start, &message))?;
        let end = kind == TokenKind::End;
        tokens.push(Token { kind, start });
        if end {
            return Ok(tokens);
        }
        rest = after.trim_start();
    }
}

/// Creates an error at a byte of the text, reported as a character number.
pub(super) fn place(text: &str, start: usize, message: &str) -> Error {
    let character = text.get(..start).map_or(0, |head| head.chars().count()) + 1;
    Error::invalid(format!("expression at character {character}: {message}"))
}

fn token(rest: &str) -> Result<(TokenKind<'_>, &str), String> {
    let Some(first) = rest.chars().next() else { return Ok((TokenKind::End, rest)) };
    match first {
        '\'' => quoted(rest, '\'').map(|(text, rest)| (TokenKind::Text(text), rest)),
        '"' | '`' => quoted(rest, first).map(|(name, rest)| (TokenKind::Name(name), rest)),
        '0'..='9' => Ok(number(rest)),
        '.' if rest.get(1..).is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit())) => Ok(number(rest)),
        c if c == '_' || c.is_alphabetic() => {
            let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, rest) = rest.split_at(end);
            Ok((TokenKind::Word(word), rest))
        }
        other => {
            let symbol = SYMBOLS.iter().find_map(|symbol| Some((*symbol, rest.strip_prefix(symbol)?)));
            let (symbol, rest) = symbol.ok_or_else(|| format!("unexpected {other:?}"))?;
            Ok((TokenKind::Symbol(symbol), rest))
        }
    }
}

/// Reads a quoted text, in which a doubled quote stands for one quote.
fn quoted(rest: &str, quote: char) -> Result<(Cow<'_, str>, &str), String> {
    let inner = rest.get(quote.len_utf8()..).unwrap_or_default();
    let mut text: Option<String> = None;
    let mut open = inner;
    loop {
        let Some((part, after)) = open.split_once(quote) else {
            return Err(format!("the closing {quote} is missing"));
        };
        match (after.strip_prefix(quote), &mut text) {
            (Some(more), text) => {
                let text = text.get_or_insert_default();
                text.push_str(part);
                text.push(quote);
                open = more;
            }
            (None, Some(text)) => {
                text.push_str(part);
                return Ok((Cow::Owned(std::mem::take(text)), after));
            }
            (None, None) => return Ok((Cow::Borrowed(part), after)),
        }
    }
}

fn number(rest: &str) -> (TokenKind<'_>, &str) {
    let digits = |from: usize| {
        let tail = rest.get(from..).unwrap_or_default();
        from + tail.bytes().take_while(u8::is_ascii_digit).count()
    };
    let mut end = digits(0);
    if rest.get(end..).is_some_and(|tail| tail.starts_with('.')) {
        end = digits(end + 1);
    }
    if rest.get(end..).is_some_and(|tail| tail.starts_with(['e', 'E'])) {
        let signed = rest.get(end + 1..).is_some_and(|tail| tail.starts_with(['+', '-']));
        let start = end + 1 + usize::from(signed);
        if digits(start) > start {
            end = digits(start);
        }
    }
    let (number, rest) = rest.split_at(end);
    (TokenKind::Number(number), rest)
}
