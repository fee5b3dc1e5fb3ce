//! Which method several ranks follow: what is known or measured for [`methods`] to decide by.

use super::{Ground, LEAST_WORK};
use crate::device::Info;
use crate::kernels::Shape;
use crate::operator::plan::{Offer as Layout, Target};
use crate::partition::part_alone;
use crate::solver::choose::{Offer, micros, sample};
use crate::solver::methods::{self, Iteration, MethodTime};
use crate::solver::{Method, Precision, Setup, fit, placement};

/// Entries of a sample that is laid out for the bytes of its product, at most.
const LAYOUT: f64 = (4 << 20) as f64;

/// A method, what it was compared with, and why it is the one.
pub(in crate::solver) struct Comparison {
    pub(in crate::solver) method: Method,
    /// With times of an iteration: `cg` first. Nothing, where none had to be known.
    pub(in crate::solver) considered: Vec<MethodTime>,
    pub(in crate::solver) reason: String,
}

impl Comparison {
    /// `cg`, as there is nothing to compare.
    pub(in crate::solver) fn cg(reason: impl Into<String>) -> Self {
        Self { method: Method::Cg, considered: Vec::new(), reason: reason.into() }
    }
}

impl Ground<'_> {
    /// The method for several ranks of these devices, of which `offer` is what is known by `cg`. No more is measured than may
    /// pay: of large systems nothing, and what ranks need to meet by another method only where that may save more than the
    /// method's bytes cost.
    pub(in crate::solver) fn method(&mut self, devices: &[Option<Info>], offer: Option<&Offer>) -> Comparison {
        self.measures &= self.work >= LEAST_WORK;
        let setup = &self.whole.setup;
        let holds = |method: &Method| fit::can_hold(self.rows, devices, &Setup { method: *method, ..setup.clone() });
        let others: Vec<Method> = methods::others(setup.precision).iter().copied().filter(holds).collect();
        if others.is_empty() {
            return Comparison::cg(match setup.precision {
                Precision::Mixed => "others may take many times its iterations in mixed precision",
                _ => "others take more memory than the devices have",
            });
        }
        let time = |method: &Method| Some(MethodTime::new(*method, self.remembered(*method, devices)?.seconds, true));
        let remembered: Vec<MethodTime> = others.iter().filter_map(time).collect();
        let others: Vec<Method> =
            others.into_iter().filter(|method| remembered.iter().all(|time| time.method != *method)).collect();

        let may_gain = |cg: &Iteration| others.iter().any(|&method| cg.may_gain(method, 1.0));
        let is_open = |cg: &Iteration| !remembered.is_empty() || may_gain(cg);
        let (cg, iteration) = match self.by_cg(devices, offer, is_open) {
            Ok(known) => known,
            Err(reason) => return Comparison::cg(reason),
        };
        let mut times = remembered;
        if let Some(iteration) = iteration.filter(may_gain) {
            times.extend(others.iter().filter_map(|&method| self.predicted(method, devices, &iteration)));
        }
        let best = methods::best(cg, &times);
        let considered: Vec<MethodTime> = [cg].into_iter().chain(times).collect();
        Comparison { method: best.method, reason: reason(best.method, &considered), considered }
    }

    /// What an iteration by `cg` takes, and of what that is made, if it is known what ranks need to meet. Kernels are timed only
    /// if the choice is open where they are as short as they may be; if it is not, or nothing is known, there is a reason for
    /// `cg`.
    fn by_cg(
        &mut self,
        devices: &[Option<Info>],
        offer: Option<&Offer>,
        is_open: impl Fn(&Iteration) -> bool,
    ) -> Result<(MethodTime, Option<Iteration>), String> {
        let halo = self.halo(devices.len());
        let meeting = offer.and_then(|offer| offer.meeting).or_else(|| self.meeting(Method::Cg, devices));
        let of = |&Offer { kernels, seconds, is_remembered, .. }: &Offer| {
            let iteration = meeting.map(|meeting| Iteration { kernels, halo, meeting, seconds });
            (MethodTime::new(Method::Cg, seconds, is_remembered), iteration)
        };
        if let Some(offer) = offer.filter(|offer| offer.seconds.is_finite()) {
            return Ok(of(offer));
        }
        let least = least_kernels(self.work, devices);
        if let Some(meeting) = meeting
            && !is_open(&Iteration::predicted(least, halo, meeting))
        {
            let kernels =
                if least > 0.0 { format!("kernels take {} or more, and ", micros(least)) } else { String::new() };
            return Err(format!("others could not save 5 %: {kernels}ranks need {} to meet", micros(meeting)));
        }
        let offer = self.offer(devices, true);
        offer.as_ref().map(of).ok_or_else(|| "what others would take is not known, and not measured".into())
    }

    /// What an iteration by another method would take, if that may pay.
    fn predicted(&mut self, method: Method, devices: &[Option<Info>], cg: &Iteration) -> Option<MethodTime> {
        let moved = self.moved(method, devices);
        if !cg.may_gain(method, moved) {
            return None;
        }
        let meeting = self.meeting(method, devices)?;
        Some(MethodTime::new(method, cg.by(moved, meeting), false))
    }

    /// What an iteration by `method` moves in proportion to one by `cg`, by the byte rule.
    pub(super) fn moved(&self, method: Method, devices: &[Option<Info>]) -> f64 {
        let Setup { precond, precision, .. } = self.whole.setup;
        let is_scaled = self.whole.is_scaled(self.rows);
        let product = *self.product.get_or_init(|| self.product_bytes_a_row(devices));
        let of = |method: Method| {
            let vectors = method.vectors_moved(precond, is_scaled);
            product + (vectors * precision.bytes()) as f64
        };
        of(method) / of(Method::Cg)
    }

    /// Bytes of a product for each row, by a sample in the format that the rule of bytes takes for it, or that was asked for.
    fn product_bytes_a_row(&self, devices: &[Option<Info>]) -> f64 {
        let rows = sample(self.rows, (self.rows.nnz() as f64 / LAYOUT).max(devices.len() as f64));
        let part = part_alone(self.rows, rows);
        let target =
            devices.iter().flatten().next().map_or(Target { shape: Shape::Cpu, compute_units: 1 }, |device| {
                Target::new(device, Shape::of(device))
            });
        let format = self.whole.setup.format;
        let bytes = match self.whole.setup.precision.of_vectors() {
            Precision::F64 => Layout::<f64>::bytes_of(&part, format, target),
            Precision::F32 | Precision::Mixed => Layout::<f32>::bytes_of(&part, format, target),
        };
        bytes as f64 / part.n_owned().max(1) as f64
    }
}

/// The least that kernels take of an iteration that these devices share.
fn least_kernels(work: f64, devices: &[Option<Info>]) -> f64 {
    let rate = |device: &Option<Info>| match device {
        Some(device) => work / placement::least_seconds(work, device.compute_units, device.clock_mhz),
        None => f64::INFINITY, // of the host nothing is known
    };
    work / devices.iter().map(rate).sum::<f64>()
}

/// What is expected of an iteration by each method, and so why one was taken.
fn reason(taken: Method, considered: &[MethodTime]) -> String {
    let one = |time: &MethodTime| {
        let remembered = time.is_remembered.then(|| "as in a former solve".to_owned());
        let iterations = methods::iterations(time.method);
        let iterations = (iterations > 1.0).then(|| format!("for up to {iterations} times the iterations"));
        let notes: Vec<String> = remembered.into_iter().chain(iterations).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{} {}{notes}", time.method, micros(time.seconds))
    };
    let times: Vec<String> = considered.iter().map(one).collect();
    let more = match (taken, considered.len()) {
        (Method::Cg, 1) => "; others could not save 5 %",
        (Method::Cg, _) => "; others have to save 5 %",
        _ => "",
    };
    format!("expected of an iteration: {}{more}", times.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_tell_what_was_compared() {
        let time = |method, micros: f64, is_remembered| MethodTime::new(method, 1e-6 * micros, is_remembered);
        let cg = time(Method::Cg, 71.0, false);
        let others = [time(Method::CgSingleReduction, 66.0, true), time(Method::CgPipelined, 80.25, false)];
        assert_eq!(reason(Method::Cg, &[cg]), "expected of an iteration: cg 71.0 µs; others could not save 5 %");
        let all = [cg, others[0], others[1]];
        let times = "cg 71.0 µs, cg-single-reduction 66.0 µs (as in a former solve), \
                     cg-pipelined 80.2 µs (for up to 1.1 times the iterations)";
        assert_eq!(reason(Method::CgSingleReduction, &all), format!("expected of an iteration: {times}"));
        assert_eq!(reason(Method::Cg, &all), format!("expected of an iteration: {times}; others have to save 5 %"));
    }

    #[test]
    fn the_shortest_kernels_by_hand() {
        let mut device = crate::device::list().devices.into_iter().next().expect("the tests need an OpenCL device");
        (device.compute_units, device.clock_mhz) = (100, 1000);
        // 12 bytes for each unit of work, 64 in each of 10¹¹ cycles a second
        let alone = least_kernels(1e9, &[Some(device.clone())]);
        assert!((alone - 12e9 / 64e11).abs() < 1e-9, "{alone}");
        assert!((least_kernels(1e9, &[Some(device.clone()), Some(device.clone())]) - alone / 2.0).abs() < 1e-9);
        assert_eq!(least_kernels(1e9, &[Some(device), None]), 0.0);
    }
}
