//! The list of devices for people.

use std::fmt;

use super::devices::{Auto, Copy, Device, Report};
use super::layout::Text;
use super::units::{bytes, figure, plural};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let used = self.devices.iter().filter(|d| d.auto.used).count();
        text.paragraph(&match self.devices.len() {
            0 => "No OpenCL device; the host remains.".to_owned(),
            n => {
                let up_to = if used > 1 { "up to " } else { "" };
                format!("{}, of which --devices auto uses {up_to}{used}.", plural(n as u64, "OpenCL device"))
            }
        });
        if let Some(note) = &self.note {
            text.paragraph(&format!("Note: {note}"));
        }
        for device in &self.devices {
            device.describe(&mut text);
        }
        text.section("host  this program's own threads, without OpenCL");
        text.line("threads", &self.host.threads.to_string());
        self.host.copy.describe(&mut text);
        self.host.auto.describe(&mut text);
        f.write_str(&text.finish())
    }
}

impl Device {
    fn describe(&self, text: &mut Text) {
        let info = &self.info;
        text.section(&format!("{:<4}  {} ({})", info.index, info.name, info.kind));
        text.line("platform", &format!("{}, {}", info.platform, info.opencl));
        text.line("driver", &format!("{}, by {}", info.driver, info.vendor));
        text.line(
            "compute",
            &format!(
                "{} at {} MHz, work-groups up to {}, {}",
                plural(info.compute_units, "unit"),
                info.clock_mhz,
                info.max_work_group,
                if info.has_f64 { "double precision" } else { "single precision only" }
            ),
        );
        text.line(
            "memory",
            &format!(
                "{}, largest buffer {}, local {}",
                bytes(info.memory_bytes),
                bytes(info.max_buffer_bytes),
                bytes(info.local_memory_bytes)
            ),
        );
        self.copy.describe(text);
        self.auto.describe(text);
    }
}

impl Copy {
    fn describe(&self, text: &mut Text) {
        if let Some(speed) = self.gigabytes_per_second {
            text.line("copies", &format!("{} GB/s, read and written", figure(speed)));
        }
        if let Some(error) = &self.error {
            text.line("copies", &format!("not measured: {error}"));
        }
    }
}

impl Auto {
    fn describe(&self, text: &mut Text) {
        match (&self.reason, self.used) {
            (_, true) => text.line("auto", "uses it"),
            (Some(reason), false) => text.line("auto", &format!("does not use it: {reason}")),
            (None, false) => text.line("auto", "does not use it"),
        }
    }
}
