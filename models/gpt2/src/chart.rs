//! Bars side by side, as SVG.

use crate::files::replace::replace_bytes;
use crate::files::{FileError, Problem};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Bars that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What stands beside them.
    pub name: String,
    /// How long they are, in the order of the legend.
    pub values: Vec<f64>,
}

const COLOURS: [RGBColor; 3] = [
    RGBColor(127, 127, 127),
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
];

/// Writes a chart to `path`: a group of horizontal bars for each of `groups`, one bar for each entry of `legend`.
pub fn save(path: &Path, title: &str, legend: &[&str], groups: &[Group]) -> Result<(), FileError> {
    let svg = draw(title, legend, groups).map_err(|problem| problem.at(path))?;
    replace_bytes(path, svg.as_bytes())
}

/// A chart.
pub fn draw(title: &str, legend: &[&str], groups: &[Group]) -> Result<String, Problem> {
    let mut svg = String::new();
    draw_into(&mut svg, title, legend, groups)
        .map_err(|error| Problem::Malformed(format!("the chart cannot be drawn: {error}")))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    title: &str,
    legend: &[&str],
    groups: &[Group],
) -> Result<(), Box<dyn std::error::Error>> {
    const BAR: i32 = 14;
    const LEFT: i32 = 340;
    const WIDTH: i32 = 900;
    let group_height = BAR * (legend.len() as i32 + 1);
    let top = 44 + 20 * legend.len() as i32;
    let height = top + group_height * groups.len() as i32 + 12;
    let mut values: Vec<f64> = groups
        .iter()
        .flat_map(|group| &group.values)
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    values.sort_by(f64::total_cmp);
    let median = values.get(values.len() / 2).copied().unwrap_or(1.0);
    let largest = values.last().copied().unwrap_or(1.0);
    // A bar that is far longer than others is cut off at the border, so that the others stay visible.
    let longest = largest.min(6.0 * median).max(1e-9);
    let scale = f64::from(WIDTH - LEFT - 80) / longest;

    let area = SVGBackend::with_string(svg, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size: i32, position| {
        ("sans-serif", size)
            .into_font()
            .into_text_style(&area)
            .pos(position)
    };
    let at_left = Pos::new(HPos::Left, VPos::Center);
    area.draw(&Text::new(title, (12, 20), text(18, at_left)))?;
    for (i, name) in legend.iter().enumerate() {
        let y = 44 + 20 * i as i32;
        let colour = COLOURS[i % COLOURS.len()].filled();
        area.draw(&Rectangle::new([(12, y - 6), (36, y + 6)], colour))?;
        area.draw(&Text::new(*name, (44, y), text(13, at_left)))?;
    }
    for (i, group) in groups.iter().enumerate() {
        let y = top + group_height * i as i32;
        let middle = y + BAR * legend.len() as i32 / 2;
        let at_right = Pos::new(HPos::Right, VPos::Center);
        area.draw(&Text::new(
            group.name.as_str(),
            (LEFT - 10, middle),
            text(13, at_right),
        ))?;
        for (j, &value) in group.values.iter().enumerate() {
            let y = y + BAR * j as i32;
            let end = LEFT
                + if value.is_finite() {
                    (value.min(longest) * scale) as i32
                } else {
                    0
                };
            let colour = COLOURS[j % COLOURS.len()].filled();
            area.draw(&Rectangle::new([(LEFT, y), (end, y + BAR - 2)], colour))?;
            let label = format!("{value:.2}");
            area.draw(&Text::new(
                label,
                (end + 6, y + BAR / 2 - 1),
                text(12, at_left),
            ))?;
        }
    }
    area.present()?;
    Ok(())
}
