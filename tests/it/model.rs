//! A naive model of the caller limiter: the formulas of the rules in 128-bit integers over a flat list.

/// A rate as count and window in nanoseconds.
pub type Numbers = (u64, u64);

/// What the model says of one request.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    pub limits: Vec<Numbers>,
    /// The refusing rate and its wait; `None` for the wait if none helps.
    pub refused: Option<(Numbers, Option<u64>)>,
}

/// One caller.
#[derive(Default)]
pub struct Caller {
    allowances: Vec<(Numbers, i128, i128)>,
}

fn interval((count, window): Numbers) -> i128 {
    i128::from((window / count).max(1))
}

/// The general form, with the burst apart from the count.
fn tolerance(rate: Numbers) -> i128 {
    let (count, window, burst) = (i128::from(rate.0), i128::from(rate.1), i128::from(rate.0));
    (burst * window / count).min(interval(rate) * (burst + 1) - 1)
}

impl Caller {
    pub fn request(&mut self, now: u64, rates: &[Numbers], cost: u64) -> Verdict {
        let now = i128::from(now);
        for &rate in rates {
            match self.allowances.iter_mut().find(|known| known.0 == rate) {
                Some(known) => known.2 = now,
                None => self.allowances.push((rate, now, now)),
            }
        }
        let forgotten = |&(rate, _, seen): &(Numbers, i128, i128)| now - seen > 2 * i128::from(rate.1);
        self.allowances.retain(|known| !(forgotten(known) && known.1 <= now));
        let price = |rate| i128::from(cost) * interval(rate);
        let mut applied: Vec<_> = self.allowances.iter_mut().filter(|known| !forgotten(known)).collect();
        applied.sort_by_key(|known| (known.0.1, known.0.0));
        let wait = |&(rate, tat, _): &(Numbers, i128, i128)| (tat - now).max(0) + price(rate) - tolerance(rate);
        let never = |rate| price(rate) > tolerance(rate);
        // The first of those that wait longest; one that never fits waits longest of all.
        let rank = |known: &&mut (Numbers, i128, i128)| if never(known.0) { i128::MAX } else { wait(known) };
        let refusing = applied.iter().filter(|known| wait(known) > 0).rev().max_by_key(|known| rank(known));
        let refused = refusing.map(|known| (known.0, (!never(known.0)).then(|| u64::try_from(wait(known)).unwrap())));
        let limits = applied.iter().map(|known| known.0).collect();
        if refused.is_none() {
            applied.iter_mut().for_each(|known| known.1 = known.1.max(now) + price(known.0));
        }
        Verdict { limits, refused }
    }
}
