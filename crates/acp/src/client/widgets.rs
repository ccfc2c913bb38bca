//! Comms with the client, as far as widgets need them.
//!
//! A widget is a model in the format of ipywidgets, which itself is not needed. Clients that can
//! show widgets have the views.
//! <https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md>

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cellwright_jupyter::content::{CommClose, CommInfoReply, CommMsg, CommOpen};
use cellwright_jupyter::{JupyterMessage, MessageHeader, ServerSender};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The comm targets of clients that can show widgets, and of widgets.
const CONTROL: &str = "jupyter.widget.control";
const WIDGET: &str = "jupyter.widget";

/// The most actions of the user that wait. A page cannot send more than a person can click.
const MOST_ACTIONS: usize = 16;

/// The fields of a model that the user changes. All others are ours.
const INPUTS: [&str; 2] = ["value", "index"];

/// The open comms of both sides. Clones share them.
#[derive(Debug, Default, Clone)]
pub(crate) struct WidgetComms(Arc<Mutex<CommState>>);

#[derive(Debug, Default)]
struct CommState {
    /// The targets, by comm id.
    open: HashMap<String, String>,
    /// The widgets that somebody listens to.
    listeners: HashMap<String, WidgetListener>,
    /// The models on the screen, for a page that is reloaded while a question is open.
    models: BTreeMap<String, Map<String, Value>>,
    /// The client has shown that it can show widgets.
    widgets: bool,
}

#[derive(Debug)]
struct WidgetListener {
    action: UserAction,
    heard: mpsc::Sender<WidgetId>,
}

/// What the user does with a widget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserAction {
    Click,
    /// The user chooses another value.
    Change,
}

/// The comm id of a widget.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WidgetId(String);

/// Widgets on the screen. Dropping it removes them.
pub(crate) struct WidgetSet {
    comms: WidgetComms,
    sender: ServerSender,
    parent: MessageHeader,
    all: Vec<WidgetId>,
    actions: mpsc::Receiver<WidgetId>,
    /// Gone once all widgets are made. Then the actions end when the client closes the widgets.
    heard: Option<mpsc::Sender<WidgetId>>,
}

impl WidgetComms {
    /// Whether the client can show widgets.
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

    /// Takes a message on a comm: what the user did, or a request for the state of widgets.
    pub(crate) fn received(&self, message: &JupyterMessage, sender: &ServerSender) {
        let Ok(received) = message.parse::<CommMsg>() else { return };
        let mut state = self.state();
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
        let action = match method {
            "update" => state.change(&received.comm_id, &received.data).then_some(UserAction::Change),
            "custom" => {
                let content = received.data.get("content");
                let clicked = content.and_then(|content| content.get("event")) == Some(&json!("click"));
                clicked.then_some(UserAction::Click)
            }
            _ => None,
        };
        let listener = state.listeners.get(&received.comm_id);
        if let Some(listener) = listener.filter(|listener| Some(listener.action) == action) {
            listener.heard.try_send(WidgetId(received.comm_id)).ok(); // further clicks are ignored
        }
    }

    /// The client closed a comm.
    pub(crate) fn closed(&self, message: &JupyterMessage) {
        let Ok(close) = message.parse::<CommClose>() else { return };
        self.state().remove(&close.comm_id);
    }

    /// Which comms are open.
    pub(crate) fn info(&self, target: Option<&str>) -> CommInfoReply {
        let state = self.state();
        let of_target = state.open.iter().filter(|(_, name)| target.is_none_or(|target| target == *name));
        let comms = of_target.map(|(id, name)| (id.clone(), json!({"target_name": name}))).collect();
        CommInfoReply { comms, ..CommInfoReply::default() }
    }

    /// An empty set of widgets for a cell.
    pub(crate) fn widgets(&self, sender: ServerSender, parent: &MessageHeader) -> WidgetSet {
        let (heard, actions) = mpsc::channel(MOST_ACTIONS);
        let (comms, parent) = (self.clone(), parent.clone());
        WidgetSet { comms, sender, parent, all: Vec::new(), actions, heard: Some(heard) }
    }

    /// A row of buttons for a cell, each with a label and a style. Show [`WidgetSet::root`].
    pub(crate) fn buttons(
        &self,
        labels: &[(String, &str)],
        sender: ServerSender,
        parent: &MessageHeader,
    ) -> WidgetSet {
        let mut widgets = self.widgets(sender, parent);
        let buttons = labels.iter().map(|(label, style)| widgets.button(label, style)).collect::<Vec<_>>();
        widgets.arrange("HBox", &buttons);
        widgets.complete();
        widgets
    }

    fn state(&self) -> MutexGuard<'_, CommState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommState {
    /// Takes in what the user changed. False if that is nothing.
    fn change(&mut self, comm: &str, data: &Map<String, Value>) -> bool {
        let (Some(model), Some(Value::Object(new))) = (self.models.get_mut(comm), data.get("state")) else {
            return false;
        };
        let mut changed = false;
        for name in INPUTS {
            if let (Some(value), Some(new)) = (model.get_mut(name), new.get(name))
                && value != new
            {
                value.clone_from(new);
                changed = true;
            }
        }
        changed
    }

    fn remove(&mut self, comm: &str) {
        self.open.remove(comm);
        self.listeners.remove(comm);
        self.models.remove(comm);
    }
}

impl WidgetSet {
    /// The widget that was made last, which holds the others.
    pub(crate) fn root(&self) -> &str {
        &self.all.last().expect("it was arranged").0
    }

    /// The place of a widget among those of this set.
    pub(crate) fn position(&self, widget: &WidgetId) -> Option<usize> {
        self.all.iter().position(|known| known == widget)
    }

    /// A button with a label and a style.
    pub(crate) fn button(&mut self, label: &str, style: &str) -> WidgetId {
        let state = json!({"description": label, "button_style": style});
        self.listen("Button", &state, UserAction::Click)
    }

    /// A widget whose actions are heard.
    pub(crate) fn listen(&mut self, kind: &str, state: &Value, action: UserAction) -> WidgetId {
        let widget = self.add(kind, state);
        if let Some(heard) = self.heard.clone() {
            self.comms.state().listeners.insert(widget.0.clone(), WidgetListener { action, heard });
        }
        widget
    }

    /// A box with other widgets.
    pub(crate) fn arrange(&mut self, kind: &str, children: &[WidgetId]) -> WidgetId {
        let children: Vec<String> = children.iter().map(|child| format!("IPY_MODEL_{}", child.0)).collect();
        self.add(kind, &json!({ "children": children }))
    }

    /// No more widgets are added.
    pub(crate) fn complete(&mut self) {
        self.heard = None;
    }

    /// Waits for an action of the user and returns the widget. `None` if the client closed them all.
    /// Cancel-safe.
    pub(crate) async fn action(&mut self) -> Option<WidgetId> {
        self.actions.recv().await
    }

    /// A field of a widget's state, as the user left it.
    pub(crate) fn field(&self, widget: &WidgetId, name: &str) -> Value {
        let state = self.comms.state();
        state.models.get(&widget.0).and_then(|model| model.get(name)).cloned().unwrap_or_default()
    }

    /// Changes the state of a widget, here and in the page.
    pub(crate) fn set(&self, widget: &WidgetId, state: Value) {
        let state = object(state);
        let update = object(json!({"method": "update", "state": &state, "buffer_paths": []}));
        if let Some(model) = self.comms.state().models.get_mut(&widget.0) {
            model.extend(state);
        }
        let message = CommMsg { comm_id: widget.0.clone(), data: update, ..CommMsg::default() };
        self.sender.publish(self.sender.session().message(&message).with_parent(&self.parent));
    }

    /// Makes a widget: the kind of its model, and what differs from a blank one.
    pub(crate) fn add(&mut self, kind: &str, state: &Value) -> WidgetId {
        let model = Uuid::new_v4().simple().to_string();
        let mut state = object(state.clone());
        for (name, part) in [("model", "Model"), ("view", "View")] {
            state.insert(format!("_{name}_name"), json!(format!("{kind}{part}")));
            state.insert(format!("_{name}_module"), json!("@jupyter-widgets/controls"));
            state.insert(format!("_{name}_module_version"), json!("2.0.0"));
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
        self.all.push(WidgetId(model.clone()));
        WidgetId(model)
    }
}

impl Drop for WidgetSet {
    fn drop(&mut self) {
        for WidgetId(model) in &self.all {
            self.comms.state().remove(model);
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
