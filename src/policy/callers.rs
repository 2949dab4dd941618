//! The caller rules: a resolver that walks a list from top to bottom.

use super::Mode;
use super::facts::Facts;
use super::index::Index;
use super::when::When;
use crate::held::{HeldRate, Rates};
use crate::rate::Rate;
use crate::resolver::{DefaultResolver, Denial, Resolver};
use std::collections::HashSet;
use std::sync::Arc;

/// The caller rules of a deployment.
#[derive(Debug)]
pub struct CallerRules {
    /// What holds before the first rule: window bounds, and what a malformed capability means.
    base: DefaultResolver,
    rules: Vec<CallerRule>,
    index: Index,
}

/// What a rule says of the requests that it applies to.
#[derive(Clone, Debug)]
pub struct CallerRule {
    /// The requests that it applies to.
    pub when: When,
    /// What it does.
    pub action: Action,
    /// Whether it is enforced.
    pub mode: Mode,
}

/// What a caller rule does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Refuses the request. Ends the list.
    Deny(Denial),
    /// Holds the request to the zero rate. Ends the list.
    AllowNothing,
    /// Holds the request to these rates, whatever its token says. Ends the list.
    Override(Vec<Rate>),
    /// Holds the request to no rate. Ends the list.
    Unrestricted,
    /// Holds the request to these rates, if its token carries none. From here on it counts as carrying them.
    Vouch(Vec<Rate>),
    /// Refuses the request, if its token carries no rate.
    RequireRate(Denial),
    /// Holds the request to these rates as well.
    Ceiling {
        /// The rates.
        rates: Vec<Rate>,
        /// Whether a request that carries no rate is spared.
        spares_unrestricted: bool,
    },
}

impl CallerRules {
    /// Rules that are walked in this order, after `base`.
    pub fn new(base: DefaultResolver, rules: Vec<CallerRule>) -> Self {
        let index = Index::new(rules.iter().map(|rule| &rule.when));
        Self { base, rules, index }
    }

    /// What holds before the first rule.
    pub fn base(&self) -> DefaultResolver {
        self.base
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[CallerRule] {
        &self.rules
    }

    /// Whether some rule is only observed.
    pub fn observes(&self) -> bool {
        self.rules.iter().any(|rule| rule.mode == Mode::Observe)
    }

    /// The rates that rules of this mode hold callers to.
    pub fn rates(&self, mode: Mode) -> HashSet<Rate> {
        let rules = self.rules.iter().filter(|rule| rule.mode == mode);
        rules.flat_map(|rule| rule.action.rates()).copied().collect()
    }

    /// The rules that apply to a request, in order.
    fn applying<'s>(&'s self, facts: &Facts<'_>) -> impl Iterator<Item = &'s CallerRule> {
        let candidates = self.index.candidates(facts);
        candidates.into_iter().map(|number| &self.rules[number as usize]).filter(|rule| rule.when.matches(facts))
    }
}

impl Action {
    /// The rates that it holds callers to.
    pub fn rates(&self) -> &[Rate] {
        match self {
            Self::Override(rates) | Self::Vouch(rates) | Self::Ceiling { rates, .. } => rates,
            Self::Deny(_) | Self::AllowNothing | Self::Unrestricted | Self::RequireRate(_) => &[],
        }
    }

    /// Whether no rule after it is asked.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Deny(_) | Self::AllowNothing | Self::Override(_) | Self::Unrestricted)
    }
}

/// The final say of the rules that are enforced. Those that are observed do not count.
#[derive(Clone, Debug)]
pub struct Enforced(pub Arc<CallerRules>);

/// What the rules that are observed would add to it: refusals, and rates that stand for themselves.
#[derive(Clone, Debug)]
pub struct Observed(pub Arc<CallerRules>);

impl Resolver<Facts<'_>> for Enforced {
    fn resolve(&self, facts: &Facts<'_>, principal: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        let carries = !rates.is_empty();
        self.0.base.resolve(facts, principal, rates)?;
        walk(self.0.applying(facts), Mode::Enforce, carries, rates)
    }
}

impl Resolver<Facts<'_>> for Observed {
    fn resolve(&self, facts: &Facts<'_>, _: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        let carries = !rates.is_empty();
        rates.clear();
        walk(self.0.applying(facts), Mode::Observe, carries, rates)
    }
}

/// Walks rules for what those of `mode` say. A rule that is enforced has its place in the list for both: it ends it, and
/// a token that it vouches for carries a rate.
fn walk<'r>(
    rules: impl Iterator<Item = &'r CallerRule>,
    mode: Mode,
    mut carries: bool,
    rates: &mut Rates<'_>,
) -> Result<(), Denial> {
    for CallerRule { action, mode: own, .. } in rules {
        let is_heard = *own == mode;
        if !is_heard && *own == Mode::Observe {
            continue;
        }
        if action.ends() {
            rates.clear();
        }
        match action {
            Action::Deny(denial) if is_heard => return Err(denial.clone()),
            Action::RequireRate(denial) if is_heard && !carries => return Err(denial.clone()),
            Action::AllowNothing if is_heard => rates.push(HeldRate::ZERO),
            Action::Override(own) if is_heard => rates.extend(own.iter().copied()),
            Action::Ceiling { rates: own, spares_unrestricted } if is_heard && (carries || !spares_unrestricted) => {
                rates.extend(own.iter().copied());
            }
            Action::Vouch(own) if !carries => {
                carries = true;
                if is_heard {
                    rates.extend(own.iter().copied());
                }
            }
            _ => {}
        }
        if action.ends() {
            break;
        }
    }
    Ok(())
}
