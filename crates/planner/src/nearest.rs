//! The nearest of some names to a mistyped one, for hints.

/// The candidate with the fewest edits to `name`, if at most a third of its letters (and at least one) differ.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                edits(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// A hint that names the nearest candidate.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean \"{candidate}\"?"))
}

/// Levenshtein distance, one row at a time.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_has_fewest_edits() {
        let names = ["kafka_topic", "key_format", "value_format"];
        assert_eq!(nearest("value_fromat", names), Some("value_format"));
        assert_eq!(nearest("kafka_topik", names), Some("kafka_topic"));
        assert_eq!(nearest("colour", names), None);
    }

    #[test]
    fn edits_count_inserts_deletes_and_replacements() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
