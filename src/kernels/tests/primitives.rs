//! Scans, compaction and sorting, against what the host makes of the same numbers.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::kernels::primitives::compact::Compact;
use crate::kernels::primitives::scan::Scan;
use crate::kernels::primitives::sort::{Payload, Sort, SortSpace};
use crate::kernels::primitives::{ShareSums, Tiling, Word};

use super::*;

/// Both shapes: of that for GPUs small tiles, with more shares than are scanned at once, and large ones, several a share.
const TILINGS: [Tiling; 3] = [
    Tiling { group_size: 1, items: 100, max_groups: 3 },
    Tiling { group_size: 32, items: 8, max_groups: 300 },
    Tiling { group_size: 256, items: 16, max_groups: 2 },
];

/// Numbers of elements below, at and above those of tiles and of several of them.
const MANY: &[usize] = &[0, 1, 9, 100, 255, 256, 257, 1025, 4095, 4096, 4097, 20_481, 80_009];
/// Of what is simulated, which takes its time.
const FEW: &[usize] = &[0, 1, 257, 1100];

/// Elements behind the end.
const BEHIND: usize = 5;

/// A device of each platform.
struct Opened {
    ctx: Context,
    sizes: &'static [usize],
    is_simulated: bool,
}

fn devices() -> Vec<Opened> {
    let devices = list().devices;
    assert!(!devices.is_empty(), "kernel tests need an OpenCL device (apt-get install pocl-opencl-icd)");
    let platforms: BTreeSet<&str> = devices.iter().map(|d| d.platform.as_str()).collect();
    let of = |platform: &str| {
        let ctx = Context::open(devices.iter().find(|d| d.platform == platform).unwrap()).unwrap();
        let is_simulated = platform == "Oclgrind";
        Opened { ctx, sizes: if is_simulated { FEW } else { MANY }, is_simulated }
    };
    platforms.into_iter().map(of).collect()
}

/// Numbers as if by chance (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195).
fn random(n: usize, salt: u64) -> Vec<u64> {
    let mix = |mut z: u64| {
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    (1..=n as u64).map(|i| mix((i + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
}

/// Numbers in many orders: as if by chance, all the same, rising, falling, of few values.
fn orders(n: usize) -> Vec<Vec<u64>> {
    let by_chance = random(n, 3);
    let few = by_chance.iter().map(|v| v % 3 * 0x0102_0408_1020_4081).collect();
    let step = u64::MAX / (n as u64 + 1);
    let rising: Vec<u64> = (0..n as u64).map(|i| i * step).collect();
    let falling = rising.iter().rev().copied().collect();
    vec![by_chance, vec![u64::MAX; n], rising, falling, few]
}

fn halves(v: &[u64]) -> Vec<u32> {
    v.iter().map(|v| (v >> 32) as u32).collect()
}

/// An array with more elements behind.
fn up<E: Element>(ctx: &Context, v: &[E], canary: E) -> DeviceVec<E> {
    let guarded: Vec<E> = v.iter().copied().chain([canary; BEHIND]).collect();
    DeviceVec::from_slice(ctx, &guarded, "a test array").unwrap()
}

/// Its first `n` elements, if those behind are still what they were.
fn down<E: Element + Debug + Default + PartialEq>(ctx: &Context, v: &DeviceVec<E>, n: usize, canary: E) -> Vec<E> {
    let mut all = vec![E::default(); v.len()];
    v.read(ctx, 0, &mut all).unwrap();
    assert!(all[n..].iter().all(|v| *v == canary), "a kernel wrote behind the end: {:?}", &all[n..]);
    all.truncate(n);
    all
}

const CANARY: u32 = 0xDEAD_BEEF;

/// v\[0\] + … + v\[i − 1\] for i ≤ n.
fn sums(v: &[u32]) -> Vec<u64> {
    let mut all = vec![0];
    all.extend(v.iter().scan(0, |sum, &v| {
        *sum += u64::from(v);
        Some(*sum)
    }));
    all
}

/// Sums, of which `of` tells what is left. Scans in place are what sorts have.
fn scans_to<S: TestKey>(tilings: &[Tiling], of: fn(u64) -> S) {
    for Opened { ctx, sizes, .. } in devices() {
        for &tiling in tilings {
            let (scan, mut space) = (Scan::<S>::build(&ctx, tiling).unwrap(), ShareSums::new(&ctx, tiling).unwrap());
            // sums beyond 32 bits, and within
            for (n, v) in sizes.iter().flat_map(|&n| [halves(&random(n, 3)), vec![7; n]].map(|v| (n, v))) {
                let expected = sums(&v);
                let from = up(&ctx, &v, CANARY);
                let mut to = up(&ctx, &vec![of(7); n + 1], of(99));
                scan.exclusive(&ctx, n, &from, &mut to, &mut space).unwrap();
                let left: Vec<S> = expected.iter().map(|&sum| of(sum)).collect();
                assert_eq!(down(&ctx, &to, n + 1, of(99)), left, "n = {n}, {tiling:?}");
                assert_eq!(space.total(&ctx).unwrap(), expected[n]);
                assert_eq!(down(&ctx, &from, n, CANARY), v);
            }
        }
    }
}

#[test]
fn scans_to_32_bits() {
    scans_to::<u32>(&TILINGS, |sum| sum as u32);
}

#[test]
fn scans_to_64_bits() {
    scans_to::<u64>(&[TILINGS[0], TILINGS[2]], |sum| sum);
}

#[test]
fn compaction() {
    for Opened { ctx, sizes, .. } in devices() {
        for tiling in [TILINGS[0], TILINGS[2]] {
            let mut space = ShareSums::new(&ctx, tiling).unwrap();
            let compact = Compact::build(&ctx, tiling).unwrap();
            // all, none, most, few, and the last one
            let is_set: [fn(usize, u64) -> bool; 5] =
                [|_, _| true, |_, _| false, |_, v| v % 9 != 0, |_, v| v % 50 == 0, |left, _| left == 1];
            for (&n, is_set) in sizes.iter().flat_map(|n| is_set.iter().map(move |is_set| (n, is_set))) {
                let by_chance = random(n, 1);
                let flag = |(i, v): (usize, &u64)| if is_set(n - i, *v) { (v >> 9) as u8 | 1 } else { 0 };
                let flags: Vec<u8> = by_chance.iter().enumerate().map(flag).collect();
                let values = halves(&by_chance);
                let expected: Vec<u32> = (0..n as u32).filter(|&i| flags[i as usize] != 0).collect();
                let picked: Vec<u32> = expected.iter().map(|&i| values[i as usize]).collect();
                let (on_device, of) = (up(&ctx, &flags, 1), up(&ctx, &values, 1));
                let mut to = up(&ctx, &vec![CANARY; n], CANARY);
                compact.indices(&ctx, n, &on_device, &mut to, &mut space).unwrap();
                assert_eq!(space.total(&ctx).unwrap(), expected.len() as u64);
                assert_eq!(down(&ctx, &to, expected.len(), CANARY), expected, "n = {n}, {tiling:?}");
                let mut to = up(&ctx, &vec![CANARY; n], CANARY);
                compact.values(&ctx, n, (&on_device, &of), &mut to, &mut space).unwrap();
                assert_eq!(space.total(&ctx).unwrap(), expected.len() as u64);
                assert_eq!(down(&ctx, &to, expected.len(), CANARY), picked, "n = {n}, {tiling:?}");
                assert_eq!(down(&ctx, &on_device, n, 1), flags);
            }
        }
    }
}

/// Keys of a width, or sums.
trait TestKey: Word + Ord + Debug + Default {
    const BITS: u32;
    fn of(v: u64) -> Self;
    fn low(self, bits: u32) -> u64;
}

impl TestKey for u32 {
    const BITS: u32 = 32;
    fn of(v: u64) -> Self {
        (v >> 32) as u32
    }
    fn low(self, bits: u32) -> u64 {
        u64::from(self).low(bits)
    }
}

impl TestKey for u64 {
    const BITS: u32 = 64;
    fn of(v: u64) -> Self {
        v
    }
    fn low(self, bits: u32) -> u64 {
        self & (((1_u128 << bits) - 1) as u64)
    }
}

/// Sorts, with what belongs to keys and without, as the host's stable sort does.
fn check_sort<K: TestKey>(ctx: &Context, sort: &Sort<K>, keys: &[K], bits: u32, space: &mut SortSpace<K>) {
    let (n, canary) = (keys.len(), K::of(0xDEAD_BEEF_DEAD_BEEF));
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| keys[i as usize].low(bits));
    let sorted: Vec<K> = order.iter().map(|&i| keys[i as usize]).collect();
    let given: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let moved: Vec<u32> = order.iter().map(|&i| given[i as usize]).collect();
    let (from, belongs) = (up(ctx, keys, canary), up(ctx, &given, CANARY));
    let mut payload_to = up(ctx, &vec![1; n], CANARY);
    let mut run = |payload: Payload<'_>| {
        let mut to = up(ctx, &vec![K::default(); n], canary);
        sort.sort(ctx, (n, bits), (&from, &mut to), payload, space).unwrap();
        assert!(down(ctx, &to, n, canary) == sorted, "n = {n}, {bits} bits");
    };
    run(Payload::Indices(&mut payload_to));
    assert!(down(ctx, &payload_to, n, CANARY) == order, "n = {n}, {bits} bits");
    run(Payload::Given(&belongs, &mut payload_to));
    assert!(down(ctx, &payload_to, n, CANARY) == moved, "n = {n}, {bits} bits");
    run(Payload::None);
    assert!(down(ctx, &from, n, canary) == keys && down(ctx, &belongs, n, CANARY) == given);
}

/// Every size and order of keys, with numbers of bits in turns: all of them with all would take too long. Of many keys,
/// one order and a few passes. Each tiling has digits of its own.
fn sorts_of<K: TestKey>(digits: [u32; 3]) {
    for Opened { ctx, sizes, is_simulated } in devices() {
        for (k, (tiling, digit_bits)) in TILINGS.into_iter().zip(digits).enumerate() {
            let sort = Sort::<K>::build(&ctx, tiling, digit_bits).unwrap();
            for (j, &n) in sizes.iter().enumerate() {
                let is_dear = n > 5000 || is_simulated;
                for (o, keys) in orders(n).iter().enumerate().filter(|(o, _)| !is_dear || *o == (j + k) % 5) {
                    let keys: Vec<K> = keys.iter().map(|&v| K::of(v)).collect();
                    let bits = [0, 1, 7, 8, 9, 13, 16, 31, 32, K::BITS][(o + j + 3 * k) % 10];
                    let bits = if is_dear { bits.min(4 * digit_bits) } else { bits };
                    let mut space = SortSpace::new(&ctx, &sort, (n, bits), true).unwrap();
                    check_sort(&ctx, &sort, &keys, bits, &mut space);
                }
            }
        }
    }
}

#[test]
fn sorts_of_32_bits() {
    sorts_of::<u32>([8, 5, 8]);
}

#[test]
fn sorts_of_64_bits() {
    sorts_of::<u64>([3, 7, 8]);
}

/// Any keys, of which many are equal, and any bits.
#[test]
fn sorts_of_any_keys() {
    for Opened { ctx, .. } in devices().into_iter().filter(|device| !device.is_simulated) {
        let sort = Sort::<u32>::build(&ctx, TILINGS[1], 5).unwrap();
        let mut space = SortSpace::new(&ctx, &sort, (10_000, 32), true).unwrap();
        let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
        let keys = (0..=32u32).prop_flat_map(|kept| {
            let key = any::<u32>().prop_map(move |v| v & (((1u64 << kept) - 1) as u32));
            proptest::collection::vec(key, 0..10_000)
        });
        let check = |(keys, bits): (Vec<u32>, u32)| {
            check_sort(&ctx, &sort, &keys, bits, &mut space);
            Ok(())
        };
        let check = std::cell::RefCell::new(check);
        TestRunner::new(config).run(&(keys, 0..=32u32), |case| (check.borrow_mut())(case)).unwrap();
    }
}

#[test]
fn space_is_told() {
    let ctx = Context::open(&list().devices.remove(0)).unwrap();
    let tiling = Tiling { group_size: 1, items: 256, max_groups: 10 };
    let sums = ShareSums::new(&ctx, tiling).unwrap().bytes();
    assert_eq!(sums, 8 * 11);
    let sort = Sort::<u64>::build(&ctx, tiling, 4).unwrap();
    let bytes = |n, bits, has_payload| SortSpace::new(&ctx, &sort, (n, bits), has_payload).unwrap().bytes() - sums;
    assert_eq!(bytes(1000, 5, true), 12 * 1000 + 4 * (4 * 16 + 1));
    assert_eq!(bytes(1000, 5, false), 8 * 1000 + 4 * (4 * 16 + 1));
    assert_eq!(bytes(100_000, 4, true), 4 * (10 * 16 + 1));
}
