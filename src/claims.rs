//! The claims of a verified token: a JSON tree that borrows its texts from the message.

/// The deepest nesting of objects and lists that is read; what lies deeper is [`Claim::TooDeep`].
pub const DEPTH: usize = 64;

/// The members of a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims<'r>(Vec<(&'r str, Claim<'r>)>);

/// One JSON value. Numbers are doubles, as they are in the metadata that Envoy sends.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Claim<'r> {
    Null,
    Bool(bool),
    Number(f64),
    Text(&'r str),
    List(Vec<Claim<'r>>),
    Object(Claims<'r>),
    /// Objects and lists so deep in one another that they are not read.
    TooDeep,
}

/// A path that leads through something that is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoObject;

impl<'r> Claims<'r> {
    /// Claims that have these members, in this order.
    pub fn new(members: Vec<(&'r str, Claim<'r>)>) -> Self {
        Self(members)
    }

    /// The member `name`; the last one if it is repeated, as for a protobuf map.
    pub fn get(&self, name: &str) -> Option<&Claim<'r>> {
        self.0.iter().rfind(|(key, _)| *key == name).map(|(_, claim)| claim)
    }

    /// The claim at the end of `path`, or `None` if it or an object on the way is absent.
    ///
    /// # Errors
    ///
    /// [`NoObject`] if something on the way is there and is no object.
    pub fn at(&self, path: &[String]) -> Result<Option<&Claim<'r>>, NoObject> {
        let Some((name, rest)) = path.split_first() else { return Ok(None) };
        match (self.get(name), rest) {
            (claim, []) => Ok(claim),
            (None, _) => Ok(None),
            (Some(Claim::Object(claims)), rest) => claims.at(rest),
            (Some(_), _) => Err(NoObject),
        }
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'r str, &Claim<'r>)> {
        self.0.iter().map(|(name, claim)| (*name, claim))
    }
}

impl<'r> FromIterator<(&'r str, Claim<'r>)> for Claims<'r> {
    fn from_iter<I: IntoIterator<Item = (&'r str, Claim<'r>)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<'r> Claim<'r> {
    /// What kind of value this is, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::TooDeep => "nested too deep",
        }
    }

    /// The members, if this is an object.
    pub fn object(&self) -> Option<&Claims<'r>> {
        match self {
            Self::Object(claims) => Some(claims),
            _ => None,
        }
    }
}
