//! When each kernel ran on a device, what it moved, and what it computed.
//!
//! As text, kernels of one name are one line, the longest first; as a picture ([`Timeline::to_svg`]), each run is a rectangle on a line of time.

use std::fmt;
use std::fmt::Write;

/// One run of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    /// The kernel's name.
    pub name: String,
    /// When it started, in seconds behind the start of the run.
    pub start: f64,
    /// How long it took.
    pub seconds: f64,
    /// The bytes that it reads and writes at least: what it touches, each once.
    pub bytes: f64,
    /// Its floating-point operations.
    pub operations: f64,
}

/// What ran on a device, in the order in which it ran.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// The device's name.
    pub device: String,
    /// The runs.
    pub spans: Vec<Span>,
    /// How many runs behind these were not measured.
    pub left_out: usize,
}

/// All runs of one kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Row<'t> {
    /// The kernel's name.
    pub name: &'t str,
    /// How often it ran.
    pub times: usize,
    /// How long all runs took.
    pub seconds: f64,
    /// What all runs moved.
    pub bytes: f64,
    /// What all runs computed.
    pub operations: f64,
}

impl Timeline {
    /// How long all kernels took together.
    pub fn seconds(&self) -> f64 {
        self.spans.iter().map(|span| span.seconds).sum()
    }

    /// The kernels, those first that took longest.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut known: rustc_hash::FxHashMap<&str, usize> = Default::default();
        for span in &self.spans {
            let at = *known.entry(&span.name).or_insert_with(|| {
                rows.push(Row {
                    name: &span.name,
                    times: 0,
                    seconds: 0.0,
                    bytes: 0.0,
                    operations: 0.0,
                });
                rows.len() - 1
            });
            let row = &mut rows[at];
            row.times += 1;
            row.seconds += span.seconds;
            row.bytes += span.bytes;
            row.operations += span.operations;
        }
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        rows
    }

    /// A picture: time runs to the right; a line for each of the kernels that took longest, and one for all others.
    pub fn to_svg(&self) -> String {
        let rows = self.rows();
        let shown = rows.len().min(LINES);
        let names: Vec<&str> = rows[..shown].iter().map(|row| row.name).collect();
        let others = rows.len() > shown;
        let end = self
            .spans
            .last()
            .map_or(0.0, |span| span.start + span.seconds);
        let scale = if end > 0.0 { WIDTH / end } else { 0.0 };
        let lines = shown + usize::from(others);
        let (width, height) = (LEFT + WIDTH + 20.0, TOP + LINE * lines as f64 + 40.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"10\" y=\"20\">{} kernels on {}: {} of {}</text>\n",
            self.spans.len(),
            escaped(&self.device),
            duration(self.seconds()),
            duration(end),
        );
        let total = self.seconds().max(f64::MIN_POSITIVE);
        for (line, row) in rows[..shown].iter().enumerate() {
            let share = 100.0 * row.seconds / total;
            out += &label(line, &format!("{} ({share:.1} %)", shortened(row.name)));
        }
        if others {
            let rest: f64 = rows[shown..].iter().map(|row| row.seconds).sum();
            let share = 100.0 * rest / total;
            let count = rows.len() - shown;
            out += &label(shown, &format!("{count} others ({share:.1} %)"));
        }
        for span in &self.spans {
            let line = names.iter().position(|&name| name == span.name);
            let line = line.unwrap_or(shown);
            let (x, y) = (LEFT + span.start * scale, TOP + LINE * line as f64);
            let length = (span.seconds * scale).max(0.2);
            let colour = (line * 47) % 360;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{length:.2}\" height=\"{}\" fill=\"hsl({colour},60%,50%)\"><title>{}: {} at {}</title></rect>",
                LINE - 4.0,
                escaped(&span.name),
                duration(span.seconds),
                duration(span.start),
            );
        }
        let y = TOP + LINE * lines as f64 + 16.0;
        for part in 0..=4 {
            let at = f64::from(part) / 4.0;
            let x = LEFT + WIDTH * at;
            let time = duration(end * at);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{time}</text>"
            );
        }
        out += "</svg>\n";
        out
    }
}

/// How many kernels have a line of their own in the picture.
const LINES: usize = 24;
/// Sizes of the picture: where the line of time begins and how long it is, where the first line stands, and how high each is.
const LEFT: f64 = 280.0;
const WIDTH: f64 = 1000.0;
const TOP: f64 = 34.0;
const LINE: f64 = 20.0;
/// The longest name in the picture.
const NAME: usize = 32;

fn label(line: usize, text: &str) -> String {
    let y = TOP + LINE * line as f64 + 12.0;
    format!(
        "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>\n",
        LEFT - 8.0,
        escaped(text)
    )
}

fn shortened(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.seconds();
        let end = self
            .spans
            .last()
            .map_or(0.0, |span| span.start + span.seconds);
        writeln!(
            f,
            "{} kernels on {}: {} of {}",
            self.spans.len(),
            self.device,
            duration(total),
            duration(end)
        )?;
        writeln!(f, " share  time       runs       GB/s    GFLOP/s  kernel")?;
        for row in self.rows() {
            let seconds = row.seconds.max(f64::MIN_POSITIVE);
            writeln!(
                f,
                "{:5.1} %  {:>10} {:>5} {:>10.1} {:>10.1}  {}",
                100.0 * row.seconds / total.max(f64::MIN_POSITIVE),
                duration(row.seconds),
                row.times,
                row.bytes / seconds / 1e9,
                row.operations / seconds / 1e9,
                row.name
            )?;
        }
        if self.left_out > 0 {
            writeln!(f, "{} further runs are not measured", self.left_out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Timeline {
        let span = |name: &str, start: f64, seconds: f64| Span {
            name: name.to_owned(),
            start,
            seconds,
            bytes: 4e3,
            operations: 1e3,
        };
        Timeline {
            device: "a <fast> one".to_owned(),
            spans: vec![
                span("add", 0.0, 1e-6),
                span("product", 1e-6, 8e-6),
                span("add", 1e-5, 1e-6),
            ],
            left_out: 0,
        }
    }

    #[test]
    fn runs_of_a_kernel_are_one_line_and_the_longest_is_first() {
        let timeline = example();
        let rows = timeline.rows();
        assert_eq!((rows[0].name, rows[0].times), ("product", 1));
        assert_eq!((rows[1].name, rows[1].times), ("add", 2));
        assert_eq!(rows[1].bytes, 8e3);
        assert!((timeline.seconds() - 1e-5).abs() < 1e-12);
        let text = timeline.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "3 kernels on a <fast> one: 10.0 µs of 11.0 µs");
        let product = [" 80.0 %", "8.0 µs", "0.5", "0.1", "product"];
        assert!(product.iter().all(|part| lines[2].contains(part)), "{text}");
        let add = [" 20.0 %", "2.0 µs", " 2 ", "4.0", "1.0", "add"];
        assert!(add.iter().all(|part| lines[3].contains(part)), "{text}");
    }

    #[test]
    fn the_picture_has_a_rectangle_for_each_run() {
        let svg = example().to_svg();
        assert_eq!(svg.matches("<title>").count(), 3);
        assert!(svg.contains("a &lt;fast&gt; one"));
        assert!(svg.contains("product (80.0 %)"));
    }

    #[test]
    fn a_run_without_kernels_has_a_picture() {
        let nothing = Timeline::default();
        assert!(nothing.to_svg().contains("0 kernels"));
        assert!(!nothing.to_string().contains("NaN"));
    }
}
