//! The files of a signing key: the private half, which is kept for its owner, and the JWKS.

use super::{Algorithm, Failure, SigningKey, failure};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A new key that is not kept.
pub fn fresh_key(alg: Algorithm) -> Result<SigningKey, Failure> {
    SigningKey::generate(alg)
        .map_err(|error| failure(1, error.to_string(), "pass an existing private key with `--key FILE`"))
}

/// The key in this file, which is made if it is not there.
pub fn kept_key(path: &Path, alg: Algorithm) -> Result<SigningKey, Failure> {
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

/// Writes the public half.
pub fn write_jwks(path: &Path, key: &SigningKey) -> Result<(), Failure> {
    fs::write(path, format!("{}\n", key.jwks())).map_err(|error| file_failure("write", path, &error))
}

fn file_failure(act: &str, path: &Path, error: &io::Error) -> Failure {
    let message = format!("{}: cannot {act} this file: {error}", path.display());
    failure(1, message, "check the path and its permissions, or name another file")
}
