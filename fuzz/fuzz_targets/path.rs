//! Any bytes have a canonical path or none, and nothing in a canonical path is left to be resolved.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::path::{EncodedSlash, canonical};

fuzz_target!(|path: &[u8]| {
    for encoded_slash in [EncodedSlash::Refuse, EncodedSlash::Literal] {
        let Ok(found) = canonical(path, encoded_slash) else { continue };
        assert!(found.starts_with('/') || matches!(&*found, "" | "*"));
        assert!(!found.contains("//") && !found.contains(['\\', ';']));
        assert!(!found.bytes().any(|byte| byte.is_ascii_control()));
        assert!(found.split('/').all(|segment| segment != "." && segment != ".."));
        assert!(encoded_slash == EncodedSlash::Literal || !found.to_ascii_lowercase().contains("%2f"));
        // These would be read as an escape, a query and a fragment; they come from `%25`, `%3F` and `%23`.
        if !found.contains(['%', '?', '#']) {
            assert_eq!(canonical(found.as_bytes(), encoded_slash).as_deref(), Ok(&*found));
        }
    }
});
