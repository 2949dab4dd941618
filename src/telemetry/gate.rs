//! How many lines each rule may write: the first of a flood say what it is, and the rest are counted.

use crate::rate::Rate;
use crate::store::gcra::{Fit, Terms};
use crate::time::Now;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Lets so many lines of each rule through. Rules are names of the configuration, so that there are not many.
#[derive(Default)]
pub struct Gate(Mutex<HashMap<String, Lines>>);

#[derive(Default)]
struct Lines {
    /// When the rule's allowance of lines is full again, in nanoseconds.
    tat: u64,
    left_out: u64,
}

impl Gate {
    /// Whether a line about `rule` may be written at `now`, and how many were left out before it; without a rate, all may.
    pub fn pass(&self, rule: &str, rate: Option<Rate>, now: Now) -> Option<u64> {
        let Some(rate) = rate else { return Some(0) };
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = match rules.get_mut(rule) {
            Some(lines) => lines,
            None => rules.entry(rule.to_owned()).or_default(),
        };
        let terms = Terms::of(rate);
        // A rate that was another before a reload leaves no more debt than this one permits.
        lines.tat = lines.tat.min(now.nanos().saturating_add(terms.tolerance));
        if terms.weigh(lines.tat, now.nanos(), 1) != Fit::Fits {
            lines.left_out += 1;
            return None;
        }
        lines.tat = terms.take(lines.tat, now.nanos(), 1);
        Some(std::mem::take(&mut lines.left_out))
    }

    /// What was left out and not told yet, by rule.
    pub fn take_left_out(&self) -> Vec<(String, u64)> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = rules.iter_mut().filter(|(_, lines)| lines.left_out > 0);
        left_out.map(|(rule, lines)| (rule.clone(), std::mem::take(&mut lines.left_out))).collect()
    }
}
