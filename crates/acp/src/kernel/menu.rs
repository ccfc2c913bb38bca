//! The menu of `%agent options` where there are widgets: the mode, the model and all other options.

use std::sync::Arc;

use agent_client_protocol_schema::v1::SessionConfigKind;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::cell_run::CellRun;
use super::magics::{options, values};
use crate::client::widgets::{UserAction, WidgetId, WidgetSet};
use crate::conversation::{AgentCommand, ConversationHandle, SessionFacts};
use crate::failure::CellFailure;
use crate::kernel_state::lock;
use crate::task;
use crate::turn::{AgentTurn, CellChannel, StopSignal, TurnPlace};
use crate::view::{OutputMessage, ViewStyle, widget_text, widget_view};

/// A menu on the screen. It stays after its cell has ended.
pub(crate) struct OptionMenu {
    retired: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// One drop-down.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MenuEntry {
    option: MenuOption,
    title: String,
    about: String,
    /// What the agent calls each value, and its label.
    values: Vec<(String, String)>,
    current: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MenuOption {
    /// The mode of an agent that has no option for it.
    Mode,
    Option(String),
}

impl CellRun<'_> {
    /// Shows the options as a menu, if the client can and there are any.
    pub(crate) async fn show_menu(&self) -> bool {
        if self.style() != ViewStyle::Rich || !self.kernel.state.comms.can_show_widgets() {
            return false;
        }
        self.kernel.retire_menu().await;
        let widgets = self.kernel.state.comms.widgets(self.cell.sender().clone(), self.cell.header());
        let conversation = self.kernel.sessions.current().1;
        let menu = OptionMenu::open(widgets, conversation, Arc::clone(&self.cell)).await;
        let shown = menu.is_some();
        *lock(&self.kernel.menu) = menu;
        shown
    }
}

impl OptionMenu {
    /// Shows a menu in a cell. `None` if there is nothing to choose.
    pub(crate) async fn open(
        mut widgets: WidgetSet,
        conversation: Arc<ConversationHandle>,
        cell: Arc<CellChannel>,
    ) -> Option<Self> {
        let entries = entries(&conversation.facts());
        if entries.is_empty() {
            return None;
        }
        let mut rows = Vec::new();
        let mut controls = Vec::new();
        for entry in entries {
            let about = widget_text(&entry.about, "opacity:.75;white-space:pre-wrap");
            let label = format!("{}{about}", widget_text(&entry.title, "font-weight:600"));
            rows.push(widgets.add("HTML", &json!({ "value": label })));
            let control = widgets.listen("Dropdown", &entry.state(), UserAction::Change);
            rows.push(control.clone());
            controls.push((entry, control));
        }
        let status = widgets.add("HTML", &json!({"value": ""}));
        rows.push(status.clone());
        widgets.arrange("VBox", &rows);
        widgets.complete();
        let stop = StopSignal::default();
        let display = format!("menu-{}", cell.header().msg_id());
        let plain = options(&conversation.facts()).unwrap_or_default();
        let data = widget_view(widgets.root(), &plain);
        cell.show(OutputMessage::Display { id: display.clone(), data }, &stop).await;
        let retired = CancellationToken::new();
        let served = ServedMenu { widgets, controls, status, conversation, cell, stop, display };
        let task = task::spawn(served.serve(retired.clone()));
        Some(Self { retired, task })
    }

    /// Replaces the menu by the choices that were made.
    pub(crate) async fn retire(self) {
        self.retired.cancel();
        drop(self.task.await); // it only fails if the runtime ends first
    }
}

struct ServedMenu {
    widgets: WidgetSet,
    controls: Vec<(MenuEntry, WidgetId)>,
    status: WidgetId,
    conversation: Arc<ConversationHandle>,
    cell: Arc<CellChannel>,
    stop: StopSignal,
    display: String,
}

impl ServedMenu {
    async fn serve(mut self, retired: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = retired.cancelled() => break,
                chosen = self.widgets.action() => {
                    let Some(control) = chosen else { break };
                    tokio::select! {
                        biased;
                        () = retired.cancelled() => break,
                        () = self.choose(&control) => {}
                    }
                }
            }
        }
        let plain = options(&self.conversation.facts()).unwrap_or_default();
        let data = serde_json::Map::from_iter([("text/plain".to_owned(), plain.into())]);
        self.cell.show(OutputMessage::Update { id: self.display.clone(), data }, &self.stop).await;
    }

    /// Sets what the user chose, and shows what came of it.
    async fn choose(&mut self, control: &WidgetId) {
        let at = self.widgets.field(control, "index");
        let at = at.as_u64().and_then(|at| usize::try_from(at).ok());
        let entry = self.controls.iter().find(|(_, known)| known == control).map(|(entry, _)| entry);
        let Some((entry, (value, _))) = entry.and_then(|entry| Some((entry, entry.values.get(at?)?))) else {
            return;
        };
        if entry.current == at {
            return;
        }
        let command = entry.option.command(value.clone());
        self.report("one moment …", "opacity:.75");
        let turn =
            AgentTurn::new(Arc::clone(&self.cell), self.stop.clone(), ViewStyle::Rich, TurnPlace::Foreground);
        match self.conversation.perform(command, turn).await {
            Ok(text) => self.report(&text, "opacity:.75"),
            Err(CellFailure { message, .. }) => self.report(&message, "color:#d1242f"),
        }
        self.refresh();
    }

    fn report(&self, text: &str, style: &str) {
        self.widgets.set(&self.status, json!({"value": widget_text(text, style)}));
    }

    /// Shows the options as they are now. One choice may change others.
    fn refresh(&mut self) {
        let now = entries(&self.conversation.facts());
        for (entry, control) in &mut self.controls {
            let Some(new) = now.iter().find(|new| new.option == entry.option) else { continue };
            if self.widgets.field(control, "index") != json!(new.current) || new.values != entry.values {
                self.widgets.set(control, new.state());
            }
            entry.clone_from(new);
        }
    }
}

impl MenuOption {
    fn command(&self, value: String) -> AgentCommand {
        match self {
            Self::Mode => AgentCommand::Mode(value),
            Self::Option(option) => AgentCommand::Configure { option: option.clone(), value },
        }
    }
}

impl MenuEntry {
    fn state(&self) -> serde_json::Value {
        let labels: Vec<&str> = self.values.iter().map(|(_, label)| label.as_str()).collect();
        json!({"_options_labels": labels, "index": self.current})
    }
}

fn entries(facts: &SessionFacts) -> Vec<MenuEntry> {
    let mode = facts.modes.as_ref().filter(|_| super::magics::mode(facts).is_none()).map(|modes| {
        let all = &modes.available_modes;
        let described = all.iter().filter_map(|mode| Some((&mode.name, mode.description.as_ref()?)));
        MenuEntry {
            option: MenuOption::Mode,
            title: "Mode".to_owned(),
            about: described.map(|(name, about)| format!("{name}: {about}")).collect::<Vec<_>>().join("\n"),
            values: all.iter().map(|mode| (mode.id.to_string(), mode.name.clone())).collect(),
            current: all.iter().position(|mode| mode.id == modes.current_mode_id),
        }
    });
    let options = facts.options.iter().map(|option| {
        let is_flag = matches!(option.kind, SessionConfigKind::Boolean(_));
        let all = values(option);
        let current = all.iter().position(|(value, _)| value.starts_with('*'));
        // Values are marked with two characters.
        let values = all.into_iter().map(|(value, name)| {
            let value = value[2..].to_owned();
            let label = if is_flag { value.clone() } else { name };
            (value, label)
        });
        MenuEntry {
            option: MenuOption::Option(option.id.to_string()),
            title: option.name.clone(),
            about: option.description.clone().unwrap_or_default(),
            values: values.collect(),
            current,
        }
    });
    mode.into_iter().chain(options).filter(|entry| !entry.values.is_empty()).collect()
}
