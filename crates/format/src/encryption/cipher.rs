//! AES GCM with random nonces: the form in which keys and blocks are stored, nonce, ciphertext and tag.

use aes_gcm::aes::Aes192;
use aes_gcm::aes::cipher::consts::U12;
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, AesGcm, KeyInit, Nonce, Tag};

use super::random;
use crate::{Error, Result};

/// Bytes of a nonce.
pub(super) const NONCE: usize = 12;
/// Bytes of a tag.
pub(super) const TAG: usize = 16;
/// Bytes by which a ciphertext is longer than its plaintext.
pub(super) const OVERHEAD: usize = NONCE + TAG;

/// AES GCM with one key of 16, 24 or 32 bytes.
pub struct Cipher(Inner);

enum Inner {
    Aes128(Box<Aes128Gcm>),
    Aes192(Box<AesGcm<Aes192, U12>>),
    Aes256(Box<Aes256Gcm>),
}

/// Does not print the key.
impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cipher").finish_non_exhaustive()
    }
}

/// A ciphertext that its tag does not fit: another key, another place, or changed bytes. Which of them cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch;

impl Cipher {
    /// The cipher of a key.
    ///
    /// # Errors
    /// A key whose length is not 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        let bytes = key.len();
        let wrong = |_| Error::invalid(format!("a key of {bytes} bytes: AES keys have 16, 24 or 32"));
        Ok(Self(match bytes {
            16 => Inner::Aes128(Box::new(Aes128Gcm::new_from_slice(key).map_err(wrong)?)),
            24 => Inner::Aes192(Box::new(AesGcm::new_from_slice(key).map_err(wrong)?)),
            // Any other length is an error.
            _ => Inner::Aes256(Box::new(Aes256Gcm::new_from_slice(key).map_err(wrong)?)),
        }))
    }

    /// Encrypts under a random nonce and appends nonce, ciphertext and tag to `out`.
    ///
    /// # Errors
    /// A system without random bytes.
    pub fn encrypt(&self, plain: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let nonce = Nonce::<U12>::from(random::<NONCE>()?);
        out.reserve(plain.len() + OVERHEAD);
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let text = out.get_mut(start..).unwrap_or_default();
        let tag = match &self.0 {
            Inner::Aes128(cipher) => cipher.encrypt_inout_detached(&nonce, aad, text.into()),
            Inner::Aes192(cipher) => cipher.encrypt_inout_detached(&nonce, aad, text.into()),
            Inner::Aes256(cipher) => cipher.encrypt_inout_detached(&nonce, aad, text.into()),
        };
        let tag = tag.map_err(|_| Error::invalid("more than 64 GiB to encrypt at once"))?;
        out.extend_from_slice(&tag);
        Ok(())
    }

    /// Decrypts nonce, ciphertext and tag, and appends the plaintext to `out`; after an error `out` is as before.
    ///
    /// # Errors
    /// A text that was not encrypted by this key and with these additional data, or was changed.
    pub fn decrypt(&self, sealed: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Result<(), Mismatch> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE>().ok_or(Mismatch)?;
        let (text, tag) = rest.split_last_chunk::<TAG>().ok_or(Mismatch)?;
        let (nonce, tag) = (Nonce::<U12>::from(*nonce), Tag::from(*tag));
        let start = out.len();
        out.extend_from_slice(text);
        let text = out.get_mut(start..).unwrap_or_default();
        let done = match &self.0 {
            Inner::Aes128(cipher) => cipher.decrypt_inout_detached(&nonce, aad, text.into(), &tag),
            Inner::Aes192(cipher) => cipher.decrypt_inout_detached(&nonce, aad, text.into(), &tag),
            Inner::Aes256(cipher) => cipher.decrypt_inout_detached(&nonce, aad, text.into(), &tag),
        };
        if done.is_err() {
            out.truncate(start);
            return Err(Mismatch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// Test cases 4, 10 and 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega), one for each length of keys.
    #[test]
    fn ciphertexts_of_the_definition_of_gcm() {
        const KEY: &str = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
        const PLAIN: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        for (key, cipher, tag) in [
            (
                16,
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ),
            (
                24,
                "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c\
                 7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
                "2519498e80f1478f37ba55bd6d27618c",
            ),
            (
                32,
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ] {
            let cipher_of_key = Cipher::new(&hex(KEY)[..key]).unwrap();
            let sealed = [hex("cafebabefacedbaddecaf888"), hex(&cipher.replace(' ', "")), hex(tag)].concat();
            let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
            let mut plain = Vec::new();
            cipher_of_key.decrypt(&sealed, &aad, &mut plain).unwrap();
            assert_eq!(plain, hex(&PLAIN.replace(' ', "")), "{key} bytes");
            let mut again = Vec::new();
            cipher_of_key.encrypt(&plain, &aad, &mut again).unwrap();
            assert_ne!(again, sealed, "nonces are random");
            for changed in [0, NONCE, again.len() - 1] {
                let mut other = again.clone();
                other[changed] ^= 1;
                assert_eq!(cipher_of_key.decrypt(&other, &aad, &mut Vec::new()), Err(Mismatch), "byte {changed}");
            }
            assert_eq!(cipher_of_key.decrypt(&again, b"other", &mut Vec::new()), Err(Mismatch));
        }
        assert!(Cipher::new(&[0; 17]).is_err());
    }
}
