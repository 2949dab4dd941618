//! Tests of the signing keys, their JWKS and the claims of a token.

use super::caller::{self, Caller};
use super::{Algorithm, Arguments, SigningKey, claims, kept_key, parse_claim, parse_seconds};
use clap::Parser;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn claims_of(flags: &[&str]) -> Value {
    let line = Line::try_parse_from(["token"].iter().chain(flags)).unwrap();
    let [caller] = &line.arguments.callers()[..] else { panic!("not one caller: {flags:?}") };
    claims(&line.arguments, caller, 1_700_000_000)
}

fn verified(key: &SigningKey, token: &str) -> Value {
    let keys: JwkSet = serde_json::from_value(key.jwks()).unwrap();
    let header = jsonwebtoken::decode_header(token).unwrap();
    let public = keys.find(header.kid.as_deref().unwrap()).unwrap();
    let mut validation = Validation::new(header.alg);
    validation.set_required_spec_claims(&["sub"]);
    validation.validate_aud = false;
    jsonwebtoken::decode(token, &DecodingKey::from_jwk(public).unwrap(), &validation).unwrap().claims
}

#[test]
fn the_jwks_verifies_the_token() {
    for algorithm in [Algorithm::Es256, Algorithm::Rs256] {
        let key = SigningKey::generate(algorithm).unwrap();
        let claims = json!({ "sub": "alice", "aud": "api" });
        assert_eq!(verified(&key, &key.sign(&claims).unwrap()), claims);
        assert_eq!(key.jwks()["keys"][0]["use"], "sig");
        assert_eq!(key.jwks()["keys"][0]["alg"], algorithm.to_string());
    }
}

#[test]
fn flags_become_claims_and_claim_has_the_last_word() {
    let times = json!({ "iat": 1_700_000_000, "exp": 1_700_003_600 });
    assert_eq!(claims_of(&[]), times);
    let flags = ["--sub=a", "--iss=b", "--aud=c", "--capability=p:5/1m", "--capability=x", "--expires-in=1m30s"];
    let expected = json!({
        "sub": "a", "iss": "b", "aud": "c", "capabilities": ["p:5/1m", "x"], "iat": 1_700_000_000, "exp": 1_700_000_090,
    });
    assert_eq!(claims_of(&flags), expected);
    assert_eq!(claims_of(&["--sub=a", "--claim=sub=7", "--claim=exp=1", "--claim=iat=null"])["sub"], 7);
    let (caller, alone) = (["--caller= a  p:5/1m x "], ["--sub=a", "--capability=p:5/1m", "--capability=x"]);
    assert_eq!(claims_of(&caller), claims_of(&alone));
    assert!(Line::try_parse_from(["token", "--caller=a", "--sub=b"]).is_err());
}

#[test]
fn a_curl_line_is_one_comment_and_one_command() {
    let caller = Caller { sub: Some("a\nrm".into()), capabilities: vec!["p:5/1m".into()] };
    let expected = "# a rm p:5/1m\ncurl -isS -H 'Authorization: Bearer x.y.z' 'http://h/[1-6]'";
    assert_eq!(caller.curl("http://h/[1-6]", "x.y.z"), expected);
}

#[test]
fn wrong_values_say_what_to_write() {
    let says = |error: String, part: &str| assert!(error.contains(part), "{error}");
    says(parse_claim("plan=pro").unwrap_err(), r#"`pro` is not JSON (expected value at line 1 column 1)"#);
    says(parse_claim("plan=pro").unwrap_err(), r#"plan='"pro"'"#);
    says(parse_claim("plan").unwrap_err(), "NAME=JSON");
    says(parse_claim("=1").unwrap_err(), "NAME=JSON");
    for wrong in ["", "1", "999ms", "-1s", "soon"] {
        says(parse_seconds(wrong).unwrap_err(), "1h30m");
    }
    says(caller::parse(" ").unwrap_err(), "'alice prefix:rate:5/1m'");
    for wrong in ["", "localhost", "http://h/'; rm", "http://h/\n"] {
        says(caller::parse_url(wrong).unwrap_err(), "http://localhost:8000/");
    }
}

#[test]
fn a_kept_key_is_made_once_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let made = kept_key(&path, Algorithm::Es256).ok().unwrap();
    let read = kept_key(&path, Algorithm::Es256).ok().unwrap();
    assert_eq!(made.jwks(), read.jwks());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let failure = kept_key(&path, Algorithm::Rs256).err().unwrap();
    assert_eq!(failure.code, 2);
    assert!(
        failure.message.ends_with("key.pem: not a private key for RS256 in PKCS#8 PEM form"),
        "{}",
        failure.message
    );
}
