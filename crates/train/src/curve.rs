//! The curve of losses, as SVG.

use crate::log::Line;
use plotters::prelude::*;

/// The most points that are drawn; of more, means of neighbours are.
const POINTS: usize = 1000;

/// Draws losses by steps. Where they span more than two powers of ten, the axis is logarithmic.
pub(crate) fn draw(lines: &[Line]) -> Result<String, Box<dyn std::error::Error>> {
    let mut points = thinned(lines);
    let last = points.last().map_or(1.0, |point| point.0.max(1.0));
    let (mut lowest, mut highest) = range(&points);
    let is_logarithmic = lowest > 0.0 && highest > 100.0 * lowest;
    if is_logarithmic {
        for point in &mut points {
            point.1 = point.1.log10();
        }
        (lowest, highest) = (lowest.log10(), highest.log10());
    } else {
        lowest = lowest.min(0.0);
    }
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (800, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("loss", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..last, lowest..highest)?;
    let label = |value: &f64| match is_logarithmic {
        true => format!("{:.1e}", 10f64.powf(*value)),
        false => format!("{value:.4}"),
    };
    chart
        .configure_mesh()
        .x_desc("step")
        .y_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    chart.draw_series(LineSeries::new(points, BLUE))?;
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}

/// The smallest and the largest loss; numbers that differ if the losses do not.
fn range(points: &[(f64, f64)]) -> (f64, f64) {
    let losses = points.iter().map(|point| point.1);
    let lowest = losses.clone().fold(f64::INFINITY, f64::min);
    let highest = losses.fold(f64::NEG_INFINITY, f64::max);
    match (points.is_empty(), lowest < highest) {
        (true, _) => (0.0, 1.0),
        (false, true) => (lowest, highest),
        (false, false) => (lowest - 1.0, lowest + 1.0),
    }
}

fn thinned(lines: &[Line]) -> Vec<(f64, f64)> {
    let together = lines.len().div_ceil(POINTS).max(1);
    let mean = |lines: &[Line]| {
        let sum: f64 = lines.iter().map(|line| line.loss).sum();
        (lines[0].step as f64, sum / lines.len() as f64)
    };
    lines.chunks(together).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(losses: &[f64]) -> Vec<Line> {
        let all = losses.iter().enumerate();
        let line = |(step, &loss): (usize, &f64)| Line {
            step: step as u64,
            loss,
            seconds: 0.0,
        };
        all.map(line).collect()
    }

    #[test]
    fn any_losses_can_be_drawn() {
        let many: Vec<f64> = (1..5000).map(|step| 1.0 / f64::from(step)).collect();
        for losses in [&[][..], &[1.0], &[0.0, 0.0], &[-1.0, 2.0], &many] {
            let svg = draw(&lines(losses)).unwrap();
            assert!(svg.contains("</svg>"), "{losses:?}");
        }
        assert_eq!(thinned(&lines(&many)).len(), 1000);
    }
}
