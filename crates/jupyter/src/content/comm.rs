//! Comms: messages between code in the kernel and code in the frontend, such as widgets.

use serde_json::{Map, Value};

use super::{ReplyStatus, contents};

contents! {
    /// Opens a comm.
    "comm_open" => CommOpen {
        /// Its id.
        comm_id: String,
        /// What should answer on the other side.
        target_name: String,
        /// The target's own.
        data: Map<String, Value>,
    }

    /// A message on a comm.
    "comm_msg" => CommMsg {
        /// Its id.
        comm_id: String,
        /// The target's own.
        data: Map<String, Value>,
    }

    /// Closes a comm.
    "comm_close" => CommClose {
        /// Its id.
        comm_id: String,
        /// The target's own.
        data: Map<String, Value>,
    }

    /// Which comms are open?
    "comm_info_request" => CommInfoRequest {
        /// Only those of this target.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_name: Option<String>,
    }

    /// Open comms.
    "comm_info_reply" => CommInfoReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// Comm id to an object with `target_name`.
        comms: Map<String, Value>,
    }
}
