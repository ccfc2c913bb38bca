//! What cells displayed beside text, within the room of one reply.

use cellwright_output::{ArtifactKind, Artifacts, Image, ImageFormat};
use cellwright_session::{CollectedOutput, ShownOutput};

use crate::reply::{ReplyPart, ToolFailure, ToolReply};
use crate::toolbox::ToolSettings;

/// Images in one reply.
const IMAGES: usize = 8;

/// Stored displays that a reply names one by one.
const NAMED: usize = 20;

/// Bytes of SVG in one reply. Longer ones are read from where they are stored.
const SVG: usize = 4 * 1024;

/// Puts displays into a reply: the first images themselves, of the others where they are stored.
#[derive(Debug)]
pub(crate) struct ReplyDisplays {
    images: usize,
    named: usize,
    /// Lines of the list that the reply names in their place.
    unnamed: Vec<String>,
    svg_room: usize,
}

impl Default for ReplyDisplays {
    fn default() -> Self {
        Self { images: 0, named: 0, unnamed: Vec::new(), svg_room: SVG }
    }
}

impl ReplyDisplays {
    /// Adds what an output has more than text.
    pub(crate) fn show(&mut self, settings: &ToolSettings, output: &CollectedOutput, reply: &mut ToolReply) {
        for shown in &output.shown {
            match shown {
                ShownOutput::Image(image) => {
                    self.images += 1;
                    if self.images <= IMAGES {
                        self.image(settings, image, reply);
                    } else {
                        let stored = stored(&settings.artifacts, image);
                        self.name(format!("[{image}, one more than is shown, {stored}]"), reply);
                    }
                }
                ShownOutput::Stored { what, artifact: Ok(id) } => {
                    self.name(format!("[{what}, stored as {id}]"), reply);
                }
                ShownOutput::Stored { what, artifact: Err(why) } => {
                    self.name(format!("[{what}, not kept: {why}]"), reply);
                }
                // Values are in the text; status events are for programs.
                ShownOutput::Json(_) | ShownOutput::Status(_) => {}
            }
        }
    }

    /// Adds an image as a model can take it. Models take no SVG, so that is given as the text it is.
    pub(crate) fn image(&mut self, settings: &ToolSettings, image: &Image, reply: &mut ToolReply) {
        if image.format != ImageFormat::Svg {
            return reply.content.push(settings.bounded(image));
        }
        let stored = stored(&settings.artifacts, image);
        if image.bytes.len() <= self.svg_room {
            self.svg_room -= image.bytes.len();
            reply.note(format!("[{image} as text; models take no SVG; it {stored}]"));
            reply.content.push(ReplyPart::Text(String::from_utf8_lossy(&image.bytes).into_owned()));
        } else {
            reply.note(format!("[{image}: models take no SVG; it {stored}, which `read` shows as text]"));
        }
    }

    /// Adds where the list of all that was not named is.
    pub(crate) fn finish(self, settings: &ToolSettings, reply: &mut ToolReply) {
        if self.unnamed.is_empty() {
            return;
        }
        let count = self.unnamed.len();
        let list = self.unnamed.join("\n") + "\n";
        reply.note(match settings.artifacts.save(ArtifactKind::Log, list.as_bytes()) {
            Ok(id) => format!("[{count} more displays are stored; {id} lists where]"),
            Err(error) => {
                format!("[{count} more displays; where cannot be kept: {}]", ToolFailure::from(error))
            }
        });
    }

    fn name(&mut self, note: String, reply: &mut ToolReply) {
        self.named += 1;
        if self.named <= NAMED {
            reply.note(note);
        } else {
            self.unnamed.push(note);
        }
    }
}

/// Where an image is stored, as the end of a sentence about it.
pub(crate) fn stored(artifacts: &Artifacts, image: &Image) -> String {
    match artifacts.save(image.format.kind(), &image.bytes) {
        Ok(id) => format!("is in {id}"),
        Err(error) => format!("could not be kept: {}", ToolFailure::from(error)),
    }
}
