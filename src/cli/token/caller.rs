//! Whom a token is for, and the curl line that sends it.

/// A principal and its capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The claim `sub`.
    pub sub: Option<String>,
    /// The claim `capabilities`, left out if there are none.
    pub capabilities: Vec<String>,
}

impl Caller {
    /// A request with the token, ready for a shell, below a comment that says whose it is.
    pub fn curl(&self, url: &str, token: &str) -> String {
        let words: Vec<&str> = self.sub.iter().chain(&self.capabilities).map(String::as_str).collect();
        // One line: what follows a line break would be a command.
        let comment = words.join(" ").replace(char::is_control, " ");
        format!("# {comment}\ncurl -isS -H 'Authorization: Bearer {token}' '{url}'")
    }
}

/// Reads `NAME [CAPABILITY]...`.
pub fn parse(text: &str) -> Result<Caller, String> {
    let mut words = text.split_whitespace().map(str::to_owned);
    let sub = Some(words.next().ok_or("there is no name; write one such as 'alice prefix:rate:5/1m'")?);
    Ok(Caller { sub, capabilities: words.collect() })
}

/// Reads a URL that single quotes hold together in a shell.
pub fn parse_url(text: &str) -> Result<String, String> {
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    let is_one_word = !text.contains(|c: char| c == '\'' || c.is_whitespace() || c.is_control());
    if is_web && is_one_word { Ok(text.to_owned()) } else { Err("write a URL such as http://localhost:8000/".into()) }
}
