//! What a mistyped word was probably meant to be.

/// The one of `known` that is nearest to `written`, if it is near enough to be worth a question.
pub fn suggest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const LONGEST: usize = 64;
    if written.len() > LONGEST {
        return None;
    }
    let written = written.to_lowercase().replace('-', "_");
    let near = 1 + written.len() / 4;
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), word))
        .filter(|&(distance, word)| distance <= near && distance < word.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, word)| word)
}
