//! What was measured, as a table and as JSON.

use serde_json::{Value, json};
use std::time::Duration;

/// What as many callers got done, and how long each had to wait.
pub struct Sample {
    pub per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Sample {
    pub fn new(mut taken: Vec<Duration>, during: Duration) -> Self {
        taken.sort_unstable();
        let at = |share: f64| taken.get((taken.len() as f64 * share) as usize).copied().unwrap_or_default();
        Self { per_second: taken.len() as f64 / during.as_secs_f64(), p50: at(0.5), p99: at(0.99) }
    }
}

pub struct Figure {
    pub store: &'static str,
    pub connections: usize,
    /// Without HTTP.
    pub inside: Sample,
    pub outside: Sample,
}

impl Figure {
    /// The share of what the engine takes in that is kept over HTTP.
    pub fn ratio(&self) -> f64 {
        self.outside.per_second / self.inside.per_second
    }

    fn rows(&self) -> [Value; 3] {
        let row = |metric: &str, unit, value: f64, limit: f64| {
            let metric = format!("{metric}, {} connections", self.connections);
            json!({
                "bench": "door", "store": self.store, "metric": metric, "value": rounded(value), "unit": unit,
                "limit": rounded(limit), "ratio": rounded(value / limit),
            })
        };
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        [
            row("POST /api/v1/jobs", "requests/s", self.outside.per_second, self.inside.per_second),
            row("p50", "ms", ms(self.outside.p50), ms(self.inside.p50)),
            row("p99", "ms", ms(self.outside.p99), ms(self.inside.p99)),
        ]
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

pub fn print(figures: &[Figure], json: bool) {
    if json {
        println!("{:#}", figures.iter().flat_map(Figure::rows).collect::<Value>());
        return;
    }
    println!("POST /api/v1/jobs over HTTP, beside the same command from as many callers in the process");
    println!(
        "{:<10} {:>11} {:>12} {:>9} {:>9} {:>12} {:>9} {:>9} {:>7}",
        "store", "connections", "requests/s", "p50 ms", "p99 ms", "commits/s", "p50 ms", "p99 ms", "ratio"
    );
    for figure in figures {
        let Figure { store, connections, inside, outside } = figure;
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        println!(
            "{store:<10} {connections:>11} {:>12.0} {:>9.2} {:>9.2} {:>12.0} {:>9.2} {:>9.2} {:>7.2}",
            outside.per_second,
            ms(outside.p50),
            ms(outside.p99),
            inside.per_second,
            ms(inside.p50),
            ms(inside.p99),
            figure.ratio()
        );
    }
}
