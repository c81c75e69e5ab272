//! Tables and the chart.

use crate::measure::Measurement;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// The head of a table of speeds.
pub fn head(contestants: &[String]) -> String {
    format!(
        "| m×n×k | layout | {} | {} / best other |\n|---|---|{}",
        contestants.join(" | "),
        contestants[0],
        "---|".repeat(contestants.len() + 1)
    )
}

/// A line of the table, which ends with the ratio of the first contestant to the best of the others.
pub fn line(measurement: &Measurement) -> String {
    let case = measurement.case;
    let mut text = format!("| {} | {} |", case.size(), case.layout());
    for speed in &measurement.speeds {
        text += &match speed {
            Some(speed) => format!(" {speed:.1} |"),
            None => " – |".to_owned(),
        };
    }
    let others = measurement.speeds[1..].iter().flatten();
    let best = others.copied().fold(0.0, f64::max);
    text += &match measurement.speeds[0] {
        Some(first) if best > 0.0 => format!(" {:.2} |", first / best),
        _ => " – |".to_owned(),
    };
    text
}

/// Draws the speed of all contestants over the side of squares.
///
/// # Errors
/// If the file cannot be written.
pub fn chart(
    file: &Path,
    title: &str,
    contestants: &[String],
    squares: &[Measurement],
) -> Result<()> {
    let area = SVGBackend::new(file, (900, 500)).into_drawing_area();
    draw(&area, title, contestants, squares).map_err(|error| anyhow!("{}: {error}", file.display()))
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    contestants: &[String],
    squares: &[Measurement],
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let side = |measurement: &Measurement| measurement.case.sizes[0] as f64;
    let largest = squares.iter().map(side).fold(2.0, f64::max);
    let speeds = squares
        .iter()
        .flat_map(|measurement| measurement.speeds.iter().flatten());
    let fastest = speeds.copied().fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((1.0..largest).log_scale().base(2.0), 0.0..fastest * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("side")
        .y_desc("GFLOP/s")
        .x_label_formatter(&|side| format!("{side:.0}"))
        .draw()?;
    for (index, name) in contestants.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let points = squares
            .iter()
            .filter_map(|measurement| Some((side(measurement), measurement.speeds[index]?)));
        let width = if index == 0 { 3 } else { 1 };
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(width)))?
            .label(name)
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(width))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
