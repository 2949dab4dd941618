//! The keyed limiter of the library: rates given with each call, give-backs, full tables.

use std::sync::Arc;
use std::time::Duration;
use tollgate::{Exceeded, KeyedLimiter, Now, Rate, WhenFull};

fn at(seconds: u64) -> Now {
    Now::after(Duration::from_secs(seconds))
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn wait(result: Result<tollgate::Held, Exceeded>) -> Option<u64> {
    result.unwrap_err().retry_after_seconds()
}

#[test]
fn a_key_has_an_allowance_for_each_rate() {
    let limiter = KeyedLimiter::new(100, WhenFull::Overflow);
    let (hour, minute) = (rate("2/1h"), rate("3/1m"));
    assert_eq!(limiter.check("a", hour, 1, at(0)).unwrap().remaining, 1);
    assert_eq!(limiter.check("a", hour, 1, at(0)).unwrap().remaining, 0);
    assert_eq!(wait(limiter.check("a", hour, 1, at(0))), Some(1800));
    assert_eq!(limiter.check("a", minute, 3, at(0)).unwrap().remaining, 0);
    assert_eq!(wait(limiter.check("a", minute, 4, at(0))), None, "it never fits");
    assert_eq!(limiter.check("b", hour, 2, at(0)).unwrap().remaining, 0, "another key");
    assert_eq!(limiter.check("b", hour, 0, at(0)).unwrap().remaining, 0, "a look is always let through");
    assert_eq!(limiter.check("a", hour, 1, at(1800)).unwrap().remaining, 0);
    assert_eq!(limiter.counts().live, 3);
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let limiter = KeyedLimiter::new(100, WhenFull::Overflow);
    let hour = rate("4/1h");
    limiter.check("a", hour, 4, at(0)).unwrap();
    limiter.give_back("a", hour, 1);
    assert_eq!(limiter.peek("a", hour, at(0)).remaining, 1);
    limiter.give_back("a", hour, 100);
    assert_eq!(limiter.peek("a", hour, at(0)).remaining, 4, "no more than a full allowance holds");
    limiter.give_back("stranger", hour, 1);
    assert_eq!(limiter.peek("stranger", hour, at(0)).remaining, 4);
    assert_eq!(limiter.peek("a", hour, at(0)).full_in, Duration::ZERO);
}

#[test]
fn a_full_table() {
    let hour = rate("1/1h");
    for (when_full, third) in
        [(WhenFull::Overflow, Ok(())), (WhenFull::Evict, Ok(())), (WhenFull::Refuse, Err(Some(1)))]
    {
        let limiter = KeyedLimiter::new(2, when_full);
        limiter.check("a", hour, 1, at(0)).unwrap();
        limiter.check("b", hour, 1, at(1)).unwrap();
        let said = limiter.check("c", hour, 1, at(2)).map(drop).map_err(Exceeded::retry_after_seconds);
        assert_eq!(said, third, "{when_full:?}");
        let spent = limiter.check("a", hour, 1, at(3)).is_err();
        assert_eq!(
            spent,
            when_full != WhenFull::Evict,
            "{when_full:?}: the oldest is forgiven only where that is asked for"
        );
        assert!(limiter.counts().live <= 2);
        limiter.sweep(at(7200));
        assert_eq!(limiter.counts().live, 0);
    }
}

#[test]
fn threads_take_exactly_what_there_is() {
    let limiter = Arc::new(KeyedLimiter::new(10, WhenFull::Overflow));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            std::thread::spawn(move || {
                (0..100).filter(|_| limiter.check("a", rate("300/24h"), 1, at(0)).is_ok()).count()
            })
        })
        .collect();
    assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), 300);
}
