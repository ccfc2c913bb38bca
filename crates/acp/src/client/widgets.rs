//! Comms with the client, as far as buttons need them.
//!
//! A button is a widget model in the format of ipywidgets, which itself is not needed. Clients that
//! can show widgets have the views.
//! <https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md>

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cellwright_jupyter::content::{CommClose, CommInfoReply, CommMsg, CommOpen};
use cellwright_jupyter::{JupyterMessage, MessageHeader, ServerSender};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The comm targets of clients that can show widgets, and of widgets.
const CONTROL: &str = "jupyter.widget.control";
const WIDGET: &str = "jupyter.widget";

/// The open comms of both sides.
#[derive(Debug, Default)]
pub(crate) struct WidgetComms(Mutex<CommState>);

#[derive(Debug, Default)]
struct CommState {
    /// The targets, by comm id.
    open: HashMap<String, String>,
    /// The buttons: the number of each, and where its clicks go.
    buttons: HashMap<String, (usize, mpsc::Sender<usize>)>,
    /// The models on the screen, for a page that is reloaded while a question is open.
    models: BTreeMap<String, Map<String, Value>>,
    /// The client has shown that it can show widgets.
    widgets: bool,
}

/// A row of buttons on the screen. Dropping it removes them.
pub(crate) struct ButtonRow<'a> {
    comms: &'a WidgetComms,
    sender: ServerSender,
    parent: MessageHeader,
    models: Vec<String>,
    clicks: mpsc::Receiver<usize>,
}

impl WidgetComms {
    /// Whether the client can show buttons.
    pub(crate) fn can_show_widgets(&self) -> bool {
        self.state().widgets
    }

    /// The client opened a comm. Unknown targets are closed again, as the protocol requires.
    pub(crate) fn opened(&self, message: &JupyterMessage, sender: &ServerSender) {
        let Ok(open) = message.parse::<CommOpen>() else { return };
        let mut state = self.state();
        if open.target_name == CONTROL {
            state.widgets = true;
            state.open.insert(open.comm_id, open.target_name);
            return;
        }
        drop(state);
        let close = CommClose { comm_id: open.comm_id, ..CommClose::default() };
        sender.publish(sender.session().message(&close).with_parent(&message.header));
    }

    /// Takes a message on a comm: a click, or a request for the state of widgets.
    pub(crate) fn received(&self, message: &JupyterMessage, sender: &ServerSender) {
        let Ok(received) = message.parse::<CommMsg>() else { return };
        let state = self.state();
        let method = received.data.get("method").and_then(Value::as_str).unwrap_or_default();
        let asked = match (state.open.get(&received.comm_id).map(String::as_str), method) {
            (Some(CONTROL), _) => {
                let states: Map<String, Value> =
                    state.models.iter().map(|(id, model)| (id.clone(), described(model))).collect();
                Some(json!({"method": "update_states", "states": states, "buffer_paths": []}))
            }
            (_, "request_state") => {
                let model = state.models.get(&received.comm_id);
                model.map(|model| json!({"method": "update", "state": model, "buffer_paths": []}))
            }
            _ => None,
        };
        if let Some(data) = asked {
            let reply = CommMsg { comm_id: received.comm_id, data: object(data), ..CommMsg::default() };
            drop(state);
            sender.publish(sender.session().message(&reply).with_parent(&message.header));
            return;
        }
        let clicked = method == "custom"
            && received.data.get("content").and_then(|content| content.get("event")) == Some(&json!("click"));
        if let Some((number, clicks)) = state.buttons.get(&received.comm_id).filter(|_| clicked) {
            clicks.try_send(*number).ok(); // the first click counts
        }
    }

    /// The client closed a comm.
    pub(crate) fn closed(&self, message: &JupyterMessage) {
        let Ok(close) = message.parse::<CommClose>() else { return };
        let mut state = self.state();
        state.open.remove(&close.comm_id);
        state.buttons.remove(&close.comm_id);
        state.models.remove(&close.comm_id);
    }

    /// Which comms are open.
    pub(crate) fn info(&self, target: Option<&str>) -> CommInfoReply {
        let state = self.state();
        let of_target = state.open.iter().filter(|(_, name)| target.is_none_or(|target| target == *name));
        let comms = of_target.map(|(id, name)| (id.clone(), json!({"target_name": name}))).collect();
        CommInfoReply { comms, ..CommInfoReply::default() }
    }

    /// Makes a row of buttons for a cell, each with a label and a style. Show [`ButtonRow::model`].
    pub(crate) fn buttons(
        &self,
        labels: &[(String, &str)],
        sender: ServerSender,
        parent: &MessageHeader,
    ) -> ButtonRow<'_> {
        let (clicked, clicks) = mpsc::channel(1);
        let mut buttons =
            ButtonRow { comms: self, sender, parent: parent.clone(), models: Vec::new(), clicks };
        for (number, (label, style)) in labels.iter().enumerate() {
            let model = buttons.open(&json!({
                "_model_name": "ButtonModel",
                "_view_name": "ButtonView",
                "description": label,
                "button_style": style,
            }));
            self.state().buttons.insert(model, (number, clicked.clone()));
        }
        let children: Vec<String> = buttons.models.iter().map(|model| format!("IPY_MODEL_{model}")).collect();
        buttons.open(&json!({"_model_name": "HBoxModel", "_view_name": "HBoxView", "children": children}));
        buttons
    }

    fn state(&self) -> MutexGuard<'_, CommState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ButtonRow<'_> {
    pub(crate) fn model(&self) -> &str {
        self.models.last().expect("the row itself")
    }

    /// Waits for a click and returns the button's number. `None` if the client closed them all.
    /// Cancel-safe.
    pub(crate) async fn clicked(&mut self) -> Option<usize> {
        self.clicks.recv().await
    }

    fn open(&mut self, state: &Value) -> String {
        let model = Uuid::new_v4().simple().to_string();
        let mut state = object(state.clone());
        for name in ["_model_module", "_view_module"] {
            state.insert(name.to_owned(), json!("@jupyter-widgets/controls"));
            state.insert(format!("{name}_version"), json!("2.0.0"));
        }
        let open = CommOpen {
            comm_id: model.clone(),
            target_name: WIDGET.to_owned(),
            data: object(json!({"state": &state, "buffer_paths": []})),
            ..CommOpen::default()
        };
        let message = self.sender.session().message(&open).with_parent(&self.parent);
        self.sender.publish(message.with_metadata(&json!({"version": "2.1.0"})));
        let mut comms = self.comms.state();
        comms.open.insert(model.clone(), WIDGET.to_owned());
        comms.models.insert(model.clone(), state);
        drop(comms);
        self.models.push(model.clone());
        model
    }
}

impl Drop for ButtonRow<'_> {
    fn drop(&mut self) {
        let mut state = self.comms.state();
        for model in &self.models {
            state.open.remove(model);
            state.buttons.remove(model);
            state.models.remove(model);
            let close = CommClose { comm_id: model.clone(), ..CommClose::default() };
            self.sender.publish(self.sender.session().message(&close).with_parent(&self.parent));
        }
    }
}

/// A model in the reply to a request for the state of all widgets.
fn described(model: &Map<String, Value>) -> Value {
    json!({
        "model_name": model["_model_name"],
        "model_module": model["_model_module"],
        "model_module_version": model["_model_module_version"],
        "state": model,
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("only objects are made here"),
    }
}
