//! Encrypted columns, which are written twice: masked, and encrypted for readers with the key.

use arrow_array::ArrayRef;

use super::writer::ColumnWriter;
use crate::error::Result;
use crate::mask::Mask;
use crate::proto::ColumnStatistics;
use crate::types::TypeDescription;
use crate::write::stream::Context;
use crate::write::stripe::{StripeContent, StripeWriter, VariantStripe};

/// The root of an encrypted variant.
#[derive(Debug)]
pub(super) struct EncryptedColumn {
    node: TypeDescription,
    variant: usize,
    mask: Mask,
    masked: Box<dyn ColumnWriter>,
    own: Box<dyn ColumnWriter>,
}

impl EncryptedColumn {
    /// Creates the column from two writers of the same type.
    pub(super) fn new(
        node: &TypeDescription,
        variant: usize,
        mask: &Mask,
        masked: Box<dyn ColumnWriter>,
        own: Box<dyn ColumnWriter>,
    ) -> Self {
        Self { node: node.clone(), variant, mask: mask.clone(), masked, own }
    }
}

impl ColumnWriter for EncryptedColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        self.masked.write(&self.mask.apply(&self.node, array)?, context)?;
        self.own.write(array, context)
    }

    fn begin_group(&mut self, context: &Context) {
        self.masked.begin_group(context);
        self.own.begin_group(context);
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.masked.end_group(context)?;
        self.own.end_group(context)
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        self.masked.finish(stripe)?;
        let mut own = StripeWriter::new(stripe.context);
        self.own.finish(&mut own)?;
        let StripeContent { index, data, encodings, statistics, .. } = own.content;
        let mut file_statistics = Vec::new();
        self.own.file_statistics(&mut file_statistics);
        let variant = self.variant;
        stripe.content.variants.push(VariantStripe { variant, index, data, encodings, statistics, file_statistics });
        Ok(())
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        self.masked.file_statistics(out);
    }

    fn memory(&self) -> usize {
        self.masked.memory() + self.own.memory()
    }
}
