//! How long a call asks for.

use std::time::Duration;

use crate::reply::ToolFailure;

const SHORTEST: f64 = 1.0;
const LONGEST: f64 = 600.0;

/// What a call said of its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeoutRequest {
    pub(crate) seconds: Option<f64>,
    pub(crate) background: bool,
}

/// The time a call has, `None` for as long as it likes, and what to say when it is not what was asked for.
///
/// Work in the background nobody waits for, so it has no limit unless it asks for one.
pub(crate) fn of(
    asked: TimeoutRequest,
    usual: Option<Duration>,
) -> Result<(Option<Duration>, Option<String>), ToolFailure> {
    let Some(seconds) = asked.seconds else {
        return Ok((if asked.background { None } else { usual }, None));
    };
    if !(seconds > 0.0 && seconds.is_finite()) {
        return Err(ToolFailure::new(format!(
            "`timeout` must be {SHORTEST} to {LONGEST} seconds, not {seconds}; for longer work use background: true"
        )));
    }
    if asked.background {
        return Ok((Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)), None));
    }
    let clamped = seconds.clamp(SHORTEST, LONGEST);
    let note = (seconds > LONGEST).then(|| {
        format!("[timeout {seconds} s was lowered to {LONGEST} s, the most a call may take; for longer work use background: true]")
    });
    Ok((Some(Duration::from_secs_f64(clamped)), note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: Option<f64>, background: bool, expected: Option<u64>) {
        let usual = Some(Duration::from_secs(30));
        let (timeout, _) = of(TimeoutRequest { seconds, background }, usual).unwrap();
        assert_eq!(timeout, expected.map(Duration::from_secs));
    }

    #[test]
    fn a_timeout_is_clamped_and_background_work_has_none() {
        check(None, false, Some(30));
        check(None, true, None);
        check(Some(0.2), false, Some(1));
        check(Some(90.0), false, Some(90));
        check(Some(1e300), false, Some(600));
        check(Some(900.0), true, Some(900));
    }

    #[test]
    fn zero_is_no_time_at_all() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(of(TimeoutRequest { seconds: Some(seconds), background: false }, None).is_err());
        }
    }
}
