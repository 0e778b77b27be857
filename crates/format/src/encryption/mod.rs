//! Table encryption, as the Java library does it ("Encryption Keys"; the AES GCM stream specification).
//!
//! Every encrypted file has a key of its own, and an *AAD prefix*: random bytes that bind its blocks to this file. Both
//! are the [`KeyMetadata`] of the file, which are stored one level up: those of data and delete files in the manifest,
//! those of manifests in the manifest list, those of the manifest list, encrypted by a key encryption key ([`keys`]), in
//! the table's metadata. Key encryption keys are encrypted by the table's key, which never leaves its key management
//! service.

mod cipher;
pub mod key_metadata;
pub mod keys;
pub mod stream;

pub use cipher::Cipher;
pub use key_metadata::{HiddenBytes, KeyMetadata};
pub use stream::{Blocks, StreamEncryptor};

use crate::{Error, Result};

/// Fills an array with random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(no_random)?;
    Ok(bytes)
}

/// Random bytes of the system.
pub(crate) fn random_bytes(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(no_random)?;
    Ok(bytes)
}

fn no_random(error: getrandom::Error) -> Error {
    Error::invalid(format!("the system has no random bytes for encryption: {error}"))
}
