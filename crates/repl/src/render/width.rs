//! Columns of the terminal that a text takes: East Asian characters are two wide, combining marks none.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for the part of a text that was cut off; one column wide.
const ELLIPSIS: char = '…';

/// The columns a text takes.
pub(crate) fn display_width(text: &str) -> usize {
    text.width()
}

/// The text itself when it fits, else its front and `…`. The result takes at most `width` columns.
pub(crate) fn truncate(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return Cow::Borrowed(text);
    }
    if width == 0 {
        return Cow::Borrowed("");
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = used + c.width().unwrap_or(0);
        if next > width - 1 {
            break;
        }
        used = next;
        cut.push(c);
    }
    cut.push(ELLIPSIS);
    Cow::Owned(cut)
}

/// Spaces behind the text up to `width` columns.
pub(crate) fn pad_right(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(display_width(text));
    format!("{text}{:padding$}", "")
}

/// Spaces before the text up to `width` columns.
pub(crate) fn pad_left(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(display_width(text));
    format!("{:padding$}{text}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_texts_never_exceed_their_width() {
        for text in ["Zürich", "東京都", "plain", "", "e\u{301}e\u{301}e\u{301}"] {
            for width in 0..8 {
                let cut = truncate(text, width);
                assert!(display_width(&cut) <= width, "{text:?} in {width}: {cut:?}");
            }
        }
        assert_eq!(truncate("東京都", 4), "東…");
        assert_eq!(truncate("東京都", 6), "東京都");
    }

    #[test]
    fn padding_counts_columns_not_characters() {
        assert_eq!(pad_right("東", 4), "東  ");
        assert_eq!(pad_left("é", 3), "  é");
        assert_eq!(pad_left("long", 2), "long");
    }
}
