//! Figures as they come: a line each for people, one document at the end for programs.

use std::io::{self, Write};

use serde::Serialize;

/// Limits of the machine that bars refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// MB/s to disk.
    pub(super) disk_write: f64,
    /// MB/s out of the page cache.
    pub(super) cache_read: f64,
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    who: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
}

/// A figure beside what it should be.
#[derive(Debug, Serialize)]
struct Compared {
    ratio: f64,
    to: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    reached: bool,
}

/// What a bar asks of a ratio.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bar {
    AtLeast(f64),
    AtMost(f64),
    /// Only the ratio is shown.
    None,
}

/// Takes figures and shows them.
#[derive(Debug, Default)]
pub(super) struct Figures {
    json: bool,
    all: Vec<Figure>,
}

impl Figures {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            all: Vec::new(),
        }
    }

    /// A limit of the machine.
    pub(super) fn machine(&mut self, what: &str, value: f64, unit: &'static str) {
        self.take("machine", what.into(), value, unit, None);
    }

    /// A figure of ours.
    pub(super) fn ours(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.take("log", what.into(), value, unit, None);
    }

    /// A figure of ours beside a limit.
    pub(super) fn compare(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        limit: (f64, &'static str),
        bar: Bar,
    ) {
        let ratio = value / limit.0;
        let (at_least, at_most) = match bar {
            Bar::AtLeast(least) => (Some(least), None),
            Bar::AtMost(most) => (None, Some(most)),
            Bar::None => (None, None),
        };
        let compared = Compared {
            ratio,
            to: limit.1,
            at_least,
            at_most,
            reached: at_least.is_none_or(|least| ratio >= least)
                && at_most.is_none_or(|most| ratio <= most),
        };
        self.take("log", what.into(), value, unit, Some(compared));
    }

    fn take(
        &mut self,
        who: &'static str,
        what: String,
        value: f64,
        unit: &'static str,
        compared: Option<Compared>,
    ) {
        let figure = Figure {
            who,
            what,
            value,
            unit,
            compared,
        };
        if !self.json {
            println!("{}", figure.line());
        }
        self.all.push(figure);
    }

    /// Shows the document, if that was asked for.
    pub(super) fn finish(&self) -> io::Result<()> {
        if self.json {
            let mut out = io::stdout().lock();
            serde_json::to_writer_pretty(&mut out, &self.all)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// How many bars were missed.
    pub(super) fn missed(&self) -> usize {
        let compared = self
            .all
            .iter()
            .filter_map(|figure| figure.compared.as_ref());
        compared.filter(|compared| !compared.reached).count()
    }
}

impl Figure {
    fn line(&self) -> String {
        let Self {
            who,
            what,
            value,
            unit,
            ..
        } = self;
        let value = if *value >= 100.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.3}")
        };
        let mut line = format!("{who:8} {what:64} {value:>10} {unit}");
        if let Some(compared) = &self.compared {
            line += &format!("   {:.2} x {}", compared.ratio, compared.to);
            let bar = compared
                .at_least
                .map(|least| format!("at least {least}"))
                .or(compared.at_most.map(|most| format!("at most {most}")));
            if let Some(bar) = bar {
                let verdict = if compared.reached {
                    "reached"
                } else {
                    "MISSED"
                };
                line += &format!(" ({bar}: {verdict})");
            }
        }
        line
    }
}
