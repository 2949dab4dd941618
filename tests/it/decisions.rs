//! The expected results of `tests/conformance/` about decisions: scenarios, bursts, state.

use crate::conformance::{cases, nanos, strings};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Decision, DefaultResolver, Denial, HeldRate, Limiter, ManualClock, Rate, Rates, Resolver, Verdict};

/// A scenario's resolver, as its description in the data says.
struct Described(Value);

impl Described {
    /// Appends the rates of a list, built in code. One that is no rate is an error, as building it in code is.
    fn append(list: &Value, rates: &mut Rates<'_>) -> Result<(), Denial> {
        for rate in list.as_array().into_iter().flatten() {
            let (count, window) = (rate["count"].as_i64().unwrap(), rate["window_ns"].as_i64().unwrap());
            let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
            rates.push(match (count, window) {
                (0, 0) => HeldRate::ZERO,
                _ => Rate::new(unsigned(count), Duration::from_nanos(unsigned(window)))
                    .map_err(|_| Denial::new("invalid-rate"))?
                    .into(),
            });
        }
        Ok(())
    }

    fn base(&self, rates: &mut Rates<'_>) -> Result<(), Denial> {
        if self.0["base"] == "raw" { Ok(()) } else { DefaultResolver::default().resolve(&(), b"", rates) }
    }

    /// Replaces the rates by the override for `principal`, if there is one.
    fn overridden(&self, principal: &[u8], rates: &mut Rates<'_>) -> Option<Result<(), Denial>> {
        let list = self.0["overrides"].get(std::str::from_utf8(principal).ok()?)?;
        rates.clear();
        Some(Self::append(list, rates))
    }

    fn names(&self, principal: &[u8]) -> bool {
        strings(&self.0["principals"]).iter().any(|name| name.as_bytes() == principal)
    }
}

fn required(rates: &Rates<'_>) -> Result<(), Denial> {
    if rates.is_empty() { Err(Denial::new("resolver:no rate capability")) } else { Ok(()) }
}

impl Resolver<()> for Described {
    fn resolve(&self, (): &(), principal: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        let listed = &self.0["rates"];
        match self.0["kind"].as_str().unwrap() {
            "default" => self.base(rates),
            "raw" => Ok(()),
            "none" => {
                rates.clear();
                Ok(())
            }
            "fixed" => {
                rates.clear();
                Self::append(listed, rates)
            }
            "vouch" if rates.is_empty() => Self::append(listed, rates),
            "vouch" => self.base(rates),
            "ceiling" => {
                self.base(rates)?;
                let spared = rates.is_empty() && self.0["keep_unrestricted"] == true;
                if spared { Ok(()) } else { Self::append(listed, rates) }
            }
            "override" => self.overridden(principal, rates).unwrap_or_else(|| self.base(rates)),
            "require" => {
                self.base(rates)?;
                required(rates)
            }
            "block" if self.names(principal) => Err(Denial::new("resolver:blocked")),
            "zero" if self.names(principal) => {
                rates.clear();
                rates.push(HeldRate::ZERO);
                Ok(())
            }
            "block" | "zero" => self.base(rates),
            "zero-append" => {
                self.base(rates)?;
                rates.push(HeldRate::ZERO);
                Ok(())
            }
            "drop-zero" => {
                rates.retain(|held| !held.is_zero());
                self.base(rates)
            }
            "docs" => match self.overridden(principal, rates) {
                Some(result) => result,
                None => {
                    self.base(rates)?;
                    required(rates)?;
                    Self::append(listed, rates)
                }
            },
            other => panic!("unknown resolver {other}"),
        }
    }
}

fn start(scenario: &Value) -> (Limiter<Described>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let limiter = Limiter::builder(strings(&scenario["prefixes"]))
        .resolver(Described(scenario["resolver"].clone()))
        .clock(Arc::clone(&clock))
        .build()
        .unwrap();
    (limiter, clock)
}

fn check_step(decision: &Decision<'_>, step: &Value, name: &str) {
    let limits: Vec<String> = decision.limits().iter().map(ToString::to_string).collect();
    let numbers: Vec<[u64; 2]> =
        decision.limits().iter().map(|held| held.rate().map_or([0, 0], |rate| [rate.count(), nanos(rate)])).collect();
    let warnings: Vec<String> =
        decision.warnings().map(|warning| String::from_utf8(warning.to_bytes()).unwrap()).collect();
    let (limit, wait, error) = match decision.verdict() {
        Verdict::Allowed => (String::new(), 0, "none".to_owned()),
        Verdict::RateExceeded { limit, retry_after, .. } => {
            (limit.to_string(), retry_after.map_or(0, |wait| wait.as_nanos()), "none".to_owned())
        }
        Verdict::Denied(denial) => (String::new(), 0, denial.to_string()),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(decision.is_allowed(), step["allowed"], "{name}: {step}");
    assert_eq!(decision.reason().to_string(), step["reason"], "{name}: {step}");
    assert_eq!(limits, strings(&step["limits"]), "{name}: {step}");
    assert_eq!(serde_json::json!(numbers), step["limits_num"], "{name}: {step}");
    assert_eq!(wait, u128::from(step["retry_after_ns"].as_u64().unwrap()), "{name}: {step}");
    assert_eq!(warnings, strings(&step["warnings"]), "{name}: {step}");
    assert_eq!(error, step["error"], "{name}: {step}");
    assert_eq!(limit, step["limit"], "{name}: {step}");
}

#[test]
fn scenarios() {
    let scenarios = cases("decisions.jsonl");
    let mut steps = 0;
    for scenario in &scenarios {
        let (limiter, clock) = start(scenario);
        for step in scenario["steps"].as_array().unwrap() {
            clock.set(Duration::from_nanos(step["at_ns"].as_u64().unwrap()));
            let capabilities = strings(&step["capabilities"]);
            let decision = limiter.check(&(), step["principal"].as_str().unwrap(), &capabilities);
            check_step(&decision, step, scenario["name"].as_str().unwrap());
            steps += 1;
        }
    }
    assert_eq!((scenarios.len(), steps), (310, 5_769));
}

#[test]
fn state() {
    let scenarios = cases("state.jsonl");
    assert_eq!(scenarios.len(), 5);
    for scenario in &scenarios {
        let (limiter, clock) = start(scenario);
        for step in scenario["steps"].as_array().unwrap() {
            clock.set(Duration::from_nanos(step["at_ns"].as_u64().unwrap()));
            let (principal, capabilities) = (step["principal"].as_str().unwrap(), strings(&step["capabilities"]));
            let decision = limiter.check(&(), principal, &capabilities);
            assert_eq!(decision.reason().to_string(), step["reason"], "{step}");
            assert_eq!(limiter.allowances(principal).len() as u64, step["allowances"], "{step}");
            assert_eq!(!limiter.allowances(principal).is_empty(), step["has_state"], "{step}");
        }
    }
}

#[test]
fn bursts() {
    let cases = cases("bursts.jsonl");
    assert_eq!(cases.len(), 47);
    for case in cases {
        let rate: Rate = case["rate"].as_str().unwrap().parse().unwrap();
        assert_eq!((rate.count(), nanos(rate)), (case["count"].as_u64().unwrap(), case["window_ns"].as_u64().unwrap()));
        let clock = Arc::new(ManualClock::default());
        let raw = |_: &(), _: &[u8], _: &mut Rates<'_>| Ok(());
        let limiter = Limiter::builder(["p:"]).resolver(raw).clock(Arc::clone(&clock)).build().unwrap();
        let capability = format!("p:{rate}");
        let call = |cost| limiter.check_cost(cost, &(), "caller", [&capability]);
        let burst = case["burst"].as_u64().unwrap();
        assert!(call(burst).is_allowed(), "{case}");
        let refused = call(1);
        let wait = Duration::from_nanos(case["first_retry_after_ns"].as_u64().unwrap());
        assert!(
            matches!(refused.verdict(), Verdict::RateExceeded { retry_after: Some(told), .. } if *told == wait),
            "{case}: {refused:?}"
        );
    }
}
