//! The measurements, as a table and as a chart.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write as _;

/// The measurements of one instance: seconds, and peak bytes besides the instance.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The objective that it is an instance of.
    pub group: &'static str,
    pub name: String,
    pub objective: f64,
    pub derivative: f64,
    pub by_hand: f64,
    pub memory: Option<usize>,
    pub memory_by_hand: Option<usize>,
}

impl Measured {
    /// How many times as long as the objective the derivative takes.
    pub fn ratio(&self) -> f64 {
        self.derivative / self.objective
    }

    /// The same for the hand-written derivative.
    pub fn ratio_by_hand(&self) -> f64 {
        self.by_hand / self.objective
    }
}

/// The geometric means of one objective's instances.
#[derive(Clone, Debug)]
pub struct Means {
    pub group: &'static str,
    pub ratio: f64,
    pub ratio_by_hand: f64,
    /// The derivative over the hand-written one.
    pub to_hand: f64,
}

/// The means of each objective, in the order in which they come first.
pub fn means_of(all: &[Measured]) -> Vec<Means> {
    let mut means: Vec<Means> = Vec::new();
    for one in all {
        if means.iter().any(|known| known.group == one.group) {
            continue;
        }
        let of_group = || all.iter().filter(|other| other.group == one.group);
        means.push(Means {
            group: one.group,
            ratio: geometric_mean(of_group().map(Measured::ratio)),
            ratio_by_hand: geometric_mean(of_group().map(Measured::ratio_by_hand)),
            to_hand: geometric_mean(of_group().map(|one| one.derivative / one.by_hand)),
        });
    }
    means
}

fn geometric_mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

/// All of it as a table in Markdown: the means first.
pub fn write_table(all: &[Measured]) -> String {
    let mut text =
        String::from("| geometric means | J/F | by hand/F | J/by hand |\n|---|---|---|---|\n");
    for one in means_of(all) {
        let _ = writeln!(
            text,
            "| {} | **{:.2}** | {:.2} | {:.2} |",
            one.group, one.ratio, one.ratio_by_hand, one.to_hand
        );
    }
    text.push_str(
        "\n| instance | F ms | J ms | by hand ms | J/F | by hand/F | J/by hand | J MB | by hand MB |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let megabytes = |bytes: Option<usize>| match bytes {
            Some(bytes) => format!("{:.3}", bytes as f64 / 1e6),
            None => "–".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} | {} | {} |",
            one.name,
            one.objective * 1e3,
            one.derivative * 1e3,
            one.by_hand * 1e3,
            one.ratio(),
            one.ratio_by_hand(),
            one.derivative / one.by_hand,
            megabytes(one.memory),
            megabytes(one.memory_by_hand),
        );
    }
    text
}

/// Two bars for each instance, as SVG: how many times as long as the objective the derivatives take, on a logarithmic scale.
///
/// # Errors
/// If it cannot be drawn.
pub fn draw_chart(all: &[Measured]) -> Result<String, String> {
    let mut svg = String::new();
    draw_into(&mut svg, all).map_err(|error| format!("the chart cannot be drawn: {error}"))?;
    Ok(svg)
}

fn draw_into(svg: &mut String, all: &[Measured]) -> Result<(), Box<dyn std::error::Error>> {
    const BAR: i32 = 11;
    const LEFT: i32 = 330;
    const WIDTH: i32 = 900;
    const TOP: i32 = 90;
    let row = 2 * BAR + 6;
    let height = TOP + row * all.len() as i32 + 12;
    let ratios = all
        .iter()
        .flat_map(|one| [one.ratio(), one.ratio_by_hand()]);
    let longest = ratios
        .filter(|ratio| ratio.is_finite())
        .fold(10.0, f64::max);
    let scale = f64::from(WIDTH - LEFT - 80) / longest.ln_1p();

    let area = SVGBackend::with_string(svg, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size: i32, side| {
        let style = ("sans-serif", size).into_font().into_text_style(&area);
        style.pos(Pos::new(side, VPos::Center))
    };
    let title = "Time of the derivative over that of the objective (shorter is better)";
    area.draw(&Text::new(title, (12, 20), text(18, HPos::Left)))?;
    let colours = [RGBColor(31, 119, 180), RGBColor(160, 160, 160)];
    for (name, (colour, y)) in ["Ferrozyme", "by hand"]
        .into_iter()
        .zip(colours.iter().zip([46, 66]))
    {
        area.draw(&Rectangle::new([(12, y - 6), (36, y + 6)], colour.filled()))?;
        area.draw(&Text::new(name, (44, y), text(13, HPos::Left)))?;
    }
    for (index, one) in all.iter().enumerate() {
        let top = TOP + row * index as i32;
        let name = one.name.trim_end_matches(".txt");
        area.draw(&Text::new(
            name,
            (LEFT - 10, top + BAR),
            text(12, HPos::Right),
        ))?;
        let ratios = [one.ratio(), one.ratio_by_hand()];
        for (lane, (ratio, colour)) in ratios.into_iter().zip(colours).enumerate() {
            let y = top + BAR * lane as i32;
            let length = if ratio.is_finite() {
                ratio.ln_1p() * scale
            } else {
                0.0
            };
            let end = LEFT + length as i32;
            area.draw(&Rectangle::new(
                [(LEFT, y), (end, y + BAR - 1)],
                colour.filled(),
            ))?;
            let label = format!("{ratio:.1}");
            area.draw(&Text::new(
                label,
                (end + 6, y + BAR / 2),
                text(11, HPos::Left),
            ))?;
        }
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(group: &'static str, derivative: f64) -> Measured {
        Measured {
            group,
            name: format!("{group}/one.txt"),
            objective: 1.0,
            derivative,
            by_hand: 2.0,
            memory: Some(1_500_000),
            memory_by_hand: None,
        }
    }

    #[test]
    fn means_are_geometric_and_by_objective() {
        let all = [measured("a", 2.0), measured("b", 3.0), measured("a", 8.0)];
        let means = means_of(&all);
        let found: Vec<(&str, f64)> = means.iter().map(|one| (one.group, one.ratio)).collect();
        assert_eq!(found.len(), 2);
        assert!((found[0].1 - 4.0).abs() < 1e-12 && (found[1].1 - 3.0).abs() < 1e-12);
        assert!((means[0].to_hand - 2.0).abs() < 1e-12);
        let table = write_table(&all);
        assert!(table.contains("| a | **4.00** | 2.00 | 2.00 |"));
        assert!(table.contains("| 8.00 | 2.00 | 4.00 | 1.500 | – |"));
    }

    #[test]
    fn the_chart_names_all_instances() {
        let svg = draw_chart(&[measured("a", 2.0), measured("b", f64::NAN)]).expect("drawn");
        assert!(svg.starts_with("<svg") && svg.contains("a/one") && svg.contains("b/one"));
    }
}
