//! Random rows, predicates, specs and files of one schema, with one type of each kind.

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::expr::{
    Comparison, Datum, Expr, Expression, FieldStatistics, FileStatistics, Literal, Predicate, Term, Test,
};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema, StructType, Type};
use icefield_format::value::{Value, binary, bounds};
use proptest::prelude::*;
use proptest::sample::select;

pub type Row = Vec<Option<Value>>;

/// The columns of the predicates: name, id, type.
pub fn columns() -> Vec<(&'static str, i32, PrimitiveType)> {
    use PrimitiveType as P;
    vec![
        ("id", 1, P::Long),
        ("i", 2, P::Int),
        ("d", 3, P::Double),
        ("f", 4, P::Float),
        ("s", 5, P::String),
        ("ts", 6, P::Timestamp),
        ("tz", 7, P::TimestamptzNs),
        ("day", 8, P::Date),
        ("dec", 9, P::Decimal { precision: 9, scale: 2 }),
        ("b", 10, P::Boolean),
        ("u", 11, P::Uuid),
        ("bin", 12, P::Binary),
        ("fx", 13, P::Fixed(2)),
        ("time", 14, P::Time),
        ("st.a", 16, P::Int),
        ("st.s", 17, P::String),
    ]
}

pub fn schema() -> Schema {
    let plain = columns().into_iter().filter(|(name, ..)| !name.contains('.'));
    let mut fields: Vec<Field> =
        plain.map(|(name, id, ty)| Field { required: id == 1, ..Field::optional(id, name, ty) }).collect();
    let inner = vec![Field::optional(16, "a", PrimitiveType::Int), Field::required(17, "s", PrimitiveType::String)];
    fields.push(Field::optional(15, "st", Type::Struct(Arc::new(StructType { fields: inner }))));
    Schema::new(0, fields).unwrap()
}

/// Values of a type, few enough that equal ones are frequent.
pub fn pool(ty: &PrimitiveType) -> Vec<Value> {
    use PrimitiveType as P;
    let text = ["", "a", "ab", "abc", "abd", "b", "é", "😀", "😀a", "\u{ffff}z"];
    match ty {
        P::Boolean => [false, true].map(Value::Boolean).to_vec(),
        P::Int => [-1000, -11, -10, -1, 0, 1, 9, 10, 11, 99, i32::MAX].map(Value::Int).to_vec(),
        P::Date => [-20_000, -366, -1, 0, 1, 364, 365, 17_501, 17_532].map(Value::Int).to_vec(),
        P::Long => [-1_000_000, -11, -1, 0, 1, 5, 9, 10, 79, 80, i64::MAX].map(Value::Long).to_vec(),
        P::Time => [0, 1, 36_775_038_194, 86_399_999_999].map(Value::Long).to_vec(),
        P::Timestamp => [-86_400_000_001, -3_600_000_000, -1, 0, 1, 1_512_151_975_038_194, 1_512_151_975_038_195]
            .map(Value::Long)
            .to_vec(),
        P::TimestamptzNs => {
            [-86_400_000_000_001, -1001, -1, 0, 999, 1_512_151_975_038_194_001].map(Value::Long).to_vec()
        }
        P::Float => [f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, 3e38, f32::NAN].map(Value::Float).to_vec(),
        P::Double => [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, 1e300, f64::NAN, -f64::NAN].map(Value::Double).to_vec(),
        P::Decimal { .. } => [-10_000, -1, 0, 1, 999, 1000, 1420, 999_999_999].map(Value::Decimal).to_vec(),
        P::String => text.map(|text| Value::String(text.to_owned())).to_vec(),
        P::Uuid => [0, 1, 1 << 127, u128::MAX].map(|bits: u128| Value::Uuid(bits.to_be_bytes())).to_vec(),
        P::Fixed(_) => [[0, 0], [0, 1], [0x7f, 0xff], [0x80, 0]].map(|bytes| Value::Binary(bytes.to_vec())).to_vec(),
        _ => [&[][..], &[0], &[0, 1], &[0x7f], &[0x80], &[0xff, 0xff]]
            .map(|bytes| Value::Binary(bytes.to_vec()))
            .to_vec(),
    }
}

fn cell(ty: &PrimitiveType, required: bool) -> BoxedStrategy<Option<Value>> {
    let some = select(pool(ty)).prop_map(Some);
    if required { some.boxed() } else { prop_oneof![4 => some, 1 => Just(None)].boxed() }
}

pub fn row() -> impl Strategy<Value = Row> {
    let plain: Vec<_> = columns().into_iter().filter(|(name, ..)| !name.contains('.')).collect();
    let plain: Vec<_> = plain.iter().map(|(_, id, ty)| cell(ty, *id == 1)).collect();
    let inner = (cell(&PrimitiveType::Int, false), cell(&PrimitiveType::String, true));
    let inner = inner.prop_map(|(a, s)| Some(Value::Struct(vec![a, s])));
    (plain, prop_oneof![3 => inner, 1 => Just(None)]).prop_map(|(mut row, inner)| {
        row.push(inner);
        row
    })
}

/// Literals of a type, and some that are converted to the type.
fn literal(ty: &PrimitiveType) -> BoxedStrategy<Literal> {
    let exact = pool(ty).into_iter().filter_map({
        let ty = ty.clone();
        // as in text and programs: a literal does not contain the type of a decimal or fixed column
        move |value| match (&ty, value) {
            (PrimitiveType::Fixed(_), Value::Binary(bytes)) => Some(Literal::binary(bytes)),
            (PrimitiveType::Decimal { scale, .. }, Value::Decimal(unscaled)) => {
                Some(Literal::decimal(unscaled, *scale))
            }
            (ty, value) => Literal::new(ty.clone(), value).ok(),
        }
    });
    let mut literals: Vec<Literal> = exact.collect();
    match ty {
        PrimitiveType::Int => literals.extend([i64::MAX, i64::MIN, 10].map(Literal::long)),
        PrimitiveType::Long => literals.push(Literal::decimal(1 << 70, 0)),
        PrimitiveType::Decimal { .. } => {
            literals.extend(
                [(14_205, 3), (142, 1), (-1, 4), (i128::MAX, 0)]
                    .map(|(unscaled, scale)| Literal::decimal(unscaled, scale)),
            );
            literals.push(Literal::double(14.2).unwrap());
        }
        PrimitiveType::Float => literals.push(Literal::double(1e300).unwrap()),
        PrimitiveType::Double => literals.push(Literal::long(1)),
        PrimitiveType::Date => literals.push(Literal::string("2017-12-01")),
        PrimitiveType::Timestamp => literals.push(Literal::string("2017-12-01T18:12:55.038194")),
        _ => {}
    }
    select(literals).boxed()
}

fn test(ty: &PrimitiveType) -> BoxedStrategy<Test<Literal, Vec<Literal>>> {
    use Comparison as C;
    let comparison = select(vec![C::Lt, C::LtEq, C::Gt, C::GtEq, C::Eq, C::NotEq]);
    let mut tests = vec![
        Just(Test::IsNull).boxed(),
        Just(Test::NotNull).boxed(),
        (comparison.clone(), literal(ty)).prop_map(|(comparison, literal)| Test::Compare(comparison, literal)).boxed(),
        (comparison, literal(ty)).prop_map(|(comparison, literal)| Test::Compare(comparison, literal)).boxed(),
        prop::collection::vec(literal(ty), 0..4).prop_map(Test::In).boxed(),
        prop::collection::vec(literal(ty), 0..4).prop_map(Test::NotIn).boxed(),
    ];
    if matches!(ty, PrimitiveType::Float | PrimitiveType::Double) {
        tests.extend([Just(Test::IsNan).boxed(), Just(Test::NotNan).boxed()]);
    }
    if *ty == PrimitiveType::String {
        tests.push(literal(ty).prop_map(Test::StartsWith).boxed());
        tests.push(literal(ty).prop_map(Test::NotStartsWith).boxed());
    }
    prop::strategy::Union::new(tests).boxed()
}

/// All transforms for the type.
pub fn transforms(ty: &PrimitiveType) -> Vec<Transform> {
    use Transform as T;
    let all = [
        T::Identity,
        T::Bucket(4),
        T::Bucket(7),
        T::Truncate(2),
        T::Truncate(10),
        T::Year,
        T::Month,
        T::Day,
        T::Hour,
        T::Void,
    ];
    all.into_iter().filter(|transform| transform.result_type(&ty.clone().into()).is_some()).collect()
}

fn predicate() -> BoxedStrategy<Expr> {
    let leaf = |term: Term, ty: &PrimitiveType| {
        test(ty).prop_map(move |test| Expression::Predicate(Predicate { term: term.clone(), test })).boxed()
    };
    let mut leaves = Vec::new();
    for (name, _, ty) in columns() {
        leaves.push((4, leaf(Term::column(name), &ty)));
        for transform in transforms(&ty) {
            let result = transform.result_type(&ty.clone().into()).unwrap();
            leaves.push((1, leaf(Term::transform(transform, name), result.as_primitive().unwrap())));
        }
    }
    prop::strategy::Union::new_weighted(leaves).boxed()
}

pub fn expr() -> impl Strategy<Value = Expr> {
    predicate().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| Expr::and(left, right)),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| Expr::or(left, right)),
            inner.prop_map(Expr::not),
        ]
    })
}

pub fn spec() -> impl Strategy<Value = PartitionSpec> {
    let mut choices = Vec::new();
    for (name, id, ty) in columns() {
        choices.extend(transforms(&ty).into_iter().map(|transform| (name, id, transform)));
    }
    prop::collection::vec(select(choices), 1..5).prop_map(|chosen| {
        let field = |(number, (name, id, transform)): (usize, (&str, i32, Transform))| PartitionField {
            source_ids: vec![id],
            field_id: 1000 + i32::try_from(number).unwrap(),
            name: format!("p{number}_{name}"),
            transform,
        };
        PartitionSpec { spec_id: 0, fields: chosen.into_iter().enumerate().map(field).collect() }
    })
}

/// The value of a column in a row.
pub fn value_of(row: &Row, id: i32) -> Option<&Value> {
    let inner = |position: usize| match row.last().unwrap() {
        Some(Value::Struct(fields)) => fields[position].as_ref(),
        _ => None,
    };
    match id {
        16 => inner(0),
        17 => inner(1),
        id => row[usize::try_from(id).unwrap() - 1].as_ref(),
    }
}

/// The partition tuple of a row.
pub fn partition(spec: &PartitionSpec, row: &Row) -> Row {
    let types: HashMap<i32, PrimitiveType> = columns().into_iter().map(|(_, id, ty)| (id, ty)).collect();
    let value = |field: &PartitionField| {
        let id = field.source_ids[0];
        field.transform.apply(&types[&id].clone().into(), value_of(row, id)).unwrap()
    };
    spec.fields.iter().map(value).collect()
}

/// The metrics that a writer would produce for a file of these rows, with bounds truncated to a length, and without
/// counts if `counts` is false.
#[derive(Debug, Clone)]
pub struct File {
    pub record_count: i64,
    pub fields: HashMap<i32, Metrics>,
}

#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub counts: Option<[i64; 3]>,
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
}

impl File {
    pub fn of(rows: &[Row], length: usize, counts: bool) -> Self {
        let field = |(_, id, ty): (&str, i32, PrimitiveType)| {
            let values: Vec<&Value> = rows.iter().filter_map(|row| value_of(row, id)).collect();
            let nans = values.iter().filter(|value| Datum::of(value).unwrap().is_nan()).count();
            let (lower, upper) = bounds_of(&values, &ty, length);
            let of_rows = [rows.len(), rows.len() - values.len(), nans].map(|count| i64::try_from(count).unwrap());
            (id, Metrics { counts: counts.then_some(of_rows), lower, upper })
        };
        Self { record_count: i64::try_from(rows.len()).unwrap(), fields: columns().into_iter().map(field).collect() }
    }
}

/// Bounds of the values that are not NaN.
pub fn bounds_of(values: &[&Value], ty: &PrimitiveType, length: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let mut sorted: Vec<&Value> = values.iter().copied().filter(|value| !Datum::of(value).unwrap().is_nan()).collect();
    sorted.sort_by(|a, b| Datum::of(a).unwrap().order(Datum::of(b).unwrap()));
    let lower = sorted.first().map(|value| bounds::lower_bound((*value).clone(), ty, length));
    let upper = sorted.last().and_then(|value| bounds::upper_bound((*value).clone(), ty, length));
    let bytes = |value: Value| binary::to_bytes(&value, ty).unwrap();
    (lower.map(bytes), upper.map(bytes))
}

impl FileStatistics for File {
    fn record_count(&self) -> i64 {
        self.record_count
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        let Some(field) = self.fields.get(&id) else { return FieldStatistics::default() };
        let [values, nulls, nans] = field.counts.map_or([None; 3], |counts| counts.map(Some));
        let (lower, upper) = (field.lower.as_deref(), field.upper.as_deref());
        FieldStatistics { value_count: values, null_count: nulls, nan_count: nans, lower, upper }
    }
}
