//! How a turn looks in a cell: updates of the agent go in, messages for the notebook come out.
//!
//! Pure: no clock, no channels. The turn passes in what happened and when, sends what
//! [`TurnView::flush`] returns, and calls it again at [`TurnView::due`]. Each piece (a block of
//! text, a thought, a tool call, the plan) is one display that is updated in place, so a saved
//! notebook holds the last state. For clients that cannot update displays, [`ViewStyle::Stream`]
//! prints the same as text.

mod blocks;
mod card;
mod cards;
mod content;
mod diff;
mod displays;
mod forms;
mod html;
mod origin;
mod pace;
mod plan;
mod printer;
mod sending;
mod show;
#[cfg(test)]
mod tests;
mod time;
mod words;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    CompactionStatus, ContentBlock, ContentChunk, MessageId, NoticeSeverity, PlanUpdateContent,
    SessionUpdate, StopReason, ToolCallId, Usage, UsageUpdate,
};
use blocks::{TextBlocks, TextSyntax};
use card::{TerminalScreens, ToolCard};
use content::RenderedContent;
use displays::{DisplaySharing, TurnDisplays};
use html::{escape, folded};
use pace::OutputPace;
use printer::{PrintSection, StreamPrinter};
use words::{TextRole, dim, headings_of};

use crate::tool_calls::ToolCalls;
use crate::tool_door::INTRODUCES;

pub(crate) use diff::LineDiff;
pub(crate) use forms::{FormPiece, widget_view};
pub(crate) use html::widget_text;
pub(crate) use origin::is_of_agent;
pub(crate) use show::{OutputData, OutputMessage, TurnEnding, ViewStyle};

/// After this much silence, a turn shows that it is alive.
const QUIET: Duration = Duration::from_secs(10);

/// The most headings of a turn. `JupyterLab` takes milliseconds for each, again and again.
const HEADINGS: usize = 100;

/// A turn as it is shown.
#[derive(Debug)]
pub(crate) struct TurnView {
    style: ViewStyle,
    turn: String,
    replaying: bool,
    started: Instant,
    /// When something last happened.
    active: Instant,
    /// In the order they appear in the cell.
    pieces: Vec<ViewPiece>,
    displays: TurnDisplays,
    open: Option<OpenText>,
    cards: HashMap<ToolCallId, usize>,
    terminals: TerminalScreens,
    plans: HashMap<String, usize>,
    compactions: HashMap<String, usize>,
    buttons: HashMap<ToolCallId, usize>,
    forms: Vec<FormPiece>,
    usage: Option<UsageUpdate>,
    spent: Option<Usage>,
    /// The last piece, if it is temporary. The next piece replaces it.
    passing: Option<usize>,
    next_elapsed: Instant,
    ended: bool,
    /// How many more headings of this turn are headings in the page.
    headings_left: MostHeadings,
    pace: OutputPace,
    printer: StreamPrinter,
}

/// How many headings of a text are headings in the page.
type MostHeadings = usize;

#[derive(Debug)]
enum ViewPiece {
    /// Text of the open block is in [`OpenText`], that of a frozen one here until it is sent.
    Text(TextRole, String, MostHeadings),
    Card(Box<ToolCard>),
    Fixed(OutputData),
}

/// Whether it is what the kernel told the agent of its place, and no word of the user.
fn is_introduction(chunk: &ContentChunk) -> bool {
    matches!(&chunk.content, ContentBlock::Text(text) if text.text.starts_with(INTRODUCES))
}

/// The text that grows.
#[derive(Debug)]
struct OpenText {
    voice: TextRole,
    message: Option<MessageId>,
    blocks: TextBlocks,
    /// The piece of the open block, once the block holds more than white space.
    at: Option<usize>,
}

impl ViewPiece {
    /// Whether it is HTML, and can share a display with others.
    fn is_html(&self) -> bool {
        match self {
            Self::Card(_) | Self::Text(TextRole::Thought, ..) => true,
            Self::Text(TextRole::Agent | TextRole::User, ..) => false,
            Self::Fixed(data) => data.len() == 2 && data.contains_key("text/html"),
        }
    }
}

impl TurnView {
    /// An empty view. `turn` makes its display ids unique in the notebook.
    pub(crate) fn new(style: ViewStyle, turn: impl Into<String>, now: Instant) -> Self {
        Self {
            style,
            turn: turn.into(),
            replaying: false,
            started: now,
            active: now,
            pieces: Vec::new(),
            displays: TurnDisplays::default(),
            open: None,
            cards: HashMap::new(),
            terminals: TerminalScreens::new(),
            plans: HashMap::new(),
            compactions: HashMap::new(),
            buttons: HashMap::new(),
            forms: Vec::new(),
            usage: None,
            spent: None,
            passing: None,
            next_elapsed: now + QUIET,
            ended: false,
            headings_left: HEADINGS,
            pace: match style {
                ViewStyle::Rich => OutputPace::messages(now),
                ViewStyle::Stream => OutputPace::bytes(now),
            },
            printer: StreamPrinter::default(),
        }
    }

    /// Also shows the user's messages, for an old session that is played back.
    #[must_use]
    pub(crate) fn replaying(mut self) -> Self {
        self.replaying = true;
        self
    }

    /// Sends as fast as the client reads, because no server stands between that could drop output.
    #[must_use]
    pub(crate) fn unpaced(mut self, now: Instant) -> Self {
        if self.style == ViewStyle::Stream {
            self.pace = OutputPace::unlimited(now);
        }
        self
    }

    /// Takes in an update that is not about a tool call; see [`TurnView::tool_call`]. The caller
    /// keeps the state of the session (its commands, modes and options).
    pub(crate) fn update(&mut self, update: SessionUpdate, now: Instant) {
        self.stir(now);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(TextRole::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(TextRole::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) if self.replaying && !is_introduction(&chunk) => {
                self.chunk(TextRole::User, chunk);
            }
            SessionUpdate::Plan(plan) => self.plan(String::new(), plan::checklist(&plan.entries)),
            SessionUpdate::PlanUpdate(update) => match update.plan {
                PlanUpdateContent::Items(items) => {
                    self.plan(items.plan_id.0.to_string(), plan::checklist(&items.entries));
                }
                PlanUpdateContent::Markdown(plan) => {
                    let html = folded("Plan", &html::pre(&plan.content));
                    self.plan(plan.plan_id.0.to_string(), RenderedContent { html, plain: plan.content });
                }
                PlanUpdateContent::File(file) => {
                    let html = format!("Plan: {}", html::link(&file.uri, &file.uri));
                    self.plan(
                        file.plan_id.0.to_string(),
                        RenderedContent { html, plain: format!("Plan: {}", file.uri) },
                    );
                }
                _ => {}
            },
            SessionUpdate::CurrentModeUpdate(mode) => self.aside(&format!("mode: {}", mode.current_mode_id)),
            SessionUpdate::UsageUpdate(usage) => self.usage = Some(usage),
            SessionUpdate::Notice(notice) => {
                self.notice(&notice.severity, &notice.title, notice.description.as_deref());
            }
            SessionUpdate::CompactionUpdate(compaction) => {
                let state = match &compaction.status {
                    CompactionStatus::InProgress => "is summarising the conversation so far …",
                    CompactionStatus::Completed => "has summarised the conversation so far",
                    CompactionStatus::Failed => "could not summarise the conversation so far",
                    CompactionStatus::Cancelled => "stopped summarising the conversation",
                    _ => return,
                };
                let line = dim(&format!("the agent {state}"));
                let id = compaction.compaction_id.0.to_string();
                let known = self.compactions.get(&id).copied();
                let at = self.place(known, ViewPiece::Fixed(line.bundle()), &format!("the agent {state}"));
                self.compactions.insert(id, at);
            }
            // The session's state, or an update of a later version of the protocol.
            _ => {}
        }
    }

    /// Shows a notice of the agent or the kernel.
    pub(crate) fn notice(&mut self, severity: &NoticeSeverity, title: &str, description: Option<&str>) {
        let (word, colour) = match severity {
            NoticeSeverity::Error => ("error: ", "#d1242f"),
            NoticeSeverity::Warning => ("warning: ", "#b08800"),
            _ => ("", "#808080"),
        };
        let mut plain = format!("{word}{title}");
        let mut html = format!(
            "<div style=\"border-left:3px solid {colour};padding:2px 8px;margin:4px 0\"><b>{}</b>",
            escape(&plain)
        );
        if let Some(description) = description {
            html = format!("{html}<div style=\"white-space:pre-wrap\">{}</div>", escape(description));
            plain = format!("{plain}\n{description}");
        }
        html.push_str("</div>");
        self.place(None, ViewPiece::Fixed(RenderedContent { html, plain: plain.clone() }.bundle()), &plain);
    }

    /// Shows an address for the user to open.
    pub(crate) fn link(&mut self, title: &str, address: &str) {
        let html = format!(
            "<div style=\"border-left:3px solid #808080;padding:2px 8px;margin:4px 0\"><b>{}</b><div>{}</div></div>",
            escape(title),
            html::link(address, address)
        );
        let plain = format!("{title}\n{address}");
        self.place(None, ViewPiece::Fixed(RenderedContent { html, plain: plain.clone() }.bundle()), &plain);
    }

    /// Notes the tokens that the agent reports at the end.
    pub(crate) fn spent(&mut self, tokens: Usage) {
        self.spent = Some(tokens);
    }

    /// Ends the turn. Nothing looks as if it still ran. `flush` returns the rest of the output.
    pub(crate) fn end(
        &mut self,
        ending: &TurnEnding,
        left_open: &[ToolCallId],
        calls: &ToolCalls,
        now: Instant,
    ) {
        self.close();
        self.ended = true;
        self.leave_open(left_open, calls);
        for (_, at) in std::mem::take(&mut self.buttons) {
            self.retire(at, "not answered");
        }
        self.retire_forms();
        if let TurnEnding::Stopped(reason) = ending {
            let notice = match reason {
                StopReason::MaxTokens => Some("stopped at the agent's token limit; ask it to continue"),
                StopReason::MaxTurnRequests => {
                    Some("stopped at the agent's limit of requests; ask it to continue")
                }
                StopReason::Refusal => Some("the agent refused to continue"),
                StopReason::Cancelled => Some("interrupted"),
                // `EndTurn`, and what later versions add.
                _ => None,
            };
            if let Some(notice) = notice {
                self.notice(&NoticeSeverity::Warning, notice, None);
            }
        }
        let took = now.saturating_duration_since(self.started);
        match self.footer(took) {
            _ if *ending == TurnEnding::Command => {
                // A display cannot be removed, only emptied.
                if let Some(at) = self.passing.take() {
                    self.retire(at, "");
                }
            }
            Some(line) => self.aside(&line),
            None => {}
        }
    }

    fn stir(&mut self, now: Instant) {
        self.active = now;
    }

    fn chunk(&mut self, voice: TextRole, chunk: ContentChunk) {
        match chunk.content {
            ContentBlock::Text(text) => self.text(voice, chunk.message_id, &text.text),
            other => {
                self.close();
                let data = content::display(&other);
                if self.style == ViewStyle::Stream && content::is_picture(&data) {
                    return self.printer.picture(data);
                }
                let plain = data["text/plain"].as_str().unwrap_or_default().to_owned();
                self.place(None, ViewPiece::Fixed(data), &plain);
            }
        }
    }

    fn text(&mut self, voice: TextRole, message: Option<MessageId>, text: &str) {
        let goes_on = |open: &OpenText| open.voice == voice && (message.is_none() || open.message == message);
        if !self.open.as_ref().is_some_and(goes_on) {
            self.close();
            let syntax = if voice == TextRole::Thought { TextSyntax::Plain } else { TextSyntax::Markdown };
            self.open = Some(OpenText { voice, message, blocks: TextBlocks::new(syntax), at: None });
        }
        if self.style == ViewStyle::Stream {
            let section = if voice == TextRole::Agent { PrintSection::Answer } else { PrintSection::Thought };
            return self.printer.print(section, text);
        }
        let Some(mut open) = self.open.take() else { return };
        for frozen in open.blocks.push(text) {
            let most = self.headings_left;
            self.headings_left = most.saturating_sub(headings_of(voice, &frozen));
            match open.at.take() {
                Some(at) => {
                    self.pieces[at] = ViewPiece::Text(voice, frozen, most);
                    self.displays.touch(at);
                }
                None if frozen.trim().is_empty() => {}
                None => {
                    self.add(ViewPiece::Text(voice, frozen, most));
                }
            }
        }
        if open.at.is_none() && !open.blocks.open().trim().is_empty() {
            open.at = Some(self.add(ViewPiece::Text(voice, String::new(), self.headings_left)));
        }
        open.at.iter().for_each(|at| self.displays.touch(*at));
        self.open = Some(open);
    }

    /// Ends the open text. The next text is a paragraph of its own.
    fn close(&mut self) {
        if let Some(OpenText { voice, blocks, at: Some(at), .. }) = self.open.take() {
            // If all of it was sent already, it is not sent again. Thoughts may be, with neighbours.
            let is_needed = voice == TextRole::Thought || self.displays.is_changed(at);
            let text = if is_needed { blocks.open().to_owned() } else { String::new() };
            self.pieces[at] = ViewPiece::Text(voice, text, self.headings_left);
            self.headings_left = self.headings_left.saturating_sub(headings_of(voice, blocks.open()));
        }
    }

    fn plan(&mut self, id: String, list: RenderedContent) {
        let known = self.plans.get(&id).copied();
        let plain = list.plain.clone();
        let at = self.place(known, ViewPiece::Fixed(list.bundle()), &plain);
        self.plans.insert(id, at);
    }

    /// Shows a line that is less important than a notice.
    pub(crate) fn aside(&mut self, text: &str) {
        self.place(None, ViewPiece::Fixed(dim(text).bundle()), text);
    }

    /// Everything that was not sent yet, before something else appears in the cell. What follows comes after that.
    pub(crate) fn before_output(&mut self, calls: &ToolCalls, now: Instant) -> Vec<OutputMessage> {
        self.stir(now);
        self.close();
        if let Some(at) = self.passing.take() {
            self.retire(at, "");
        }
        self.displays.seal();
        self.rest(calls)
    }

    /// Replaces an earlier state of a piece, or adds the piece.
    fn place(&mut self, known: Option<usize>, piece: ViewPiece, plain: &str) -> usize {
        if self.style == ViewStyle::Stream {
            self.printer.print(PrintSection::Aside, &format!("{}\n", plain.trim_end()));
        }
        let Some(at) = known else {
            self.close();
            return self.add(piece);
        };
        self.pieces[at] = piece;
        self.displays.touch(at);
        at
    }

    fn add(&mut self, piece: ViewPiece) -> usize {
        self.put(piece, DisplaySharing::Welcome)
    }

    fn put(&mut self, piece: ViewPiece, company: DisplaySharing) -> usize {
        let at = self.passing.take().unwrap_or(self.pieces.len());
        // A display cannot be removed. The new piece takes over the display of a temporary one.
        let freed = at < self.pieces.len();
        self.pieces.truncate(at);
        self.displays.truncate(at);
        let open = self.displays.open().filter(|open| {
            let others = &self.pieces[self.displays.pieces(*open)];
            !freed
                && company == DisplaySharing::Welcome
                && piece.is_html()
                && others.iter().all(ViewPiece::is_html)
        });
        self.displays.add(open);
        self.pieces.push(piece);
        at
    }
}
