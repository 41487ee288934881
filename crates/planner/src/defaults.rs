//! What holds where a statement says nothing: ksqlDB's settings that decide what a statement makes.
//!
//! They come from the session that runs the statement and are kept with what it made, so that planning it again gives the same.

use std::collections::BTreeMap;

/// Names of the settings, as `SET` and the command topic have them.
pub const DEFAULT_KEY_FORMAT: &str = "ksql.persistence.default.format.key";
/// See [`PlanDefaults::value_format`].
pub const DEFAULT_VALUE_FORMAT: &str = "ksql.persistence.default.format.value";
/// See [`PlanDefaults::wrap_single_value`].
pub const WRAP_SINGLE_VALUES: &str = "ksql.persistence.wrap.single.values";
/// See [`PlanDefaults::topic_prefix`].
pub const TOPIC_PREFIX: &str = "ksql.output.topic.name.prefix";
/// See [`PlanDefaults::collect_list_limit`].
pub const COLLECT_LIST_LIMIT: &str = "ksql.functions.collect_list.limit";
/// See [`PlanDefaults::collect_set_limit`].
pub const COLLECT_SET_LIMIT: &str = "ksql.functions.collect_set.limit";

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanDefaults {
    /// Format of keys where nothing tells one.
    pub key_format: Option<String>,
    /// Format of values where nothing tells one.
    pub value_format: Option<String>,
    /// Whether a value of one column is an object where nothing says so.
    pub wrap_single_value: Option<bool>,
    /// What the topics of results begin with, behind which their name stands.
    pub topic_prefix: String,
    /// Most values of COLLECT_LIST.
    pub collect_list_limit: Option<usize>,
    /// Most values of COLLECT_SET.
    pub collect_set_limit: Option<usize>,
}

/// Nothing but what is built in.
pub static NO_DEFAULTS: PlanDefaults = PlanDefaults {
    key_format: None,
    value_format: None,
    wrap_single_value: None,
    topic_prefix: String::new(),
    collect_list_limit: None,
    collect_set_limit: None,
};

impl PlanDefaults {
    /// Takes what settings say; an empty value says nothing, as one does that cannot be read.
    pub fn from_settings(settings: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| settings.get(name).filter(|value| !value.is_empty());
        let limit = |name: &str| get(name).and_then(|value| value.parse().ok());
        Self {
            key_format: get(DEFAULT_KEY_FORMAT).map(|format| format.to_uppercase()),
            value_format: get(DEFAULT_VALUE_FORMAT).map(|format| format.to_uppercase()),
            wrap_single_value: get(WRAP_SINGLE_VALUES)
                .and_then(|value| value.to_lowercase().parse().ok()),
            topic_prefix: get(TOPIC_PREFIX).cloned().unwrap_or_default(),
            collect_list_limit: limit(COLLECT_LIST_LIMIT),
            collect_set_limit: limit(COLLECT_SET_LIMIT),
        }
    }

    /// The settings that say something.
    pub fn to_settings(&self) -> BTreeMap<String, String> {
        let number = |limit: Option<usize>| limit.map(|limit| limit.to_string());
        let prefix = Some(self.topic_prefix.clone()).filter(|prefix| !prefix.is_empty());
        let settings = [
            (DEFAULT_KEY_FORMAT, self.key_format.clone()),
            (DEFAULT_VALUE_FORMAT, self.value_format.clone()),
            (
                WRAP_SINGLE_VALUES,
                self.wrap_single_value.map(|wrap| wrap.to_string()),
            ),
            (TOPIC_PREFIX, prefix),
            (COLLECT_LIST_LIMIT, number(self.collect_list_limit)),
            (COLLECT_SET_LIMIT, number(self.collect_set_limit)),
        ];
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back() {
        let defaults = PlanDefaults {
            key_format: Some("JSON".to_owned()),
            wrap_single_value: Some(false),
            topic_prefix: "out_".to_owned(),
            collect_set_limit: Some(3),
            ..PlanDefaults::default()
        };
        assert_eq!(
            PlanDefaults::from_settings(&defaults.to_settings()),
            defaults
        );
        assert_eq!(PlanDefaults::from_settings(&BTreeMap::new()), NO_DEFAULTS);
        assert!(NO_DEFAULTS.to_settings().is_empty());
    }
}
