//! Curves of losses over steps, as SVG.

use crate::files::replace::replace_bytes;
use crate::files::{FileError, Problem};
use crate::log::Entry;
use plotters::prelude::*;
use std::path::Path;

/// A line of the plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Steps and losses.
    pub points: Vec<(f64, f64)>,
    /// Whether single points are marked.
    pub marked: bool,
    /// How wide the line is. Lines that come later lie above, so that a wide one shows below a narrow one.
    pub width: u32,
}

const COLOURS: [RGBColor; 4] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
];

/// The curves of a run: the losses in training and in validation.
pub fn curves_of(name: &str, entries: &[Entry]) -> [Curve; 2] {
    let point = |entry: &Entry, loss: f32| (entry.step as f64, f64::from(loss));
    let training = entries.iter().map(|entry| point(entry, entry.loss));
    let validation = entries
        .iter()
        .filter_map(|entry| Some(point(entry, entry.validation?)));
    [
        Curve {
            name: format!("{name}, training"),
            points: training.collect(),
            marked: false,
            width: 2,
        },
        Curve {
            name: format!("{name}, validation"),
            points: validation.collect(),
            marked: true,
            width: 2,
        },
    ]
}

/// Writes a plot of `curves` to `path`.
pub fn save(path: &Path, title: &str, curves: &[Curve]) -> Result<(), FileError> {
    let svg = draw(title, curves).map_err(|problem| problem.at(path))?;
    replace_bytes(path, svg.as_bytes())
}

/// A plot of `curves`.
pub fn draw(title: &str, curves: &[Curve]) -> Result<String, Problem> {
    let mut svg = String::new();
    draw_into(&mut svg, title, curves)
        .map_err(|error| Problem::Malformed(format!("the plot cannot be drawn: {error}")))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    title: &str,
    curves: &[Curve],
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let last = points().fold(1.0, |last: f64, point| last.max(point.0));
    let largest = points().fold(0.1, |largest: f64, point| largest.max(finite(point.1)));

    let area = SVGBackend::with_string(svg, (800, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..last, 0.0..1.05 * largest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("step")
        .y_desc("loss")
        .draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let points = curve.points.iter().map(|&(x, y)| (x, finite(y)));
        let size = if curve.marked { 2 + curve.width / 2 } else { 0 };
        chart
            .draw_series(
                LineSeries::new(points, colour.stroke_width(curve.width)).point_size(size),
            )?
            .label(&curve.name)
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(curve.width))
            });
    }
    chart
        .configure_series_labels()
        // Losses start high.
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
