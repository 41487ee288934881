//! Session variables: what SET takes, SHOW tells and RESET restores.
//!
//! PostgreSQL's usual variables are accepted with the values that mean what this server does anyway, since every driver sets a few; a value
//! that would change what the client sees and that this server cannot give is refused. Our own variables are [`DIALECT`],
//! [`IDENTIFIER_CASE`], [`FRESHNESS`], [`OFFSET_RESET`] and [`PUSH_PORTAL`].

mod check;

use std::{collections::BTreeMap, time::Duration};

use highwater_exec::OffsetReset;
use highwater_planner::defaults::{self, PlanDefaults};
use highwater_sql::{Dialect, Language};

use crate::{
    planning::StatementStyle,
    sqlstate::{SqlError, code},
};

/// What a pull query must cover: `session`, `strong` or `any`.
pub const FRESHNESS: &str = "freshness";
/// Where new queries begin to read streams: `earliest`, `latest`, or empty for each kind's own default.
pub const OFFSET_RESET: &str = "auto.offset.reset";
/// Whose grammar and meaning statements have: `postgres` or `ksql`.
pub const DIALECT: &str = "dialect";
/// The case that names without quotes fold to: `lower` or `upper`; empty for the dialect's own.
pub const IDENTIFIER_CASE: &str = "identifier_case";
/// Whether a push query's portal gives what there is (`early`) or waits until it is full (`fill`).
pub const PUSH_PORTAL: &str = "push.portal";

/// The version that clients are told: drivers choose their catalog queries by it.
pub const SERVER_VERSION: &str = "15.0";

/// What a pull query must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Every record that this session wrote.
    Session,
    /// Every record that was acknowledged to anyone.
    Strong,
    /// The last committed step, whatever it covers.
    Any,
}

type Check = fn(&str) -> Result<String, &'static str>;

/// One variable.
struct Variable {
    name: &'static str,
    default: &'static str,
    /// Turns a value into its canonical form, or says what is taken; `None` for variables that cannot be set.
    check: Option<Check>,
    about: &'static str,
}

const fn variable(
    name: &'static str,
    default: &'static str,
    check: Check,
    about: &'static str,
) -> Variable {
    Variable {
        name,
        default,
        check: Some(check),
        about,
    }
}

const fn fixed(name: &'static str, value: &'static str, about: &'static str) -> Variable {
    Variable {
        name,
        default: value,
        check: None,
        about,
    }
}

/// All variables, by name without case.
const VARIABLES: &[Variable] = &[
    variable(
        "application_name",
        "",
        check::name,
        "what the client calls itself",
    ),
    variable(
        OFFSET_RESET,
        "",
        check::offset_reset,
        "where new queries begin to read streams: earliest or latest; unset, continuous queries begin with the first record and push queries with the next",
    ),
    variable("bytea_output", "hex", check::hex, "text form of BYTES"),
    variable(
        "check_function_bodies",
        "on",
        check::boolean,
        "accepted, without effect",
    ),
    variable(
        "client_encoding",
        "UTF8",
        check::utf8,
        "encoding of text on the wire",
    ),
    variable(
        "client_min_messages",
        "notice",
        check::name,
        "accepted, without effect",
    ),
    variable(
        "DateStyle",
        "ISO, MDY",
        check::date_style,
        "text form of dates",
    ),
    variable(
        "default_transaction_isolation",
        "read committed",
        check::isolation,
        "accepted, without effect",
    ),
    variable(
        "default_transaction_read_only",
        "off",
        check::boolean,
        "whether transactions refuse writes",
    ),
    variable(
        DIALECT,
        "postgres",
        check::dialect,
        "whose grammar and meaning statements have: postgres or ksql",
    ),
    variable(
        "extra_float_digits",
        "1",
        check::float_digits,
        "accepted; floats always have their shortest exact form",
    ),
    variable(
        FRESHNESS,
        "session",
        check::freshness,
        "what a pull query must cover: session, strong or any",
    ),
    variable(
        IDENTIFIER_CASE,
        "",
        check::identifier_case,
        "the case that names without quotes fold to: lower or upper; unset, the dialect's own",
    ),
    variable(
        "idle_in_transaction_session_timeout",
        "0",
        check::milliseconds,
        "accepted, without effect",
    ),
    fixed("integer_datetimes", "on", "binary form of times"),
    variable(
        "IntervalStyle",
        "postgres",
        check::interval_style,
        "text form of intervals",
    ),
    fixed("is_superuser", "on", "whether the user may do everything"),
    variable("jit", "off", check::boolean, "accepted, without effect"),
    fixed("lc_collate", "C", "order of text"),
    fixed("lc_ctype", "C", "classes of characters"),
    variable(
        defaults::COLLECT_LIST_LIMIT,
        "",
        check::limit,
        "most values of COLLECT_LIST",
    ),
    variable(
        defaults::COLLECT_SET_LIMIT,
        "",
        check::limit,
        "most values of COLLECT_SET",
    ),
    variable(
        defaults::TOPIC_PREFIX,
        "",
        check::name,
        "what the topics of results begin with, in front of the result's name",
    ),
    variable(
        defaults::DEFAULT_KEY_FORMAT,
        "",
        check::name,
        "format of keys where a statement tells none",
    ),
    variable(
        defaults::DEFAULT_VALUE_FORMAT,
        "",
        check::name,
        "format of values where a statement tells none",
    ),
    variable(
        defaults::WRAP_SINGLE_VALUES,
        "",
        check::optional_boolean,
        "whether a value of one column is an object where a statement does not say",
    ),
    variable(
        "lock_timeout",
        "0",
        check::milliseconds,
        "accepted, without effect",
    ),
    fixed("max_identifier_length", "63", "longest name"),
    variable(
        PUSH_PORTAL,
        "early",
        check::push_portal,
        "early: a push query's portal gives what there is; fill: it waits until it is full",
    ),
    variable(
        "row_security",
        "on",
        check::boolean,
        "accepted, without effect",
    ),
    variable(
        "search_path",
        "public",
        check::name,
        "accepted; there is one schema, public",
    ),
    fixed("server_encoding", "UTF8", "encoding of stored text"),
    fixed(
        "server_version",
        SERVER_VERSION,
        "the PostgreSQL version that this server resembles",
    ),
    fixed("server_version_num", "150000", "server_version as a number"),
    fixed("session_authorization", "highwater", "the user"),
    variable(
        "standard_conforming_strings",
        "on",
        check::on,
        "backslashes in strings stand for themselves",
    ),
    variable(
        "statement_timeout",
        "0",
        check::milliseconds,
        "milliseconds after which a statement is cancelled; 0 for never",
    ),
    variable(
        "synchronous_commit",
        "on",
        check::name,
        "accepted; the log's fsync policy is the server's",
    ),
    variable(
        "TimeZone",
        "UTC",
        check::time_zone,
        "zone in which TIMESTAMPTZ is shown and read",
    ),
    variable(
        "transaction_isolation",
        "read committed",
        check::isolation,
        "accepted; every query sees one committed step",
    ),
    variable(
        "transaction_read_only",
        "off",
        check::boolean,
        "whether this transaction refuses writes",
    ),
];

/// The variables that a client is told of when they change.
const REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The values of one session.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// What ALTER SYSTEM says, where the client did not ask for something else at start-up.
    system: BTreeMap<String, String>,
    /// What the client asked for at start-up: RESET goes back to these.
    initial: BTreeMap<&'static str, String>,
    changed: BTreeMap<&'static str, String>,
}

impl Variables {
    /// Sets a start-up value: what RESET goes back to.
    pub fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (variable, value) = checked(name, value)?;
        self.initial.insert(variable.name, value);
        Ok(())
    }

    /// Notes what ALTER SYSTEM says; `None` is DEFAULT.
    pub fn set_system(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) => self.system.insert(name.to_owned(), value),
            None => self.system.remove(name),
        };
    }

    /// Notes who the user is.
    pub fn set_user(&mut self, user: &str) {
        self.initial
            .insert("session_authorization", user.to_owned());
    }

    /// `SET`; `None` is DEFAULT.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let Some(value) = value else {
            return self.reset(name);
        };
        let (variable, value) = checked(name, value)?;
        self.changed.insert(variable.name, value);
        Ok(())
    }

    /// `RESET name`.
    pub fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        let variable = find(name)?;
        self.changed.remove(variable.name);
        Ok(())
    }

    /// `RESET ALL`.
    pub fn reset_all(&mut self) {
        self.changed.clear();
    }

    /// The name as it is written and the current value.
    pub fn show(&self, name: &str) -> Result<(&'static str, String), SqlError> {
        let variable = find(name)?;
        Ok((variable.name, self.value(variable)))
    }

    /// Name, value and meaning of every variable.
    pub fn show_all(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> + '_ {
        VARIABLES
            .iter()
            .map(|variable| (variable.name, self.value(variable), variable.about))
    }

    /// What ParameterStatus reports.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        REPORTED
            .iter()
            .map(|name| (*name, self.get(name)))
            .collect()
    }

    /// `TimeZone`.
    pub fn time_zone(&self) -> &str {
        self.get_ref("TimeZone")
    }

    /// `application_name`.
    pub fn application_name(&self) -> &str {
        self.get_ref("application_name")
    }

    /// `statement_timeout`, unless it is 0.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let millis = self.get_ref("statement_timeout").parse().unwrap_or(0);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// What a pull query must cover.
    pub fn freshness(&self) -> Freshness {
        match self.get_ref(FRESHNESS) {
            "strong" => Freshness::Strong,
            "any" => Freshness::Any,
            _ => Freshness::Session,
        }
    }

    /// Where new queries begin, if the session said so.
    pub fn offset_reset(&self) -> Option<OffsetReset> {
        match self.get_ref(OFFSET_RESET) {
            "earliest" => Some(OffsetReset::Earliest),
            "latest" => Some(OffsetReset::Latest),
            _ => None,
        }
    }

    /// How statements are read, and what they mean.
    pub fn language(&self) -> Language {
        let dialect: Dialect = self.get_ref(DIALECT).parse().unwrap_or_default();
        let own = dialect.identifier_case();
        Language {
            dialect,
            identifier_case: self.get_ref(IDENTIFIER_CASE).parse().unwrap_or(own),
        }
    }

    /// How statements are read, and what holds where they say nothing.
    pub fn style(&self) -> StatementStyle {
        let settings = VARIABLES
            .iter()
            .map(|variable| (variable.name.to_owned(), self.value(variable)))
            .collect();
        StatementStyle {
            language: self.language(),
            defaults: PlanDefaults::from_settings(&settings),
        }
    }

    /// Whether a push query's portal waits until it is full.
    pub fn push_portal_fill(&self) -> bool {
        self.get_ref(PUSH_PORTAL) == "fill"
    }

    /// Whether a new transaction block refuses writes, or this one does.
    pub fn read_only(&self) -> bool {
        self.get_ref("transaction_read_only") == "on"
    }

    fn get(&self, name: &str) -> String {
        self.get_ref(name).to_owned()
    }

    fn get_ref(&self, name: &str) -> &str {
        let set = self
            .changed
            .get(name)
            .or_else(|| self.initial.get(name))
            .or_else(|| self.system.get(name));
        match set {
            Some(value) => value,
            None => VARIABLES
                .iter()
                .find(|variable| variable.name == name)
                .map_or("", |variable| variable.default),
        }
    }

    fn value(&self, variable: &Variable) -> String {
        self.get(variable.name)
    }
}

/// A setting's name as it is written and the canonical form of its value; `None` is DEFAULT.
pub fn check_setting(
    name: &str,
    value: Option<&str>,
) -> Result<(&'static str, Option<String>), SqlError> {
    let Some(value) = value else {
        return Ok((find(name)?.name, None));
    };
    let (variable, value) = checked(name, value)?;
    Ok((variable.name, Some(value)))
}

fn find(name: &str) -> Result<&'static Variable, SqlError> {
    VARIABLES
        .iter()
        .find(|variable| variable.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let error = SqlError::new(
                code::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            );
            match alike(name) {
                Some(known) => error.with_hint(format!(
                    "did you mean \"{known}\"? SHOW ALL lists the parameters"
                )),
                None => error.with_hint("SHOW ALL lists the parameters"),
            }
        })
}

fn checked(name: &str, value: &str) -> Result<(&'static Variable, String), SqlError> {
    let variable = find(name)?;
    let Some(check) = variable.check else {
        return Err(SqlError::new(
            code::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{}\" cannot be changed", variable.name),
        ));
    };
    match check(value) {
        Ok(value) => Ok((variable, value)),
        Err(expected) => Err(SqlError::new(
            code::INVALID_PARAMETER_VALUE,
            format!(
                "invalid value for parameter \"{}\": \"{value}\"",
                variable.name
            ),
        )
        .with_hint(expected)),
    }
}

/// A variable whose name has most of the letters of `name` at the same distance from its start or end.
fn alike(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let shared = |other: &str| {
        let same = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
            a.zip(b).take_while(|(a, b)| a == b).count()
        };
        same(&mut name.chars(), &mut other.chars())
            + same(&mut name.chars().rev(), &mut other.chars().rev())
    };
    VARIABLES
        .iter()
        .map(|variable| (shared(&variable.name.to_ascii_lowercase()), variable.name))
        .max()
        .filter(|(shared, known)| shared * 3 >= known.len() * 2)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_canonical() {
        for variable in VARIABLES {
            if let Some(check) = variable.check {
                assert_eq!(
                    check(variable.default).as_deref(),
                    Ok(variable.default),
                    "{}",
                    variable.name
                );
            }
        }
        for name in REPORTED {
            assert!(
                VARIABLES.iter().any(|variable| variable.name == *name),
                "{name}"
            );
        }
    }

    #[test]
    fn set_and_reset_go_back_to_the_start_up_value() {
        let mut variables = Variables::default();
        variables
            .set_initial("timezone", "Asia/Kolkata")
            .expect("a zone");
        variables
            .set("TIMEZONE", Some("Europe/Berlin"))
            .expect("a zone");
        assert_eq!(variables.time_zone(), "Europe/Berlin");
        variables.set("timezone", None).expect("DEFAULT");
        assert_eq!(variables.time_zone(), "Asia/Kolkata");
        assert_eq!(
            variables.show("timezone").expect("known"),
            ("TimeZone", "Asia/Kolkata".to_owned())
        );
    }

    #[test]
    fn unknown_and_unusable_are_told_apart() {
        let mut variables = Variables::default();
        let unknown = variables.set("freshnes", Some("any")).expect_err("unknown");
        assert_eq!(unknown.code, "42704");
        assert!(
            unknown
                .hint
                .is_some_and(|hint| hint.contains("\"freshness\""))
        );
        assert_eq!(
            variables
                .set("freshness", Some("soon"))
                .expect_err("bad value")
                .code,
            "22023"
        );
        assert_eq!(
            variables
                .set("server_version", Some("16"))
                .expect_err("fixed")
                .code,
            "55P02"
        );
    }

    #[test]
    fn timeouts_take_units() {
        let mut variables = Variables::default();
        assert_eq!(variables.statement_timeout(), None);
        variables
            .set("statement_timeout", Some("2s"))
            .expect("a time");
        assert_eq!(variables.statement_timeout(), Some(Duration::from_secs(2)));
        variables
            .set("statement_timeout", Some("1500"))
            .expect("milliseconds");
        assert_eq!(
            variables.statement_timeout(),
            Some(Duration::from_millis(1500))
        );
    }
}
