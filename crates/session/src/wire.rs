//! How types of other crates travel to and from the daemon.
//!
//! Both ends are the same version of this program (see `daemon`), so our own types travel as they are: a second set of
//! structs would be the same names twice, with nothing to keep apart. What is not ours is described here.

use cellwright_kernel::{
    CommKind, Comms, Death, Exception, Exit, Fate, MimeBundle, Output, ProcessExit, Stdin, StopReason,
    Stream, Variable, Variables,
};
use cellwright_output::{ArtifactId, Captured, Extent, FullText, Truncation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stdin")]
pub(crate) enum StdinDef {
    Refused,
    Forwarded,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Comms")]
pub(crate) enum CommsDef {
    Dropped,
    Forwarded,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CommKind")]
pub(crate) enum CommKindDef {
    Open { target: String },
    Message,
    Close,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Output")]
pub(crate) enum OutputDef {
    Text {
        #[serde(with = "StreamDef")]
        stream: Stream,
        text: String,
    },
    Display {
        #[serde(with = "MimeBundleDef")]
        content: MimeBundle,
        display_id: Option<String>,
    },
    Result {
        #[serde(with = "MimeBundleDef")]
        content: MimeBundle,
        count: Option<u64>,
    },
    Error(#[serde(with = "ExceptionDef")] Exception),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stream")]
pub(crate) enum StreamDef {
    Stdout,
    Stderr,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MimeBundle")]
pub(crate) struct MimeBundleDef {
    data: Map<String, Value>,
    exact: BTreeMap<String, String>,
    metadata: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Exception")]
pub(crate) struct ExceptionDef {
    name: String,
    message: String,
    traceback: Vec<String>,
    line: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StopReason")]
pub(crate) enum StopReasonDef {
    Cancelled,
    TimedOut(Duration),
    Interrupted,
    Shutdown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Fate")]
pub(crate) enum FateDef {
    Survived,
    Killed,
    Left,
    OutOfReach,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Death")]
pub(crate) struct DeathDef {
    #[serde(with = "ExitDef")]
    exit: Exit,
    started: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Exit")]
pub(crate) enum ExitDef {
    Process(#[serde(with = "ProcessExitDef")] ProcessExit),
    Lost(String),
    Left(String),
    OutOfReach(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ProcessExit")]
pub(crate) enum ProcessExitDef {
    Code(i32),
    Signal { number: i32, core_dumped: bool, out_of_memory: bool },
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Captured")]
pub(crate) struct CapturedDef {
    text: String,
    #[serde(with = "truncation")]
    truncation: Option<Truncation>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Truncation")]
struct TruncationDef {
    #[serde(with = "ExtentDef")]
    total: Extent,
    #[serde(with = "ExtentDef")]
    head: Extent,
    #[serde(with = "ExtentDef")]
    omitted: Extent,
    #[serde(with = "ExtentDef")]
    tail: Extent,
    #[serde(with = "ExtentDef")]
    cut: Extent,
    line_cap: usize,
    #[serde(with = "FullTextDef")]
    full: FullText,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Extent")]
struct ExtentDef {
    lines: u64,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FullText")]
enum FullTextDef {
    Artifact(#[serde(with = "artifact_id")] ArtifactId),
    Partial {
        #[serde(with = "artifact_id")]
        id: ArtifactId,
        bytes: u64,
        reason: String,
    },
    Lost {
        reason: String,
    },
    NotKept,
}

mod truncation {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Truncation, TruncationDef};

    #[derive(Serialize, Deserialize)]
    struct Whole(#[serde(with = "TruncationDef")] Truncation);

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Truncation>, to: S) -> Result<S::Ok, S::Error> {
        value.clone().map(Whole).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Truncation>, D::Error> {
        Ok(Option::<Whole>::deserialize(from)?.map(|Whole(truncation)| truncation))
    }
}

mod artifact_id {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::ArtifactId;

    pub(super) fn serialize<S: Serializer>(id: &ArtifactId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(id.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ArtifactId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A thing's place among the artifacts, or why it has none.
pub(crate) mod stored {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ArtifactId;

    pub(crate) fn serialize<S: Serializer>(
        stored: &Result<ArtifactId, String>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        stored.as_ref().map(ArtifactId::as_str).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<ArtifactId, String>, D::Error> {
        match Result::<String, String>::deserialize(from)? {
            Ok(id) => id.parse().map(Ok).map_err(D::Error::custom),
            Err(why) => Ok(Err(why)),
        }
    }
}

/// An image is its file.
pub(crate) mod image {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use cellwright_output::Image;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(image: &Image, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(&image.bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Image, D::Error> {
        let bytes = BASE64_STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)?;
        Image::new(bytes).ok_or_else(|| D::Error::custom("no image"))
    }
}

/// An environment. What is not UTF-8 stays behind: Python could not pass it on either.
pub(crate) mod variables {
    use cellwright_kernel::environment::Variables;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(variables: &Option<Variables>, to: S) -> Result<S::Ok, S::Error> {
        let text = |variables: &Variables| -> Vec<(String, String)> {
            let pairs = variables.iter();
            pairs.filter_map(|(name, value)| Some((name.to_str()?.into(), value.to_str()?.into()))).collect()
        };
        variables.as_ref().map(text).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Variables>, D::Error> {
        let pairs = Option::<Vec<(String, String)>>::deserialize(from)?;
        Ok(pairs.map(|pairs| pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect()))
    }
}

/// The variables of a kernel.
#[derive(Serialize, Deserialize)]
pub(crate) struct WireVariables {
    listed: Vec<WireVariable>,
    total: usize,
}

#[derive(Serialize, Deserialize)]
struct WireVariable {
    name: String,
    kind: String,
    shape: Option<Vec<u64>>,
    size: Option<u64>,
    preview: String,
}

impl From<Variables> for WireVariables {
    fn from(variables: Variables) -> Self {
        let listed = variables.listed.into_iter().map(|Variable { name, kind, shape, size, preview }| {
            WireVariable { name, kind, shape, size, preview }
        });
        Self { listed: listed.collect(), total: variables.total }
    }
}

impl From<WireVariables> for Variables {
    fn from(variables: WireVariables) -> Self {
        let listed = variables.listed.into_iter().map(|WireVariable { name, kind, shape, size, preview }| {
            Variable { name, kind, shape, size, preview }
        });
        Self { listed: listed.collect(), total: variables.total }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collect::{Collected, Shown};
    use crate::report::{After, CallReport, CellReport, CellStatus, KernelReport, KernelUse, Replacement};
    use crate::{About, Departure, KernelChoice, Notice, SessionError, SessionKey};

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
        let output = Collected {
            text: Captured { text: "é\n".into(), truncation: Some(truncation) },
            shown: vec![
                Shown::Image(cellwright_output::Image::new(png).unwrap()),
                Shown::Json(serde_json::json!({"b": 1.5, "a": [null, true]})),
                Shown::Status(Value::Null),
                Shown::Stored { what: "JSON".into(), artifact: Ok(id) },
                Shown::Stored { what: "JSON".into(), artifact: Err("full".into()) },
            ],
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
                about: Some(About { pid: Some(4), ..About::default() }),
                usage: KernelUse::Replaced(Replacement::DiedIdle(exit())),
                after: After::Alive,
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
