//! Addresses: where following one cannot run anything.

/// Whether following an address cannot run anything in the page.
pub fn is_safe_address(address: &str) -> bool {
    has_safe_scheme(address) || is_inside(address)
}

/// Whether an address has a scheme that cannot run anything. Browsers skip control characters and
/// blanks in schemes, so these are refused anywhere.
pub fn has_safe_scheme(address: &str) -> bool {
    let Some((scheme, _)) = address.split_once(':') else { return false };
    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    known && !address.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// Whether an address leads to a file beside the notebook, or to a place in the page.
pub fn is_inside(address: &str) -> bool {
    let begins = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '#' | '%');
    let path = address.split(['/', '?', '#']).next().unwrap_or_default();
    address.starts_with(begins)
        && !path.contains(':')
        && !address.contains(|c: char| c == '\\' || c.is_control() || c.is_whitespace())
}

/// The `data:` address of a picture or sound, if its type is well-formed and of that `family`.
pub fn data_address(family: &str, mime: &str, base64: &str) -> Option<String> {
    let (kind, subtype) = mime.split_once('/')?;
    let spelt = subtype.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'));
    let encoded = base64.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(&b));
    (kind == family && spelt && !subtype.is_empty() && encoded)
        .then(|| format!("data:{mime};base64,{base64}"))
}
