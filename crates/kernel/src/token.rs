//! Secrets that nobody can guess.

/// 128 random bits in hexadecimal: a token, or a mark that no text contains by chance.
pub fn random_token() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system has random bytes");
    format!("{:032x}", u128::from_le_bytes(random))
}
