//! About the kernel itself, and orders to it.

use serde_json::Value;

use super::{ReplyStatus, contents};

contents! {
    /// What kind of kernel is this?
    "kernel_info_request" => KernelInfoRequest {}

    /// What the kernel says of itself.
    "kernel_info_reply" => KernelInfoReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// For example `5.3`.
        protocol_version: String,
        /// For example `ipython`.
        implementation: String,
        /// The implementation's version.
        implementation_version: String,
        /// What the code is written in.
        language_info: LanguageInfo,
        /// Shown by consoles at start.
        banner: String,
        /// Whether it speaks the debug protocol.
        debugger: bool,
        /// Optional features, such as `kernel subshells` (5.5).
        supported_features: Vec<String>,
        /// Links for a help menu: `text` and `url`.
        help_links: Vec<Value>,
    }

    /// The language of a kernel.
    LanguageInfo {
        /// For example `python`.
        name: String,
        /// The language's version.
        version: String,
        /// The MIME type of source files.
        mimetype: String,
        /// With the dot.
        file_extension: String,
        /// For highlighting with Pygments, when the name does not do.
        #[serde(skip_serializing_if = "Option::is_none")]
        pygments_lexer: Option<String>,
        /// For highlighting with `CodeMirror`: a name, or an object.
        #[serde(skip_serializing_if = "Option::is_none")]
        codemirror_mode: Option<Value>,
        /// For notebooks saved as scripts.
        #[serde(skip_serializing_if = "Option::is_none")]
        nbconvert_exporter: Option<String>,
    }

    /// Stop what is running (kernels with `interrupt_mode: message`).
    "interrupt_request" => InterruptRequest {}

    /// It was asked to stop.
    "interrupt_reply" => InterruptReply {
        /// Whether it worked.
        status: ReplyStatus,
    }

    /// End.
    "shutdown_request" => ShutdownRequest {
        /// Whether another one will be started in its place.
        restart: bool,
    }

    /// The last words of a kernel.
    "shutdown_reply" => ShutdownReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// As in the request.
        restart: bool,
    }

    /// A Debug Adapter Protocol request, passed through.
    "debug_request" => DebugRequest {}

    /// A Debug Adapter Protocol response, passed through.
    "debug_reply" => DebugReply {}

    /// A Debug Adapter Protocol event, passed through.
    "debug_event" => DebugEvent {}

    /// The subscription to iopub is in force: the first message a subscriber gets (5.5).
    "iopub_welcome" => IopubWelcome {
        /// What was subscribed to.
        subscription: String,
    }

    /// Start a thread of execution beside the main shell (5.5).
    "create_subshell_request" => CreateSubshellRequest {}

    /// It was started.
    "create_subshell_reply" => CreateSubshellReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// For the header of requests to it.
        subshell_id: String,
    }

    /// End a subshell.
    "delete_subshell_request" => DeleteSubshellRequest {
        /// Which.
        subshell_id: String,
    }

    /// It was ended.
    "delete_subshell_reply" => DeleteSubshellReply {
        /// Whether it worked.
        status: ReplyStatus,
    }

    /// Which subshells are there?
    "list_subshell_request" => ListSubshellRequest {}

    /// All subshells.
    "list_subshell_reply" => ListSubshellReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// Their ids.
        subshell_id: Vec<String>,
    }
}
