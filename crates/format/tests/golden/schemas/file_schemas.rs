//! Parses the file schemas of the vectors, Parquet's `message t { … }` and ORC's `struct<…>`, to Arrow fields. The path
//! of each field in its file is in its metadata, under [`PATH_KEY`].

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use icefield_format::types::arrow::FIELD_ID_KEY;
use libtest_mimic::Failed;

/// The metadata key of the path of a field in its file.
pub const PATH_KEY: &str = "path";

/// The fields of a Parquet message.
pub fn parquet(text: &str) -> Result<Fields, Failed> {
    let spaced = ["{", "}", "(", ")", ";", "="]
        .iter()
        .fold(text.to_owned(), |text, mark| text.replace(mark, &format!(" {mark} ")));
    let mut words = Words(spaced.split_whitespace().map(str::to_owned).rev().collect());
    words.skip(&["message"])?;
    words.next()?;
    let nodes = words.block()?;
    nodes.iter().map(|node| node.field("")).collect()
}

/// The fields of an ORC struct.
pub fn orc(text: &str) -> Result<Fields, Failed> {
    match orc_type(text, "")? {
        DataType::Struct(fields) => Ok(fields),
        _ => Err("not a struct".into()),
    }
}

struct Node {
    repetition: String,
    primitive: String,
    name: String,
    annotation: String,
    id: Option<String>,
    children: Vec<Node>,
}

/// The remaining words, in reverse order.
struct Words(Vec<String>);

impl Words {
    fn next(&mut self) -> Result<String, Failed> {
        self.0.pop().ok_or_else(|| "the text ends too early".into())
    }

    fn skip(&mut self, expected: &[&str]) -> Result<(), Failed> {
        for word in expected {
            let next = self.next()?;
            if next != *word {
                return Err(format!("{word} expected, {next} found").into());
            }
        }
        Ok(())
    }

    fn is(&self, word: &str) -> bool {
        self.0.last().is_some_and(|next| next == word)
    }

    fn block(&mut self) -> Result<Vec<Node>, Failed> {
        self.skip(&["{"])?;
        let mut nodes = Vec::new();
        while !self.is("}") {
            nodes.push(self.node()?);
        }
        self.skip(&["}"])?;
        Ok(nodes)
    }

    /// The words in parentheses, if there are any.
    fn parenthesis(&mut self) -> Result<String, Failed> {
        let (mut inside, mut depth) = (String::new(), 0);
        while depth > 0 || self.is("(") {
            let word = self.next()?;
            depth += i32::from(word == "(") - i32::from(word == ")");
            inside.push_str(&word);
        }
        Ok(inside.trim_start_matches('(').trim_end_matches(')').to_owned())
    }

    fn node(&mut self) -> Result<Node, Failed> {
        let (repetition, primitive) = (self.next()?, self.next()?);
        self.parenthesis()?; // the length of a fixed_len_byte_array
        let name = self.next()?;
        let annotation = self.parenthesis()?;
        let mut id = None;
        if self.is("=") {
            self.next()?;
            id = Some(self.next()?);
        }
        let children = if primitive == "group" { self.block()? } else { Vec::new() };
        if primitive != "group" {
            self.skip(&[";"])?;
        }
        Ok(Node { repetition, primitive, name, annotation, id, children })
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl Node {
    fn field(&self, parent: &str) -> Result<FieldRef, Failed> {
        let path = join(parent, &self.name);
        Ok(self.named(self.data_type(&path)?, path))
    }

    fn named(&self, ty: DataType, path: String) -> FieldRef {
        let mut metadata = HashMap::from([(PATH_KEY.to_owned(), path)]);
        metadata.extend(self.id.as_ref().map(|id| (FIELD_ID_KEY.to_owned(), id.clone())));
        Arc::new(Field::new(&self.name, ty, self.repetition == "optional").with_metadata(metadata))
    }

    fn data_type(&self, path: &str) -> Result<DataType, Failed> {
        Ok(match (self.primitive.as_str(), self.annotation.as_str()) {
            ("group", "LIST") => DataType::List(self.element(path)?),
            ("group", "MAP") => DataType::Map(self.entries(path)?, false),
            ("group", _) => {
                DataType::Struct(self.children.iter().map(|child| child.field(path)).collect::<Result<_, _>>()?)
            }
            ("binary", "UTF8" | "STRING" | "ENUM" | "JSON") => DataType::Utf8,
            ("binary" | "fixed_len_byte_array", _) => DataType::Binary,
            ("boolean", _) => DataType::Boolean,
            ("int32", "DATE") => DataType::Date32,
            ("int32", _) => DataType::Int32,
            ("int64", _) => DataType::Int64,
            ("float", _) => DataType::Float32,
            ("double", _) => DataType::Float64,
            (other, _) => return Err(format!("the test does not know {other}").into()),
        })
    }

    /// The element of a list with two or three levels (Parquet's "Backward-compatibility rules").
    fn element(&self, path: &str) -> Result<FieldRef, Failed> {
        let repeated = self.children.first().ok_or("a list without an element")?;
        let two_levels = repeated.primitive != "group"
            || repeated.children.len() > 1
            || repeated.name == "array"
            || repeated.name == format!("{}_tuple", self.name);
        match repeated.children.first() {
            Some(element) if !two_levels => element.field(&join(path, &repeated.name)),
            _ => repeated.field(path),
        }
    }

    fn entries(&self, path: &str) -> Result<FieldRef, Failed> {
        let repeated = self.children.first().ok_or("a map without entries")?;
        let path = join(path, &repeated.name);
        let pair = repeated.children.iter().map(|child| child.field(&path)).collect::<Result<Fields, _>>()?;
        Ok(Arc::new(Field::new(&repeated.name, DataType::Struct(pair), false)))
    }
}

fn orc_type(text: &str, path: &str) -> Result<DataType, Failed> {
    let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>');
    let field = |name: &str, text: &str| -> Result<FieldRef, Failed> {
        let path = join(path, name);
        let ty = orc_type(text, &path)?;
        Ok(Arc::new(Field::new(name, ty, true).with_metadata(HashMap::from([(PATH_KEY.to_owned(), path)]))))
    };
    if let Some(inner) = inner("struct") {
        let pairs = split(inner).into_iter().map(|part| part.split_once(':').ok_or("a field without a type"));
        return Ok(DataType::Struct(
            pairs
                .map(|pair| pair.map_err(Failed::from).and_then(|(name, ty)| field(name, ty)))
                .collect::<Result<_, _>>()?,
        ));
    }
    if let Some(inner) = inner("array") {
        return Ok(DataType::List(field("element", inner)?));
    }
    if let Some(inner) = inner("map") {
        let [key, value] = split(inner)[..] else { return Err("a map of other than two".into()) };
        let pair = Fields::from(vec![field("key", key)?, field("value", value)?]);
        return Ok(DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false));
    }
    Ok(match text {
        "bigint" => DataType::Int64,
        "int" | "smallint" | "tinyint" => DataType::Int32,
        "date" => DataType::Date32,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        other => return Err(format!("the test does not know {other}").into()),
    })
}

/// Splits at the commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < text.len() {
        parts.push(&text[from..]);
    }
    parts
}
