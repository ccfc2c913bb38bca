//! The kinds of tool calls, by name.

use agent_client_protocol_schema::v1::ToolKind;

/// Every kind that the protocol names. Rules are written with these names, and cards show them.
pub(crate) const TOOL_KINDS: [(&str, ToolKind); 10] = [
    ("read", ToolKind::Read),
    ("edit", ToolKind::Edit),
    ("delete", ToolKind::Delete),
    ("move", ToolKind::Move),
    ("search", ToolKind::Search),
    ("execute", ToolKind::Execute),
    ("think", ToolKind::Think),
    ("fetch", ToolKind::Fetch),
    ("switch_mode", ToolKind::SwitchMode),
    ("other", ToolKind::Other),
];

/// The kind of a name.
pub(crate) fn kind_named(name: &str) -> Option<ToolKind> {
    TOOL_KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// The name of a kind. A kind of a later version of the protocol has none.
pub(crate) fn name_of_kind(kind: ToolKind) -> Option<&'static str> {
    TOOL_KINDS.iter().find(|(_, known)| *known == kind).map(|(name, _)| *name)
}
