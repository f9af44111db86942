//! Figures with their limits and aims, as a table or as JSON.

use serde_json::{Value, json};

/// What a figure should come to.
#[derive(Clone, Copy)]
pub enum Aim {
    /// Of the limit, at least.
    Ratio(f64),
    /// In the figure's own unit.
    AtMost(f64),
}

pub struct Figure {
    pub store: &'static str,
    pub metric: String,
    pub value: f64,
    pub unit: &'static str,
    pub limit: Option<f64>,
    pub aim: Option<Aim>,
}

impl Figure {
    fn ratio(&self) -> Option<f64> {
        self.limit.map(|limit| self.value / limit)
    }

    fn reached(&self) -> Option<bool> {
        match self.aim? {
            Aim::Ratio(least) => Some(self.ratio()? >= least),
            Aim::AtMost(most) => Some(self.value <= most),
        }
    }

    fn aim_text(&self) -> String {
        match self.aim {
            Some(Aim::Ratio(least)) => format!(">= {least}"),
            Some(Aim::AtMost(most)) => format!("<= {most} {}", self.unit),
            None => String::new(),
        }
    }
}

/// The figures of one database, each told as soon as it is known.
pub struct Figures {
    pub store: &'static str,
    pub all: Vec<Figure>,
}

impl Figures {
    pub const fn new(store: &'static str) -> Self {
        Self { store, all: Vec::new() }
    }

    pub fn raw(&mut self, metric: &str, value: f64, unit: &'static str) {
        self.add(metric.to_owned(), value, unit, None, None);
    }

    pub fn add(&mut self, metric: String, value: f64, unit: &'static str, limit: Option<f64>, aim: Option<Aim>) {
        let figure = Figure { store: self.store, metric, value, unit, limit, aim };
        let ratio = figure.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}"));
        eprintln!("{:<10} {:<52} {:>12.2} {:<8} {ratio}", figure.store, figure.metric, figure.value, figure.unit);
        self.all.push(figure);
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

pub fn print(figures: &[Figure], json: bool) {
    if json {
        let rows = figures.iter().map(|f| {
            json!({
                "bench": "queue", "store": f.store, "metric": f.metric, "value": rounded(f.value), "unit": f.unit,
                "limit": f.limit.map(rounded), "ratio": f.ratio().map(rounded),
                "aim": f.aim.map(|_| f.aim_text()), "reached": f.reached(),
            })
        });
        println!("{:#}", rows.collect::<Value>());
        return;
    }
    println!("{:<10} {:<52} {:>12} {:<8} {:>6}  aim", "store", "metric", "value", "unit", "ratio");
    for f in figures {
        let ratio = f.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let missed = if f.reached() == Some(false) { "  missed" } else { "" };
        println!(
            "{:<10} {:<52} {:>12.2} {:<8} {ratio:>6}  {}{missed}",
            f.store,
            f.metric,
            f.value,
            f.unit,
            f.aim_text()
        );
    }
}

/// The middle one of some measurements.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}
