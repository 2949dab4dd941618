//! `tollgate token`: mints a signed JWT, and the JWKS that verifies it, for demos and tests.

mod key;

pub use key::{Algorithm, KeyError, SigningKey};

use super::Failure;
use crate::{rate, time};
use serde_json::{Map, Value};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "\
Example: a caller held to 5 calls a minute, and the JWKS for Envoy's jwt_authn filter

  tollgate token --key demo.pem --jwks jwks.json \\
      --iss https://issuer.example/ --aud api --sub alice --capability prefix:rate:5/1m

--key makes demo.pem on its first use; with the same file every later token fits the same JWKS.";

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
    /// Any other claim, or another value for one of the above; repeat it for several
    #[arg(long = "claim", value_name = "NAME=JSON", value_parser = parse_claim)]
    claims: Vec<(String, Value)>,
    /// How long the token is good for, such as 90s, 15m or 1h30m; at least 1s
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_seconds)]
    expires_in: u64,
}

/// Mints the token and prints it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.key.is_some() && arguments.key == arguments.jwks {
        return Err(failure(2, "--key and --jwks name the same file".into(), "give the JWKS a file of its own"));
    }
    let key = match &arguments.key {
        Some(path) => kept_key(path, arguments.alg)?,
        None => fresh_key(arguments.alg)?,
    };
    let mut output = key.sign(&claims(&arguments, time::unix_now())).map_err(|error| {
        failure(1, format!("cannot sign the token: {error}"), "try another key: `--key` with the name of a new file")
    })?;
    match &arguments.jwks {
        Some(path) if path.as_os_str() == "-" => output += &format!("\n{}", key.jwks()),
        Some(path) => write_jwks(path, &key)?,
        None => {}
    }
    writeln!(io::stdout(), "{output}").map_err(|error| Failure::output(&error))
}

fn claims(arguments: &Arguments, now: u64) -> Value {
    let texts = [("sub", &arguments.sub), ("iss", &arguments.iss), ("aud", &arguments.aud)];
    let mut claims: Map<String, Value> =
        texts.into_iter().filter_map(|(name, text)| Some((name.into(), text.clone()?.into()))).collect();
    if !arguments.capabilities.is_empty() {
        claims.insert("capabilities".into(), arguments.capabilities.clone().into());
    }
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(arguments.expires_in).into());
    claims.extend(arguments.claims.iter().cloned());
    claims.into()
}

fn fresh_key(alg: Algorithm) -> Result<SigningKey, Failure> {
    SigningKey::generate(alg)
        .map_err(|error| failure(1, error.to_string(), "pass an existing private key with `--key FILE`"))
}

fn kept_key(path: &Path, alg: Algorithm) -> Result<SigningKey, Failure> {
    match fs::read_to_string(path) {
        Ok(pem) => SigningKey::from_pem(&pem, alg).map_err(|error| {
            let hint = "pass the `--alg` this key is for, or a file that does not exist yet: it will be created";
            failure(2, format!("{}: {error}", path.display()), hint)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = fresh_key(alg)?;
            match keep(path, &key) {
                Ok(()) => Ok(key),
                // Another process was faster; its key is as good.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept_key(path, alg),
                Err(error) => Err(file_failure("create", path, &error)),
            }
        }
        Err(error) => Err(file_failure("read", path, &error)),
    }
}

/// Writes a private key that only its owner may read, whole or not at all, and never over another file.
fn keep(path: &Path, key: &SigningKey) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
    let linked =
        written.and_then(|mut file| file.write_all(key.pem().as_bytes())).and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    linked
}

fn write_jwks(path: &Path, key: &SigningKey) -> Result<(), Failure> {
    fs::write(path, format!("{}\n", key.jwks())).map_err(|error| file_failure("write", path, &error))
}

fn file_failure(act: &str, path: &Path, error: &io::Error) -> Failure {
    let message = format!("{}: cannot {act} this file: {error}", path.display());
    failure(1, message, "check the path and its permissions, or name another file")
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
