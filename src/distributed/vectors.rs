//! Vectors that lie in several processes.

use super::share::Share;
use crate::comm::Processes;
use crate::comm::processes::exchange;
use crate::error::Result;

/// Gives each process the elements of its rows of a vector that the first one has; `starts` are the first row of each process and the end of
/// the last. Collective.
///
/// # Errors
/// [`Error::ProcessFailed`](crate::Error::ProcessFailed).
pub fn scattered(processes: &dyn Processes, starts: &[u64], whole: &[f64]) -> Result<Vec<f64>> {
    let first = starts.first().copied().unwrap_or(0);
    let part = |ends: &[u64]| whole[(ends[0] - first) as usize..(ends[1] - first) as usize].to_vec();
    let to_each = match processes.process() {
        0 => starts.windows(2).map(part).collect(),
        _ => vec![Vec::new(); processes.count()],
    };
    Ok(exchange(processes, to_each)?.swap_remove(0))
}

/// The whole of a vector for the first process; the others have nothing. Collective.
///
/// # Errors
/// [`Error::ProcessFailed`](crate::Error::ProcessFailed).
pub fn gathered_in_first(processes: &dyn Processes, own: Vec<f64>) -> Result<Vec<f64>> {
    let mut to_each = vec![Vec::new(); processes.count()];
    to_each[0] = own;
    Ok(exchange(processes, to_each)?.concat())
}

/// What each process has to say, for all. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn texts(share: &Share, own: String) -> Result<Vec<String>> {
    let own = own.into_bytes();
    let told = exchange(&*share.processes, vec![own; share.processes.count()])?;
    Ok(told.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;

    #[test]
    fn there_and_back() {
        let whole: Vec<f64> = (0..10).map(f64::from).collect();
        let starts = [0, 3, 3, 10];
        let parts = processes(3, |all| {
            let own = if all.process() == 0 { &whole[..] } else { &[] };
            let part = scattered(&*all, &starts, own).unwrap();
            let process = all.process();
            assert_eq!(part, whole[starts[process] as usize..starts[process + 1] as usize]);
            gathered_in_first(&*all, part).unwrap()
        });
        assert_eq!(parts, [whole, vec![], vec![]]);
    }
}
