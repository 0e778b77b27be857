//! Random tables with evolved schemas and specs: columns, specs, and files with their rows.

use icefield_format::manifest::DataFile;
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::value::Value;

use crate::pruning::draw::Draw;
use crate::pruning::stored::{Bounds, metrics};
use crate::pruning::values::{apply, kinds, neighbour, pool, promoted, transforms};

pub type Row = Vec<Option<Value>>;

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// The type in the first files, and the type today.
    pub types: (PrimitiveType, PrimitiveType),
    pub required: bool,
    /// Whether `hour` is applied to the column; it has no result for the extremes.
    hours: bool,
    /// The transforms by which files are partitioned.
    pub partitioned: Vec<Transform>,
}

/// Files of one spec, written at one time.
#[derive(Debug)]
pub struct Manifest {
    pub spec: usize,
    /// Whether its files were written before the columns were promoted.
    pub early: bool,
    /// Whether the manifest was rewritten after the promotion.
    pub rewritten: bool,
    pub summaries: bool,
    pub bounds: Bounds,
    pub files: Vec<File>,
}

#[derive(Debug)]
pub struct File {
    /// The rows as written.
    written: Vec<Row>,
    /// The rows as read today.
    pub rows: Vec<Row>,
    /// The manifest entry, with partition values in the types of its manifest.
    pub entry: DataFile,
}

#[derive(Debug)]
pub struct World {
    pub columns: Vec<Column>,
    pub specs: Vec<PartitionSpec>,
    pub manifests: Vec<Manifest>,
}

impl Column {
    /// The values for which partition transforms, promotions and terms have results, and null if the column allows it.
    pub fn within(&self, values: Vec<Value>) -> Vec<Option<Value>> {
        let (written, today) = &self.types;
        let of_today = |value: &Value| !self.hours || apply(&Transform::Hour, today, Some(value)).is_some();
        let has = |value: &Value| match promoted(value, today) {
            Some(promoted) if written != today && !matches!(value, Value::Long(_)) => of_today(&promoted),
            Some(promoted) => of_today(&promoted),
            None => false,
        };
        values.into_iter().filter(|value| has(value)).map(Some).collect()
    }

    /// The transforms that have results for the column's values.
    pub fn within_hours(&self, transforms: Vec<Transform>) -> Vec<Transform> {
        transforms.into_iter().filter(|transform| self.hours || *transform != Transform::Hour).collect()
    }

    fn draw(draw: &mut Draw, number: usize, kinds: &[(PrimitiveType, PrimitiveType)]) -> Self {
        let types = draw.pick(kinds);
        let timed = transforms(&(types.1.clone(), types.1.clone())).contains(&Transform::Hour);
        let (required, hours) = (draw.chance(15), timed && draw.chance(50));
        Self { name: format!("c{number}"), types, required, hours, partitioned: Vec::new() }
    }

    fn value(&self, draw: &mut Draw, early: bool) -> Option<Value> {
        if !self.required && draw.chance(12) {
            return None;
        }
        let ty = if early { &self.types.0 } else { &self.types.1 };
        let values = pool(ty);
        let value = draw.pick(&values);
        let value =
            if *ty != PrimitiveType::Time && draw.chance(20) { neighbour(&value, draw.chance(50)) } else { value };
        let held = self.within(vec![value]).pop().or_else(|| self.within(values).into_iter().next());
        held.flatten()
    }
}

pub fn schema(columns: &[Column], today: bool) -> Schema {
    let field = |(id, column): (i32, &Column)| {
        let ty = if today { column.types.1.clone() } else { column.types.0.clone() };
        Field { required: column.required, ..Field::optional(id, column.name.as_str(), ty) }
    };
    Schema::new(0, (1..).zip(columns).map(field).collect()).unwrap()
}

impl World {
    pub fn draw(draw: &mut Draw) -> Self {
        let mut columns: Vec<Column> =
            (0..1 + draw.below(3)).map(|number| Column::draw(draw, number, &kinds())).collect();
        let specs = specs(draw, &mut columns);
        let mut world = Self { columns, specs, manifests: Vec::new() };
        for _ in 0..1 + draw.below(4) {
            let manifest = world.manifest(draw);
            world.manifests.push(manifest);
        }
        world
    }

    /// An unpartitioned table whose columns always had some of these types.
    pub fn plain(draw: &mut Draw, types: &[PrimitiveType]) -> Self {
        let kinds: Vec<_> = types.iter().map(|ty| (ty.clone(), ty.clone())).collect();
        let columns = (0..1 + draw.below(2)).map(|number| Column::draw(draw, number, &kinds)).collect();
        let mut world = Self { columns, specs: vec![PartitionSpec::unpartitioned()], manifests: Vec::new() };
        world.manifests.push(world.manifest(draw));
        world
    }

    /// Values of a column as read, for literals.
    pub fn literals(&self, position: usize) -> Vec<Option<Value>> {
        let files = self.manifests.iter().flat_map(|manifest| &manifest.files);
        files.flat_map(|file| &file.rows).map(|row| row[position].clone()).collect()
    }

    fn manifest(&self, draw: &mut Draw) -> Manifest {
        let (spec, early) = (draw.below(self.specs.len()), draw.chance(50));
        let mut manifest = Manifest {
            spec,
            early,
            rewritten: !early || draw.chance(30),
            summaries: !draw.chance(15),
            bounds: Bounds::draw(draw),
            files: Vec::new(),
        };
        for _ in 0..1 + draw.below(4) {
            let file = self.file(draw, &manifest);
            manifest.files.push(file);
        }
        manifest
    }

    /// A file with rows of one partition; rows outside the partition of the first row are dropped.
    fn file(&self, draw: &mut Draw, manifest: &Manifest) -> File {
        let spec = &self.specs[manifest.spec];
        let row =
            |draw: &mut Draw| -> Row { self.columns.iter().map(|column| column.value(draw, manifest.early)).collect() };
        let mut written: Vec<Row> = (0..1 + draw.below(4)).map(|_| row(draw)).collect();
        if draw.chance(12) {
            written = vec![written[0].clone(); written.len()];
        }
        let tuple = self.partition(spec, &written[0], manifest.early);
        written.retain(|row| self.partition(spec, row, manifest.early) == tuple);
        let today = |row: &Row| -> Row {
            let value = |(column, value): (&Column, &Option<Value>)| {
                value.as_ref().map(|value| promoted(value, &column.types.1).unwrap())
            };
            self.columns.iter().zip(row).map(value).collect()
        };
        let partition = if manifest.rewritten { self.rewritten(spec, &tuple) } else { tuple };
        let mut entry = DataFile {
            file_format: if draw.chance(50) { "ORC" } else { "PARQUET" }.to_owned(),
            partition,
            record_count: written.len() as i64,
            file_size_in_bytes: 1000,
            ..DataFile::default()
        };
        for position in 0..self.columns.len() {
            let values: Vec<Option<&Value>> = written.iter().map(|row| row[position].as_ref()).collect();
            let bounds = Bounds::draw(draw);
            metrics(&mut entry, i32::try_from(position).unwrap() + 1, &values, bounds, draw);
        }
        File { rows: written.iter().map(today).collect(), written, entry }
    }

    /// The partition tuple of a row, with the types of its time.
    fn partition(&self, spec: &PartitionSpec, row: &Row, early: bool) -> Vec<Option<Value>> {
        let value = |field: &PartitionField| {
            let position = usize::try_from(field.source_ids[0]).unwrap() - 1;
            let types = &self.columns[position].types;
            let ty = if early { &types.0 } else { &types.1 };
            if field.transform.is_void() { None } else { apply(&field.transform, ty, row[position].as_ref()) }
        };
        spec.fields.iter().map(value).collect()
    }

    /// Converts a partition tuple to today's types.
    pub fn rewritten(&self, spec: &PartitionSpec, tuple: &[Option<Value>]) -> Vec<Option<Value>> {
        let types = spec.partition_type(&schema(&self.columns, true)).fields;
        let value = |(value, field): (&Option<Value>, &Field)| {
            value.as_ref().map(|value| promoted(value, field.ty.as_primitive().unwrap()).unwrap())
        };
        tuple.iter().zip(&types).map(value).collect()
    }
}

impl File {
    /// The file as text for messages.
    pub fn shown(&self) -> String {
        format!("rows {:?} (written as {:?}), {:?}", self.rows, self.written, self.entry)
    }
}

/// One to three specs; a field that several of them share has the same id.
fn specs(draw: &mut Draw, columns: &mut [Column]) -> Vec<PartitionSpec> {
    let mut known: Vec<(usize, Transform)> = Vec::new();
    let mut specs: Vec<PartitionSpec> = Vec::new();
    for _ in 0..1 + draw.below(3) {
        let mut fields: Vec<PartitionField> = Vec::new();
        for _ in 0..draw.below(4) {
            let position = draw.below(columns.len());
            let column = &mut columns[position];
            let choices = column.within_hours(transforms(&column.types));
            let Some(first) = choices.first().cloned() else { continue };
            // The first transform of each column is the identity or the narrowest.
            let transform = if draw.chance(75) { draw.pick(&choices) } else { first };
            let chosen = (position, transform);
            let place = known.iter().position(|one| *one == chosen).unwrap_or_else(|| {
                known.push(chosen.clone());
                known.len() - 1
            });
            let field_id = 1000 + i32::try_from(place).unwrap();
            if fields.iter().all(|field| field.field_id != field_id) {
                column.partitioned.push(chosen.1.clone());
                let source_ids = vec![i32::try_from(position).unwrap() + 1];
                fields.push(PartitionField { source_ids, field_id, name: format!("p{place}"), transform: chosen.1 });
            }
        }
        let spec = PartitionSpec { spec_id: i32::try_from(specs.len()).unwrap(), fields };
        if specs.iter().all(|known| !known.compatible_with(&spec)) {
            specs.push(spec);
        }
    }
    specs
}
