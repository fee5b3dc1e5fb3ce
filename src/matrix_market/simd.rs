//! Many bytes of text at a time: where words end, and what numbers digits make.
//!
//! Two ways to do so: with the vectors that every processor of its kind has and eight digits to a word, and with AVX2,
//! where the processor is found to have it.

use wide::u8x16;

/// Bytes that are looked at together.
pub(super) type Window = [u8; 64];

/// Eight characters, the first in the lowest byte.
pub(super) type Eight = u64;

/// The digit 0 in each byte.
pub(super) const ZEROS: Eight = 0x3030_3030_3030_3030;

/// A way to look at many bytes at a time.
pub(super) trait Simd: Copy {
    /// A bit for each byte up to a blank (0x20): blanks, tabs, line ends.
    fn up_to_a_blank(self, window: &Window) -> u64;

    /// The numbers that two times eight digits make, given as their values; `None` if a byte is no digit.
    fn two(self, digits: [Eight; 2]) -> Option<[u32; 2]>;

    /// The numbers that three times eight characters make, the last 24 of these; a byte that isn't `kept` counts as 0.
    /// `None` if one that is isn't a digit.
    fn three(self, characters: &[u8; 32], kept: &[u8; 32]) -> Option<[u32; 3]>;
}

/// What works everywhere.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Simd for Portable {
    #[inline(always)]
    fn up_to_a_blank(self, window: &Window) -> u64 {
        let blank = u8x16::splat(b' ');
        let (parts, _) = window.as_chunks::<16>();
        let part = |k: usize| {
            let bytes = u8x16::new(parts[k]);
            u64::from(bytes.min(blank).cmp_eq(bytes).move_mask() as u16) << (16 * k)
        };
        part(0) | part(1) | part(2) | part(3)
    }

    #[inline(always)]
    fn two(self, digits: [Eight; 2]) -> Option<[u32; 2]> {
        (strangers(digits[0]) | strangers(digits[1]) == 0).then(|| digits.map(number))
    }

    #[inline(always)]
    fn three(self, characters: &[u8; 32], kept: &[u8; 32]) -> Option<[u32; 3]> {
        let (characters, kept) = (characters.as_chunks::<8>().0, kept.as_chunks::<8>().0);
        let digits = [1, 2, 3].map(|k| (u64::from_le_bytes(characters[k]) ^ ZEROS) & u64::from_le_bytes(kept[k]));
        let all_are = strangers(digits[0]) | strangers(digits[1]) | strangers(digits[2]) == 0;
        all_are.then(|| digits.map(number))
    }
}

/// Not zero if a byte is no digit; the lowest bit that is set belongs to the first of them.
#[inline(always)]
pub(super) fn strangers(digits: Eight) -> u64 {
    (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080
}

/// The number that eight digits make: digits to pairs, pairs to fours, fours to the whole.
#[inline(always)]
pub(super) fn number(digits: Eight) -> u32 {
    const EACH: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let first = (pairs & EACH).wrapping_mul(100 + (1_000_000 << 32));
    let second = ((pairs >> 16) & EACH).wrapping_mul(1 + (10_000 << 32));
    (first.wrapping_add(second) >> 32) as u32
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::__m128i;

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Eight, Simd, Window};

    /// The factors that make pairs, fours and eights of digits, one after the other.
    const PAIRS: [u8; 32] = repeat([10, 1]);
    const FOURS: [u8; 32] = repeat([100, 0, 1, 0]);
    const EIGHTS: [u8; 32] = repeat([0x10, 0x27, 1, 0]); // 10 000

    const fn repeat<const N: usize>(unit: [u8; N]) -> [u8; 32] {
        let mut all = [0; 32];
        let mut k = 0;
        while k < 32 {
            all[k] = unit[k % N];
            k += 1;
        }
        all
    }

    /// A bit for each byte up to a blank.
    #[inline(always)]
    fn up_to_a_blank(v3: V3, bytes: [u8; 32]) -> u32 {
        let bytes = cast(bytes);
        let lower = v3.avx2._mm256_min_epu8(bytes, v3.avx._mm256_set1_epi8(b' ' as i8));
        v3.avx2._mm256_movemask_epi8(v3.avx2._mm256_cmpeq_epi8(lower, bytes)) as u32
    }

    /// The first half.
    #[inline(always)]
    fn half(all: [u8; 32]) -> __m128i {
        let [first, _]: [[u8; 16]; 2] = cast(all);
        cast(first)
    }

    impl Simd for V3 {
        #[inline(always)]
        fn up_to_a_blank(self, window: &Window) -> u64 {
            let (parts, _) = window.as_chunks::<32>();
            u64::from(up_to_a_blank(self, parts[0])) | u64::from(up_to_a_blank(self, parts[1])) << 32
        }

        #[inline(always)]
        fn two(self, digits: [Eight; 2]) -> Option<[u32; 2]> {
            let digits: __m128i = cast(digits);
            let above = self.sse2._mm_subs_epu8(digits, self.sse2._mm_set1_epi8(9));
            if self.sse4_1._mm_testz_si128(above, above) == 0 {
                return None;
            }
            let pairs = self.ssse3._mm_maddubs_epi16(digits, half(PAIRS));
            let fours = self.sse2._mm_madd_epi16(pairs, half(FOURS));
            let fours = self.sse4_1._mm_packus_epi32(fours, fours);
            let [eights, _]: [[u32; 2]; 2] = cast(self.sse2._mm_madd_epi16(fours, half(EIGHTS)));
            Some(eights)
        }

        #[inline(always)]
        fn three(self, characters: &[u8; 32], kept: &[u8; 32]) -> Option<[u32; 3]> {
            let zeros = self.avx._mm256_set1_epi8(b'0' as i8);
            let digits = self.avx2._mm256_xor_si256(cast(*characters), zeros);
            let digits = self.avx2._mm256_and_si256(digits, cast(*kept));
            let above = self.avx2._mm256_subs_epu8(digits, self.avx._mm256_set1_epi8(9));
            if self.avx._mm256_testz_si256(above, above) == 0 {
                return None;
            }
            let pairs = self.avx2._mm256_maddubs_epi16(digits, cast(PAIRS));
            let fours = self.avx2._mm256_madd_epi16(pairs, cast(FOURS));
            let fours = self.avx2._mm256_packus_epi32(fours, fours);
            // each half of the vector holds two numbers, twice
            let eights: [[u32; 4]; 2] = cast(self.avx2._mm256_madd_epi16(fours, cast(EIGHTS)));
            Some([eights[0][1], eights[1][0], eights[1][1]])
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks all ways that this processor has.
    fn each_way(check: impl Fn(&dyn Any)) {
        check(&Portable);
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            check(&v3);
        }
    }

    /// [`Simd`] of any kind.
    trait Any {
        fn up_to_a_blank(&self, window: &Window) -> u64;
        fn two(&self, digits: [Eight; 2]) -> Option<[u32; 2]>;
        fn three(&self, characters: &[u8; 32], kept: &[u8; 32]) -> Option<[u32; 3]>;
    }

    impl<S: Simd> Any for S {
        fn up_to_a_blank(&self, window: &Window) -> u64 {
            Simd::up_to_a_blank(*self, window)
        }

        fn two(&self, digits: [Eight; 2]) -> Option<[u32; 2]> {
            Simd::two(*self, digits)
        }

        fn three(&self, characters: &[u8; 32], kept: &[u8; 32]) -> Option<[u32; 3]> {
            Simd::three(*self, characters, kept)
        }
    }

    /// What digits make, character by character.
    fn plainly(characters: &[u8]) -> Option<u32> {
        characters.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0')))
    }

    fn values(characters: [u8; 8]) -> Eight {
        u64::from_le_bytes(characters) ^ ZEROS
    }

    #[test]
    fn every_byte_at_every_place() {
        each_way(|simd| {
            for byte in 0..=255u8 {
                for k in 0..64 {
                    let mut window = [b'x'; 64];
                    window[k] = byte;
                    assert_eq!(simd.up_to_a_blank(&window), u64::from(byte <= b' ') << k);
                }
                for k in 0..16 {
                    let mut text = *b"1234567890123456";
                    text[k] = byte;
                    let (words, _) = text.as_chunks::<8>();
                    let expected = plainly(&words[0]).zip(plainly(&words[1])).map(|(a, b)| [a, b]);
                    assert_eq!(simd.two([values(words[0]), values(words[1])]), expected);
                }
                for k in 0..32 {
                    let mut text = *b"xxxxxxxx567890123456789012345678";
                    text[k] = byte;
                    let mut kept = [0xff; 32];
                    kept[..8].fill(0);
                    let parts: Option<Vec<u32>> = text[8..].chunks(8).map(plainly).collect();
                    assert_eq!(simd.three(&text, &kept).map(Vec::from), parts);
                }
            }
        });
    }

    proptest! {
        #[test]
        fn digits_behind_anything(text in any::<[u8; 32]>(), digits in any::<[u8; 24]>(), count in 0usize..=24) {
            each_way(|simd| {
                let (mut text, mut kept) = (text, [0; 32]);
                let mut behind_zeros = [b'0'; 24];
                for k in 32 - count..32 {
                    text[k] = b'0' + digits[k - 8] % 10;
                    behind_zeros[k - 8] = text[k];
                    kept[k] = 0xff;
                }
                let parts: Option<Vec<u32>> = behind_zeros.chunks(8).map(plainly).collect();
                assert_eq!(simd.three(&text, &kept).map(Vec::from), parts);
            });
        }
    }
}
