//! What a request costs: how many units of every rate it spends.

use super::facts::{Facts, Field, Value};
use super::index::Index;
use super::when::When;

/// The costs of a deployment. The first that applies counts; without one, a request costs one unit.
#[derive(Debug, Default)]
pub struct Costs {
    rules: Vec<CostRule>,
    index: Index,
}

/// What some requests cost.
#[derive(Clone, Debug)]
pub struct CostRule {
    /// The requests.
    pub when: When,
    /// What they cost.
    pub cost: Cost,
}

/// The cost of a request.
#[derive(Clone, Debug)]
pub enum Cost {
    /// So many units; 0 is a look that spends nothing.
    Constant(u64),
    /// What the request itself says.
    From(CostSource),
}

/// Where a request says what it costs.
#[derive(Clone, Debug)]
pub struct CostSource {
    /// A header or a context entry that holds a whole number.
    pub field: Field,
    /// The cost where it holds none.
    pub default: u64,
    /// The most that it can cost.
    pub max: u64,
    /// Whether what it holds was not written by the client. If it may be, it counts only above the default.
    pub trusted: bool,
}

/// What a request is found to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Units of every rate.
    pub units: u64,
    /// Whether the default stands in for a value that is absent or no whole number.
    pub is_default: bool,
}

impl Costs {
    /// Costs that are asked in this order.
    pub fn new(rules: Vec<CostRule>) -> Self {
        let index = Index::new(rules.iter().map(|rule| &rule.when));
        Self { rules, index }
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[CostRule] {
        &self.rules
    }

    /// What a request costs.
    pub fn price(&self, facts: &Facts<'_>) -> Price {
        let mut rules = self.index.candidates(facts).into_iter().map(|number| &self.rules[number as usize]);
        match rules.find(|rule| rule.when.matches(facts)).map(|rule| &rule.cost) {
            None => Price { units: 1, is_default: false },
            Some(Cost::Constant(units)) => Price { units: *units, is_default: false },
            Some(Cost::From(source)) => source.price(facts),
        }
    }
}

impl CostSource {
    fn price(&self, facts: &Facts<'_>) -> Price {
        let (mut values, mut said) = (0, None);
        facts.any(&self.field, |value| {
            values += 1;
            said = whole_number(value);
            false
        });
        // Two values say nothing: which of them counts?
        match said.filter(|_| values == 1) {
            None => Price { units: self.default, is_default: true },
            Some(units) => {
                let least = if self.trusted { 0 } else { self.default };
                Price { units: units.clamp(least, self.max.max(least)), is_default: false }
            }
        }
    }
}

/// Digits and nothing else; more of them than a u64 holds are its largest.
fn whole_number(value: Value<'_>) -> Option<u64> {
    let Value::Text(text) = value else { return None };
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}
