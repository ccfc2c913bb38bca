//! Several texts in limited room: short ones whole, long ones with equal shares of what is left.

/// The most that each of several texts may have of `budget`, so that all of them fit into it.
///
/// Texts that are shorter leave their rest to the others.
pub fn fair_share(lengths: &[usize], budget: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut room = budget;
    for (at, length) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - at);
        if *length > share {
            return share;
        }
        room -= length;
    }
    budget
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_texts_are_whole_and_long_ones_have_the_same() {
        for (lengths, budget, expected) in [
            (&[][..], 100, 100),
            (&[100], 100, 100),
            (&[10, 20, 30], 100, 100),
            (&[10, 100], 100, 90),
            (&[100, 5, 100, 5], 100, 45),
            (&[100; 60], 100, 1),
        ] {
            assert_eq!(fair_share(lengths, budget), expected, "{lengths:?}");
        }
    }

    proptest! {
        #[test]
        fn shares_never_exceed_the_budget_and_leave_no_room_that_a_text_could_use(
            lengths in prop::collection::vec(0usize..10_000, 0..40),
            budget in 0usize..20_000,
        ) {
            let share = fair_share(&lengths, budget);
            let used: usize = lengths.iter().map(|length| length.min(&share)).sum();
            prop_assert!(used <= budget);
            let cut = lengths.iter().filter(|length| **length > share).count();
            prop_assert!(cut == 0 || budget - used < cut, "{share}: {} of {budget} unused", budget - used);
        }
    }
}
