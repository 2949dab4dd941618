//! Any bytes are a body that holds a field or does not: never a panic. A body that grows to the limit holds none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::body::{form, json};
use tollgate::request::Request;

fuzz_target!(|body: &[u8]| {
    let request = Request { body, ..Request::default() };
    let path = ["a".to_owned(), "b".to_owned()];
    for found in [json(&request, &path[..1]), json(&request, &path), form(&request, "a")].into_iter().flatten() {
        assert!(body.len() < 8 * 1024 && found.len() <= body.len() + 16);
    }
});
