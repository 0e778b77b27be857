//! Reads and writes expressions as JSON: the REST protocol's `Expression`.

use serde_json::{Map, Value as Json, json};

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::transform::Transform;
use crate::types::value_json;
use crate::types::{PrimitiveType, Schema, Type};
use crate::value::envelope::Envelope;
use crate::value::variant::Path;

use super::convert::infinity;
use super::extract::Extract;
use super::literal::Literal;
use super::predicate::{Comparison, Operation, Predicate, Term, Test};
use super::{BoundExpr, Expr, Expression};

impl Expr {
    /// Reads JSON without a schema; literals are longs, doubles, strings and booleans, whatever the columns' types.
    pub fn from_json(json: &Json) -> Result<Self> {
        ExprReader { schema: None, depth: Limits::default().depth }.expression(json, 0)
    }

    /// Reads JSON whose literals are single values of their terms' types in a schema. Columns are found by exact name
    /// first, then ignoring case.
    pub fn from_json_typed(json: &Json, schema: &Schema) -> Result<Self> {
        ExprReader { schema: Some(schema), depth: Limits::default().depth }.expression(json, 0)
    }

    /// Writes JSON.
    pub fn to_json(&self) -> Result<Json> {
        write(self, &|predicate| {
            let operation = predicate.test.operation();
            let literal =
                |literal: &Literal| value_json::to_json(literal.value(), &Type::Primitive(literal.ty().clone()));
            let value = match &predicate.test {
                Test::Compare(_, value) | Test::StartsWith(value) | Test::NotStartsWith(value) => Some(literal(value)?),
                Test::In(values) | Test::NotIn(values) => Some(values.iter().map(literal).collect::<Result<_>>()?),
                Test::IsNull | Test::NotNull | Test::IsNan | Test::NotNan => None,
                Test::Intersects(envelope) | Test::Disjoint(envelope) => Some(json!(envelope.coordinates())),
            };
            let Term { name, transform, extract } = &predicate.term;
            Ok(write_predicate(operation, name, (transform.as_ref(), extract.as_ref()), value))
        })
    }
}

impl BoundExpr {
    /// Writes JSON; literals are single values of their types.
    pub fn to_json(&self) -> Result<Json> {
        write(self, &|predicate| {
            let term = &predicate.term;
            let value = match &predicate.test {
                Test::Compare(_, value) | Test::StartsWith(value) | Test::NotStartsWith(value) => {
                    Some(value_json::to_json(value, &term.ty)?)
                }
                Test::In(set) | Test::NotIn(set) => {
                    Some(set.values().iter().map(|value| value_json::to_json(value, &term.ty)).collect::<Result<_>>()?)
                }
                Test::IsNull | Test::NotNull | Test::IsNan | Test::NotNan => None,
                Test::Intersects(envelope) | Test::Disjoint(envelope) => Some(json!(envelope.coordinates())),
            };
            let change = (term.transform.as_ref(), term.extract.as_ref());
            Ok(write_predicate(predicate.test.operation(), &term.reference.name, change, value))
        })
    }
}

fn write<P>(expr: &Expression<P>, leaf: &impl Fn(&P) -> Result<Json>) -> Result<Json> {
    Ok(match expr {
        Expression::True => Json::Bool(true),
        Expression::False => Json::Bool(false),
        Expression::Not(child) => json!({"type": "not", "child": write(child, leaf)?}),
        Expression::And(left, right) => {
            json!({"type": "and", "left": write(left, leaf)?, "right": write(right, leaf)?})
        }
        Expression::Or(left, right) => json!({"type": "or", "left": write(left, leaf)?, "right": write(right, leaf)?}),
        Expression::Predicate(predicate) => leaf(predicate)?,
    })
}

fn write_predicate(
    operation: Operation,
    name: &str,
    change: (Option<&Transform>, Option<&Extract>),
    value: Option<Json>,
) -> Json {
    let mut object = Map::new();
    object.insert("type".into(), operation.name().into());
    let term = match change {
        (None, None) => name.into(),
        (_, Some(extract)) => json!({
            "type": "extract",
            "path": extract.path().to_string(),
            "data-type": extract.ty().to_string(),
            "term": name,
        }),
        (Some(transform), None) => json!({"type": "transform", "transform": transform.to_string(), "term": name}),
    };
    object.insert("term".into(), term);
    if let Some(value) = value {
        object.insert(if value.is_array() { "values" } else { "value" }.into(), value);
    }
    Json::Object(object)
}

struct ExprReader<'a> {
    schema: Option<&'a Schema>,
    depth: usize,
}

impl ExprReader<'_> {
    fn expression(&self, json: &Json, depth: usize) -> Result<Expr> {
        if depth > self.depth {
            return Err(Error::corrupt("", format!("expression nested deeper than {} levels", self.depth)));
        }
        let object = match json {
            Json::Bool(constant) => return Ok(constant_of(*constant)),
            Json::Object(object) => object,
            other => return Err(Error::corrupt("", format!("{} is not an expression", shown(other)))),
        };
        let name = string(object, "type")?;
        let child = |name: &str| {
            let child = object.get(name).ok_or_else(|| Error::corrupt("", format!("{name} is missing")))?;
            self.expression(child, depth + 1).map_err(|error| error.within(&format!("/{name}")))
        };
        match name.to_ascii_lowercase().as_str() {
            "true" => Ok(Expression::True),
            "false" => Ok(Expression::False),
            "literal" => match object.get("value") {
                Some(Json::Bool(constant)) => Ok(constant_of(*constant)),
                _ => Err(Error::corrupt("/value", "a literal expression is true or false")),
            },
            "not" => Ok(Expression::not(child("child")?)),
            "and" => Ok(Expression::and(child("left")?, child("right")?)),
            "or" => Ok(Expression::or(child("left")?, child("right")?)),
            _ => match Operation::from_name(name) {
                Some(operation) => self.predicate(operation, object).map(Expression::Predicate),
                None => Err(Error::corrupt("/type", format!("{name:?} is not an operation"))),
            },
        }
    }

    fn predicate(&self, operation: Operation, object: &Map<String, Json>) -> Result<Predicate> {
        let term = object.get("term").ok_or_else(|| Error::corrupt("", "term is missing"))?;
        let term = read_term(term, 0).map_err(|error| error.within("/term"))?;
        let ty = match self.schema {
            // Try the exact name first: another column may differ from it only in case.
            Some(schema) => Some(term.bind(schema, true).or_else(|_| term.bind(schema, false))?.ty),
            None => None,
        };
        let forbid = |name: &str| match object.get(name) {
            Some(_) => Err(Error::corrupt("", format!("{} does not take {name}", operation.name()))),
            None => Ok(()),
        };
        let test = match operation {
            Operation::In | Operation::NotIn => {
                forbid("value")?;
                let values = read_values(object, ty.as_ref())?;
                if operation == Operation::In { Test::In(values) } else { Test::NotIn(values) }
            }
            Operation::StIntersects | Operation::StDisjoint => {
                forbid("value")?;
                let envelope = read_envelope(object).map_err(|error| error.within("/values"))?;
                if operation == Operation::StIntersects { Test::Intersects(envelope) } else { Test::Disjoint(envelope) }
            }
            Operation::IsNull | Operation::NotNull | Operation::IsNan | Operation::NotNan => {
                forbid("value")?;
                forbid("values")?;
                match operation {
                    Operation::IsNull => Test::IsNull,
                    Operation::NotNull => Test::NotNull,
                    Operation::IsNan => Test::IsNan,
                    _ => Test::NotNan,
                }
            }
            _ => {
                forbid("values")?;
                let value = object.get("value").ok_or_else(|| Error::corrupt("", "value is missing"))?;
                let value = read_literal(value, ty.as_ref()).map_err(|error| error.within("/value"))?;
                literal_test(operation, value)
            }
        };
        Ok(Predicate { term, test })
    }
}

/// Reads a box from its coordinates: `[xmin, ymin, xmax, ymax]`.
fn read_envelope(object: &Map<String, Json>) -> Result<Envelope> {
    let values = object.get("values").and_then(Json::as_array).map(Vec::as_slice);
    let numbers = values.unwrap_or_default().iter().map(Json::as_f64).collect::<Option<Vec<f64>>>();
    let corners = numbers.and_then(|numbers| <[f64; 4]>::try_from(numbers).ok());
    let corners = corners.ok_or_else(|| Error::corrupt("", "expected four numbers: xmin, ymin, xmax, ymax"))?;
    Envelope::new(corners).map_err(|error| Error::corrupt("", error.to_string()))
}

fn literal_test(operation: Operation, value: Literal) -> Test<Literal, Vec<Literal>> {
    match operation {
        Operation::StartsWith => Test::StartsWith(value),
        Operation::NotStartsWith => Test::NotStartsWith(value),
        Operation::Lt => Test::Compare(Comparison::Lt, value),
        Operation::LtEq => Test::Compare(Comparison::LtEq, value),
        Operation::Gt => Test::Compare(Comparison::Gt, value),
        Operation::GtEq => Test::Compare(Comparison::GtEq, value),
        Operation::NotEq => Test::Compare(Comparison::NotEq, value),
        _ => Test::Compare(Comparison::Eq, value),
    }
}

fn constant_of<P>(constant: bool) -> Expression<P> {
    if constant { Expression::True } else { Expression::False }
}

fn string<'a>(object: &'a Map<String, Json>, name: &str) -> Result<&'a str> {
    object
        .get(name)
        .and_then(Json::as_str)
        .ok_or_else(|| Error::corrupt("", format!("{name} is missing or not a string")))
}

/// Reads a term: a name, `{"type": "reference", "term": name}` or
/// `{"type": "transform", "transform": text, "term": term}`.
fn read_term(json: &Json, depth: usize) -> Result<Term> {
    if depth > Limits::default().depth {
        return Err(Error::corrupt("", "terms nested too deeply"));
    }
    match json {
        Json::String(name) => Ok(Term::column(name.as_str())),
        Json::Object(object) => match string(object, "type")? {
            "reference" => Ok(Term::column(string(object, "term")?)),
            "transform" => {
                let inner = object.get("term").ok_or_else(|| Error::corrupt("", "term is missing"))?;
                let transform = Transform::parse(string(object, "transform")?)?;
                // The protocol requires a column here. If it is a transform again, the Java library uses only its
                // column.
                let name = read_term(inner, depth + 1).map_err(|error| error.within("/term"))?.name;
                Ok(Term::transform(transform, name))
            }
            "extract" => {
                let path =
                    Path::parse(string(object, "path")?).map_err(|error| Error::corrupt("/path", error.to_string()))?;
                let ty = PrimitiveType::parse(string(object, "data-type")?);
                let extract = ty.and_then(|ty| Extract::new(path, ty));
                let extract = extract.map_err(|error| Error::corrupt("/data-type", error.to_string()))?;
                let inner = object.get("term").ok_or_else(|| Error::corrupt("", "term is missing"))?;
                let name = read_term(inner, depth + 1).map_err(|error| error.within("/term"))?.name;
                Ok(Term::extract(extract, name))
            }
            other => Err(Error::corrupt("/type", format!("{other:?} is not a kind of term"))),
        },
        other => Err(Error::corrupt("", format!("{} is not a term", shown(other)))),
    }
}

fn read_values(object: &Map<String, Json>, ty: Option<&Type>) -> Result<Vec<Literal>> {
    let values = match object.get("values") {
        Some(Json::Array(values)) => values,
        Some(other) => return Err(Error::corrupt("/values", format!("{} is not an array", shown(other)))),
        None => return Err(Error::corrupt("", "values is missing")),
    };
    let read =
        |(place, value)| read_literal(value, ty).map_err(|error: Error| error.within(&format!("/values/{place}")));
    values.iter().enumerate().map(read).collect()
}

/// Reads a literal: a value, or `{"type": "literal", "value": value}`.
fn read_literal(json: &Json, ty: Option<&Type>) -> Result<Literal> {
    let json = match json {
        Json::Object(object) if object.contains_key("type") => {
            let kind = string(object, "type")?;
            if !kind.eq_ignore_ascii_case("literal") {
                return Err(Error::corrupt("/type", format!("{kind:?} is not a literal")));
            }
            object.get("value").ok_or_else(|| Error::corrupt("", "value is missing"))?
        }
        other => other,
    };
    match ty {
        Some(Type::Primitive(ty)) => read_typed(json, ty),
        Some(other) => Err(Error::invalid(format!("a column of type {other} has no literals"))),
        None => read_untyped(json),
    }
}

fn read_typed(json: &Json, ty: &PrimitiveType) -> Result<Literal> {
    if json.is_null() {
        return Err(Error::corrupt("", "null is not a literal: use is-null"));
    }
    let value = match json.as_str().and_then(|text| infinity(text, ty)) {
        Some(infinite) => infinite,
        None => value_json::from_json(json, &Type::Primitive(ty.clone()))?,
    };
    Literal::new(ty.clone(), value)
}

fn read_untyped(json: &Json) -> Result<Literal> {
    match json {
        Json::String(text) => Ok(Literal::json_string(text.as_str())),
        Json::Bool(value) => Ok(Literal::boolean(*value)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(long), _) => Ok(Literal::long(long)),
            (None, Some(double)) if number.is_f64() => Literal::double(double),
            _ => Err(Error::corrupt("", format!("{number} does not fit 64 bits"))),
        },
        Json::Null => Err(Error::corrupt("", "null is not a literal: use is-null")),
        other => Err(Error::corrupt("", format!("{} is not a literal", shown(other)))),
    }
}

/// The beginning of a JSON text, for messages.
fn shown(json: &Json) -> String {
    const SHOWN: usize = 60;
    let text = json.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
