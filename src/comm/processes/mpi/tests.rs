//! Jobs of several processes, which the tests start with `mpirun`.

use std::ops::Range;
use std::process::{Command, Stdio};

use super::*;
use crate::comm::processes::{any, exchange, gathered, largest, sum};

/// What this process is to do as one of a job.
const TASK: &str = "DECLIVE_MPI_TASK";

/// Whether the job has ended well, and what its processes have written; nothing if there is no `mpirun`.
fn job(count: usize, task: &str) -> Option<(bool, String)> {
    let this = module_path!().split_once("::").unwrap().1;
    let mut command = Command::new(std::env::var_os("MPIRUN").unwrap_or("mpirun".into()));
    command.args(["-n", &count.to_string()]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{this}::jobs"), "--nocapture"]).env(TASK, task);
    for name in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"] {
        command.env(format!("OMPI_{name}"), "1");
    }
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().ok()?;
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    Some((output.status.success(), String::from_utf8(output.stdout).unwrap()))
}

#[test]
fn jobs() {
    if let Ok(task) = std::env::var(TASK) {
        let world = World::start().unwrap();
        match &*task {
            "collective" => collective(&world),
            "revoked" => revoked(&world),
            task => failing(&world, task),
        }
        return;
    }
    for count in [1, 2, 3, 8, 9] {
        let Some((well, written)) = job(count, "collective") else {
            eprintln!("not tested, as there is no mpirun");
            return;
        };
        assert!(well && written.matches("all is well").count() == count, "{count} processes:\n{written}");
    }
    for count in [1, 2, 3, 9] {
        let (well, written) = job(count, "revoked").unwrap();
        assert!(well && written.matches("all is well").count() == count, "{count} processes:\n{written}");
    }
    for (count, task) in [(2, "gather"), (3, "gather"), (9, "gather"), (2, "receive"), (3, "receive"), (3, "panic")] {
        let (well, written) = job(count, task).unwrap();
        assert!(!well && written.matches("told in time").count() == count - 1, "{count} processes, {task}:\n{written}");
    }
}

fn collective(world: &Arc<World>) {
    assert!(Arc::ptr_eq(world, &World::start().unwrap()));
    let (own, count) = (world.process(), world.count());
    assert_eq!(world.on_host(), [own, count]);
    let begin = Instant::now();
    let rounds = if count > 2 { 20 } else { 20_000 };
    for round in 0..rounds {
        let mut all = vec![0; 4 * count];
        world.gather(&[round, own as u64, 0, 1], &mut all).unwrap();
        for (other, four) in all.chunks(4).enumerate() {
            assert_eq!(four, [round, other as u64, 0, 1]);
        }
    }
    let microseconds = begin.elapsed().as_secs_f64() / rounds as f64 * 1e6;
    let mut all = vec![0; 1000 * count];
    world.gather(&vec![own as u64; 1000], &mut all).unwrap();
    assert!(all.iter().enumerate().all(|(index, number)| index / 1000 == *number as usize));
    assert_eq!(sum(&**world, own as f64).unwrap(), (count * (count - 1) / 2) as f64);
    assert_eq!(largest(&**world, -(own as f64)).unwrap(), 0.0);
    assert!(any(&**world, own == 0).unwrap() && !any(&**world, false).unwrap());
    for scale in [1, 100_000] {
        let of_each = |range: Range<usize>| range.map(|to| vec![(10 * own + to) as f64; scale * (to + own)]).collect();
        let received = exchange::<f64>(&**world, of_each(0..count)).unwrap();
        for (from, elements) in received.iter().enumerate() {
            assert_eq!(*elements, vec![(10 * from + own) as f64; scale * (from + own)]);
        }
    }
    // Several threads at once, each in a ring of its own.
    std::thread::scope(|scope| {
        for stream in [1, 2, 65_535] {
            scope.spawn(move || {
                for round in 0..20_u32 {
                    let len = if round % 5 == 0 { 100_000 } else { 10 };
                    let number = |process: usize| round + 100 * process as u32 + stream;
                    let elements: Arc<dyn crate::comm::HostMemory<u32>> = Arc::new(vec![number(own); len]);
                    world.send((own + 1) % count, stream, Bytes::of(elements, 0..len)).unwrap();
                    let mut received = vec![0_u32; len];
                    let from = (own + count - 1) % count;
                    world.receive(from, stream, bytemuck::cast_slice_mut(&mut received)).unwrap();
                    assert_eq!(received, vec![number(from); len]);
                }
            });
        }
    });
    world.check().unwrap();
    // Another's communicator.
    let other = World::of(&::mpi::topology::SimpleCommunicator::world()).unwrap();
    assert_eq!((other.local_rank(), other.local_count()), (own, count));
    assert_eq!(gathered(&*other, own as u64).unwrap(), (0..count as u64).collect::<Vec<_>>());
    drop(other);
    gathered(&**world, 0).unwrap();
    assert!(lock(&world.sending).len() <= 3);
    println!("all is well with {own}: gathers in {microseconds:.2} µs");
}

/// Each process in turn revokes what others wait for: small and large gathers, and messages, short and long ones, which may be on their way.
/// What comes afterwards is not mixed up with that.
fn revoked(world: &Arc<World>) {
    let (own, count) = (world.process(), world.count());
    let others = || (0..count).filter(|other| *other != own);
    let some: Arc<dyn crate::comm::HostMemory<u8>> = Arc::new(vec![1; 1_000_000]);
    for round in 0..12 {
        let failing = round % count;
        let words = if round % 3 == 0 { 1000 } else { 4 };
        let gather = || world.gather(&vec![own as u64; words], &mut vec![0; words * count]);
        for to in others() {
            for len in [10, 1_000_000] {
                world.send(to, 1, Bytes::of(Arc::clone(&some), 0..len)).unwrap();
            }
        }
        if own == failing {
            // all others have begun the round
            others().for_each(|from| world.receive(from, 2, &mut [0]).unwrap());
            world.revoke();
        } else {
            world.send(failing, 2, Bytes::of(Arc::clone(&some), 0..1)).unwrap();
            let ended = match (own + round) % 3 {
                0 => gather(),
                1 => world.receive(failing, 1, &mut [0; 10]).and_then(|()| world.receive(failing, 3, &mut [0])),
                _ => world.receive(failing, 3, &mut vec![0; 1_000_000]),
            };
            assert!(matches!(ended, Err(Error::PeerFailed)), "{ended:?}");
        }
        assert!(gather().is_err() && world.check().is_err());
        world.restore().unwrap();
        assert_eq!(lock(&world.sending).len(), 0);
        // whoever is behind hears nothing of the next round before it has come to it
        let expected: Vec<u64> = (0..count as u64).map(|other| other + 10 * round as u64).collect();
        assert_eq!(gathered(&**world, expected[own]).unwrap(), expected);
        let received = exchange::<u64>(&**world, vec![vec![own as u64; 200_000]; count]).unwrap();
        assert!(received.iter().enumerate().all(|(from, numbers)| *numbers == vec![from as u64; 200_000]));
    }
    println!("all is well with {own}");
}

/// The last process fails while others wait for it.
fn failing(world: &Arc<World>, task: &str) {
    let last = world.count() - 1;
    gathered(&**world, 0).unwrap();
    let nap = Duration::from_millis(300);
    let begin = Instant::now();
    if world.process() == last {
        std::thread::sleep(nap);
        assert_ne!(task, "panic", "on purpose");
        if task == "killed" {
            Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
        }
        world.fail("the disk is full");
        assert!(world.check().is_ok() && world.gather(&[0], &mut vec![0; last + 1]).is_err());
        println!("others know after {:?}", begin.elapsed());
        return;
    }
    let words = if task == "panic" { "it panicked" } else { "the disk is full" };
    // What nobody ever receives.
    let elements: Arc<dyn crate::comm::HostMemory<u8>> = Arc::new(vec![1; 20_000_000]);
    world.send(last, 1, Bytes::of(elements, 0..20_000_000)).unwrap();
    let wait = || match task {
        "receive" => world.receive(last, 2, &mut vec![0; 1_000_000]),
        _ => gathered(&**world, 0).map(drop),
    };
    let expected = format!("process {last} failed: {words}");
    assert_eq!(wait().unwrap_err().to_string(), expected);
    let took = begin.elapsed();
    assert!(took < nap + Duration::from_secs(1), "{took:?}");
    assert_eq!(wait().unwrap_err().to_string(), expected);
    assert!(world.check().is_err());
    println!("told in time: {took:?}");
}
