//! What travels to and from the daemon in a form of its own.
//!
//! Both ends are the same version of this program (see `daemon`), so our types travel as they are.

/// An environment. What is not UTF-8 stays behind: Python could not pass it on either.
pub(crate) mod variables {
    use cellwright_kernel::environment::EnvVars;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(variables: &Option<EnvVars>, to: S) -> Result<S::Ok, S::Error> {
        let text = |variables: &EnvVars| -> Vec<(String, String)> {
            let pairs = variables.iter();
            pairs.filter_map(|(name, value)| Some((name.to_str()?.into(), value.to_str()?.into()))).collect()
        };
        variables.as_ref().map(text).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<EnvVars>, D::Error> {
        let pairs = Option::<Vec<(String, String)>>::deserialize(from)?;
        Ok(pairs.map(|pairs| pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cellwright_cell::Exception;
    use cellwright_kernel::{AboutKernel, Death, Exit, Fate, KernelChoice, ProcessExit, StopReason};
    use cellwright_output::{ArtifactId, CapturedText, Extent, FullText, Truncation};
    use serde_json::Value;

    use crate::collect::{CollectedOutput, NotStored, ShownOutput};
    use crate::report::{
        CallReport, CellReport, CellStatus, KernelAfter, KernelReplacement, KernelReport, KernelUse,
    };
    use crate::{Departure, Notice, SessionError, SessionKey};

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        let id: ArtifactId = "k3v9x2mq".parse().unwrap();
        let extent = Extent { lines: 1, bytes: 2 };
        let full = FullText::Partial { id: id.clone(), bytes: 7, reason: "no space".into() };
        let truncation = Truncation {
            total: extent,
            head: extent,
            omitted: extent,
            tail: extent,
            cut: extent,
            line_cap: 9,
            full,
        };
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0".to_vec();
        let output = CollectedOutput {
            text: CapturedText { text: "é\n".into(), truncation: Some(truncation) },
            shown: vec![
                ShownOutput::Image(cellwright_output::Image::new(png).unwrap()),
                ShownOutput::Json(serde_json::json!({"b": 1.5, "a": [null, true]}).into()),
                ShownOutput::Status(Value::Null.into()),
                ShownOutput::Stored { what: "JSON".into(), artifact: Ok(id) },
                ShownOutput::Stored { what: "JSON".into(), artifact: Err(NotStored("full".to_owned())) },
            ],
            image_count: 2,
        };
        let exit =
            || Exit::Process(ProcessExit::Signal { number: 9, core_dumped: false, out_of_memory: true });
        let exception =
            Exception { name: "E".into(), message: "m".into(), traceback: vec!["t".into()], line: Some(3) };
        let statuses = [
            CellStatus::Error(exception),
            CellStatus::Stopped {
                reason: StopReason::TimedOut(Duration::from_millis(1500)),
                kernel: Fate::Killed,
            },
            CellStatus::Died(Death { exit: exit(), started: true }),
        ];
        let cells = statuses.into_iter().enumerate().map(|(index, status)| {
            Arc::new(CellReport {
                index,
                title: Some("t".into()),
                status,
                duration: Duration::from_nanos(5),
                execution_count: Some(2),
                output: output.clone(),
                may_raise: false,
            })
        });
        let key = SessionKey {
            session: "a".parse().unwrap(),
            cwd: "/tmp".into(),
            kernel: KernelChoice::Python { named: Some("python3".into()) },
        };
        let report = CallReport {
            key: key.clone(),
            cells: cells.collect(),
            late: Some(Arc::new(output.clone())),
            kernel: KernelReport {
                about: Some(AboutKernel { pid: Some(4), ..AboutKernel::default() }),
                usage: KernelUse::Replaced(KernelReplacement::DiedIdle(exit())),
                after: KernelAfter::Alive,
                memory: Some(1),
            },
            notices: vec![
                Notice::Departed(Departure::Idle(Duration::from_secs(1))),
                Notice::Dropped(vec![key]),
                Notice::RanElsewhere { cell: 1, exit: Exit::Lost("gone".into()) },
            ],
            error: Some(SessionError::Held { others: 2 }),
            duration: Duration::from_secs(1),
        };
        let sent = serde_json::to_vec(&report).unwrap();
        let arrived: CallReport = serde_json::from_slice(&sent).unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{report:?}"));
        assert_eq!(arrived.cells[0].output, output);
    }
}
