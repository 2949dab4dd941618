//! What to do about a text that is not YAML.

/// What to do about the parser's `message` on `line`.
pub fn hint(message: &str, line: &str) -> &'static str {
    const HINTS: [(&str, &str); 10] = [
        ("tabs disallowed", "indent with spaces"),
        (
            "unexpected character: `\\u",
            "remove this character; double quotes take it as an escape, such as \"\\u001b\"",
        ),
        ("anchor or alias", "a text that begins with `*` or `&` must be in quotes"),
        ("unexpected character", "put a text that begins with or holds such a character in double quotes"),
        ("mapping values", "a text with a colon must be in quotes; a key must stand straight below its neighbours"),
        ("unknown escape", "a backslash in double quotes begins an escape: put the text in single quotes"),
        ("unclosed quote", "close the quote"),
        ("unclosed bracket", "close the bracket"),
        ("misplaced bracket", "remove the bracket, or put the text in quotes"),
        ("simple key", "write `key: value`, with a space after the colon"),
    ];
    match HINTS.iter().find(|(part, _)| message.contains(part)) {
        _ if holds_address(line) => "put an address that begins with a bracket in quotes, such as \"[::]:10003\"",
        Some((_, hint)) => hint,
        None => "look for a bracket, a quote or an indentation that is wrong here or in the line above",
    }
}

/// Whether `[::]:10003` or the like stands in the line; without quotes it reads as a list with something after it.
fn holds_address(line: &str) -> bool {
    line.split("]:").skip(1).any(|port| port.starts_with(|char: char| char.is_ascii_digit()))
}
