//! Puts what came on two text pipes and as frames into the order in which it was said.
//!
//! A mark on both pipes says where a frame belongs (`docs/runner-protocol.md`). The caller reads the
//! text first and the frames after, and only then asks for what is next. The runner sends a frame
//! before it prints what follows, so a mark whose frame is not there by then never had one.

use std::collections::VecDeque;

use cellwright_cell::Stream;

use super::text::{MarkScanner, PipeMark, PipePiece, StreamDecoder};
use super::wire::{RunnerFrame, RunnerMessage};

/// What comes next.
#[derive(Debug)]
pub(super) enum NextPiece {
    Text(Stream, String),
    /// The cell that was sent next starts here.
    Started,
    Message(RunnerMessage),
}

pub(super) struct StreamOrder {
    stdout: StreamLane,
    stderr: StreamLane,
    frames: VecDeque<RunnerFrame>,
    /// Everything before this mark has been taken, on both pipes.
    passed: u64,
}

struct StreamLane {
    scanner: MarkScanner,
    decoder: StreamDecoder,
    pieces: VecDeque<PipePiece>,
    closed: bool,
}

impl StreamOrder {
    pub(super) fn new(nonce: &str) -> Self {
        let lane = || StreamLane {
            scanner: MarkScanner::new(nonce),
            decoder: StreamDecoder::default(),
            pieces: VecDeque::new(),
            closed: false,
        };
        Self { stdout: lane(), stderr: lane(), frames: VecDeque::new(), passed: 0 }
    }

    /// Takes bytes that a pipe delivered.
    pub(super) fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        let lane = self.lane(stream);
        lane.scanner.scan(bytes, &mut lane.pieces);
    }

    /// Nothing more will come on this pipe.
    pub(super) fn closed(&mut self, stream: Stream) {
        let lane = self.lane(stream);
        lane.closed = true;
        lane.scanner.finish(&mut lane.pieces);
    }

    /// Takes a frame.
    pub(super) fn framed(&mut self, frame: RunnerFrame) {
        self.frames.push_back(frame);
    }

    /// Whether to read this pipe. A pipe that has reached a mark waits for the other one.
    pub(super) fn wants(&self, stream: Stream) -> bool {
        let lane = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        lane.pieces.is_empty() && !lane.closed
    }

    /// What is next, or nothing until more has been read.
    pub(super) fn next(&mut self) -> Option<NextPiece> {
        loop {
            let passed = self.passed;
            if let Some(frame) =
                self.frames.pop_front_if(|frame| frame.mark.is_none_or(|mark| mark <= passed))
            {
                if let RunnerMessage::Done { .. } = frame.message
                    && let Some(rest) = self.rest_of_a_character()
                {
                    self.frames.push_front(frame);
                    return Some(rest);
                }
                return Some(NextPiece::Message(frame.message));
            }
            for stream in [Stream::Stdout, Stream::Stderr] {
                let lane = self.lane(stream);
                while let Some(PipePiece::Text(bytes)) =
                    lane.pieces.pop_front_if(|piece| matches!(piece, PipePiece::Text(_)))
                {
                    let text = lane.decoder.decode(bytes);
                    if !text.is_empty() {
                        return Some(NextPiece::Text(stream, text));
                    }
                }
            }
            // Both pipes are at a mark, at their end, or have to be read.
            let mark = std::cmp::min_by_key(self.stdout.mark()?, self.stderr.mark()?, |mark| mark.number);
            if mark == PipeMark::LAST && self.frames.is_empty() {
                return None;
            }
            self.passed = mark.number;
            for lane in [&mut self.stdout, &mut self.stderr] {
                lane.pieces.pop_front_if(|piece| *piece == PipePiece::Mark(mark));
            }
            if mark.starts {
                return Some(NextPiece::Started);
            }
        }
    }

    /// A cell that ends inside a character will not complete it.
    fn rest_of_a_character(&mut self) -> Option<NextPiece> {
        [Stream::Stdout, Stream::Stderr]
            .into_iter()
            .find_map(|stream| self.lane(stream).decoder.finish().map(|rest| NextPiece::Text(stream, rest)))
    }

    fn lane(&mut self, stream: Stream) -> &mut StreamLane {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl StreamLane {
    /// The mark that this pipe has reached. A pipe at its end has passed all marks.
    fn mark(&self) -> Option<PipeMark> {
        match self.pieces.front() {
            Some(PipePiece::Mark(mark)) => Some(*mark),
            Some(PipePiece::Text(_)) => None,
            None => self.closed.then_some(PipeMark::LAST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef0123456789abcdef";
    const OUT: Stream = Stream::Stdout;
    const ERR: Stream = Stream::Stderr;

    fn order() -> StreamOrder {
        StreamOrder::new(NONCE)
    }

    /// Text with `{n}` for mark n.
    fn print(order: &mut StreamOrder, stream: Stream, text: &str) {
        let text = text.replace('{', &format!("\x1b_cw:{NONCE}:")).replace('}', "\x1b\\");
        order.printed(stream, text.as_bytes());
    }

    fn frame(order: &mut StreamOrder, mark: Option<u64>, name: &str) {
        order.framed(RunnerFrame { mark, message: RunnerMessage::Warning(name.into()) });
    }

    /// All that is next.
    fn said(order: &mut StreamOrder) -> String {
        std::iter::from_fn(|| order.next())
            .map(|said| match said {
                NextPiece::Text(Stream::Stdout, text) => format!("o:{text} "),
                NextPiece::Text(Stream::Stderr, text) => format!("e:{text} "),
                NextPiece::Started => "started ".into(),
                NextPiece::Message(RunnerMessage::Warning(name)) => format!("<{name}> "),
                NextPiece::Message(other) => format!("{other:?} "),
            })
            .collect()
    }

    #[test]
    fn a_frame_waits_for_its_mark_on_both_pipes() {
        let mut order = order();
        frame(&mut order, Some(1), "show");
        assert_eq!(said(&mut order), "");
        print(&mut order, OUT, "a{1}b");
        assert_eq!(said(&mut order), "o:a ");
        assert!(!order.wants(OUT) && order.wants(ERR), "what follows the mark has to wait");
        print(&mut order, ERR, "c{1}");
        assert_eq!(said(&mut order), "e:c <show> o:b ");
    }

    #[test]
    fn text_after_a_mark_follows_its_frame_even_when_the_marks_were_seen_long_before() {
        let mut order = order();
        print(&mut order, OUT, "a{1}");
        print(&mut order, ERR, "{1}");
        assert_eq!(said(&mut order), "o:a ");
        print(&mut order, OUT, "b");
        frame(&mut order, Some(1), "show");
        assert_eq!(said(&mut order), "<show> o:b ");
    }

    #[test]
    fn a_mark_without_a_frame_orders_the_two_streams() {
        let mut order = order();
        print(&mut order, ERR, "{1}b{2}");
        print(&mut order, OUT, "a{1}{2}c");
        assert_eq!(said(&mut order), "o:a e:b o:c ");
    }

    #[test]
    fn a_cell_starts_where_both_pipes_say_so() {
        let mut order = order();
        frame(&mut order, Some(2), "done");
        print(&mut order, OUT, "late{1+}a{2}");
        assert_eq!(said(&mut order), "o:late ");
        print(&mut order, ERR, "{1+}");
        assert_eq!(said(&mut order), "started o:a ");
        // The runner dies before it has written the next mark to both.
        print(&mut order, ERR, "{2}");
        print(&mut order, OUT, "{3+}b");
        assert_eq!(said(&mut order), "<done> ");
        order.closed(ERR);
        assert_eq!(said(&mut order), "started o:b ");
    }

    #[test]
    fn frames_with_one_mark_stay_together_and_unmarked_ones_keep_their_place() {
        let mut order = order();
        frame(&mut order, Some(1), "result");
        frame(&mut order, Some(1), "done");
        frame(&mut order, None, "reply");
        print(&mut order, OUT, "{1}");
        assert_eq!(said(&mut order), "");
        print(&mut order, ERR, "{1}");
        assert_eq!(said(&mut order), "<result> <done> <reply> ");
    }

    #[test]
    fn a_pipe_that_is_closed_or_lost_a_mark_does_not_hold_up_the_other() {
        let mut lost = order();
        print(&mut lost, OUT, "a{1}b{2}c");
        print(&mut lost, ERR, "{2}");
        frame(&mut lost, Some(1), "one");
        frame(&mut lost, Some(2), "two");
        assert_eq!(said(&mut lost), "o:a <one> o:b <two> o:c ");

        let mut closed = order();
        closed.closed(ERR);
        print(&mut closed, OUT, "a{1}b");
        frame(&mut closed, Some(1), "show");
        assert_eq!(said(&mut closed), "o:a <show> o:b ");
        frame(&mut closed, Some(9), "last");
        closed.closed(OUT);
        assert_eq!(said(&mut closed), "<last> ");
        assert_eq!(said(&mut closed), "");
    }
}
