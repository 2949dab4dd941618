//! `tollgate token`: mints a signed JWT, and the JWKS that verifies it, for demos and tests.

mod caller;
mod files;
mod key;

use caller::Caller;
use files::{fresh_key, kept_key, write_jwks};
pub use key::{Algorithm, KeyError, SigningKey};

use super::Failure;
use crate::{rate, time};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLE: &str = "\
Example: a caller held to 5 calls a minute, and the JWKS for Envoy's jwt_authn filter

  tollgate token --key demo.pem --jwks jwks.json \\
      --iss https://issuer.example/ --aud api --sub alice --capability prefix:rate:5/1m

--key makes demo.pem on its first use; with the same file every later token fits the same JWKS.

Several callers in one run, each with a line that is ready for a shell:

  tollgate token --key demo.pem --jwks jwks.json --iss https://issuer.example/ --aud api \\
      --caller 'alice prefix:rate:5/1m' --caller bob --curl http://localhost:8000/";

/// Mint a signed JWT, and the JWKS that verifies it, for demos and tests
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Arguments {
    /// The signature's algorithm
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    alg: Algorithm,
    /// A private key, PKCS#8 in PEM; created if there is no such file [default: a fresh key, not kept]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Write the public JWKS to this file; `-` prints it on a line after the token
    #[arg(long, value_name = "FILE")]
    jwks: Option<PathBuf>,
    /// Who the token is issued to: the caller's principal
    #[arg(long, value_name = "TEXT")]
    sub: Option<String>,
    /// Who issued it
    #[arg(long, value_name = "TEXT")]
    iss: Option<String>,
    /// Whom it is meant for
    #[arg(long, value_name = "TEXT")]
    aud: Option<String>,
    /// A capability, such as prefix:rate:5/1m; repeat it for several
    #[arg(long = "capability", value_name = "TEXT")]
    capabilities: Vec<String>,
    /// A caller and its capabilities, in place of --sub and --capability; repeat it for a token each
    #[arg(long = "caller", value_name = "NAME [CAPABILITY]...", value_parser = caller::parse, conflicts_with_all = ["sub", "capabilities"])]
    callers: Vec<Caller>,
    /// Any other claim, or another value for one of the above; repeat it for several
    #[arg(long = "claim", value_name = "NAME=JSON", value_parser = parse_claim)]
    claims: Vec<(String, Value)>,
    /// How long the token is good for, such as 90s, 15m or 1h30m; at least 1s
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_seconds)]
    expires_in: u64,
    /// Print a curl line that sends the token to this URL, not the token alone
    #[arg(long, value_name = "URL", value_parser = caller::parse_url)]
    curl: Option<String>,
}

/// Mints the tokens and prints them.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.key.is_some() && arguments.key == arguments.jwks {
        return Err(failure(2, "--key and --jwks name the same file".into(), "give the JWKS a file of its own"));
    }
    let key = match &arguments.key {
        Some(path) => kept_key(path, arguments.alg)?,
        None => fresh_key(arguments.alg)?,
    };
    let now = time::unix_now();
    let mut lines = Vec::new();
    for caller in arguments.callers() {
        lines.push(mint(&arguments, &key, &caller, now)?);
    }
    match &arguments.jwks {
        Some(path) if path.as_os_str() == "-" => lines.push(key.jwks().to_string()),
        Some(path) => write_jwks(path, &key)?,
        None => {}
    }
    writeln!(io::stdout(), "{}", lines.join("\n")).map_err(|error| Failure::output(&error))
}

impl Arguments {
    fn callers(&self) -> Vec<Caller> {
        if self.callers.is_empty() {
            vec![Caller { sub: self.sub.clone(), capabilities: self.capabilities.clone() }]
        } else {
            self.callers.clone()
        }
    }
}

/// A token, or the curl line with it.
fn mint(arguments: &Arguments, key: &SigningKey, caller: &Caller, now: u64) -> Result<String, Failure> {
    let token = key.sign(&claims(arguments, caller, now)).map_err(|error| {
        failure(1, format!("cannot sign the token: {error}"), "try another key: `--key` with the name of a new file")
    })?;
    Ok(match &arguments.curl {
        Some(url) => caller.curl(url, &token),
        None => token,
    })
}

fn claims(arguments: &Arguments, caller: &Caller, now: u64) -> Value {
    let texts = [("sub", &caller.sub), ("iss", &arguments.iss), ("aud", &arguments.aud)];
    let mut claims: Map<String, Value> =
        texts.into_iter().filter_map(|(name, text)| Some((name.into(), text.clone()?.into()))).collect();
    if !caller.capabilities.is_empty() {
        claims.insert("capabilities".into(), caller.capabilities.clone().into());
    }
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(arguments.expires_in).into());
    claims.extend(arguments.claims.iter().cloned());
    claims.into()
}

fn failure(code: u8, message: String, hint: &str) -> Failure {
    Failure { code, message, hint: Some(hint.into()) }
}

fn parse_claim(text: &str) -> Result<(String, Value), String> {
    let (name, json) = text.split_once('=').ok_or("there is no `=`; write NAME=JSON, such as plan='\"pro\"'")?;
    if name.is_empty() {
        return Err("the claim has no name; write NAME=JSON, such as plan='\"pro\"'".into());
    }
    let value = serde_json::from_str(json).map_err(|error| {
        format!("`{json}` is not JSON ({error}); a text needs its own quotes: {name}='\"{}\"'", json.replace('"', ""))
    })?;
    Ok((name.into(), value))
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    let seconds = rate::parse_duration(text.as_bytes()).map_or(0, |nanoseconds| nanoseconds / 1_000_000_000);
    // The time claims count whole seconds.
    if seconds > 0 {
        Ok(seconds)
    } else {
        Err("not a duration of at least 1s; write one such as 90s, 15m or 1h30m".into())
    }
}

#[cfg(test)]
mod tests;
