//! Compiles loops over blocks for each set of vector instructions that a CPU may have.

/// Values per block: input and output of 8-byte values take half of an L1 cache.
pub(super) const BLOCK: usize = 1024;

/// Applies `kernel` to blocks of `values`; it fills an output of the same length as its input.
pub(super) fn by_block<T, O: Copy + Default>(values: &[T], mut kernel: impl FnMut(&[T], &mut [O])) -> Vec<O> {
    let mut out = Vec::with_capacity(values.len());
    let mut buffer = [O::default(); BLOCK];
    for block in values.chunks(BLOCK) {
        let (filled, _) = buffer.split_at_mut(block.len());
        kernel(block, filled);
        out.extend_from_slice(filled);
    }
    out
}

/// Defines a function over slices that is also compiled for AVX2 and AVX-512, and selects at run time what the CPU
/// supports. The body must be a plain loop: functions that it calls must be inlined to be compiled with it.
macro_rules! vectorized {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        pub(super) fn $name($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,lzcnt,bmi1,bmi2")]
                fn avx512($($arg: $ty),*) $(-> $result)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,lzcnt,bmi1,bmi2")]
                fn avx2($($arg: $ty),*) $(-> $result)? {
                    body($($arg),*)
                }
                match $crate::transform::kernel::vectorized::vectors() {
                    // SAFETY: `vectors` checked that the CPU has the instructions that the function is compiled for.
                    $crate::transform::kernel::vectorized::Vectors::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::transform::kernel::vectorized::Vectors::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::transform::kernel::vectorized::Vectors::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(super) use vectorized;

/// Vector instructions of the CPU.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vectors {
    Baseline,
    Avx2,
    Avx512,
}

/// Detects the instructions (the standard library detects them once and caches the result).
#[cfg(target_arch = "x86_64")]
pub(super) fn vectors() -> Vectors {
    #[cfg(test)]
    if let Some(forced) = super::tests::FORCED.get() {
        return forced;
    }
    let common =
        is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (common, avx512, is_x86_feature_detected!("avx2")) {
        (true, true, _) => Vectors::Avx512,
        (true, false, true) => Vectors::Avx2,
        _ => Vectors::Baseline,
    }
}
