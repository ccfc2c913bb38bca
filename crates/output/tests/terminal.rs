//! The screen against a terminal written the obvious way: a grid of characters.

use cellwright_cell::Stream;
use cellwright_output::{Colours, OutputLimits, OutputSink};
use proptest::prelude::*;

/// Lines that the cursor can reach, its own included.
const HEIGHT: usize = 50;
/// Where moves to the right end in a short line.
const MARGIN: usize = 1024;

#[derive(Debug, Clone)]
enum Step {
    Print(String),
    LineFeed,
    Return,
    Backspace,
    /// A control sequence with its number.
    Control(char, Option<usize>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => "[a-z\t ]{1,6}".prop_map(Step::Print),
        4 => Just(Step::LineFeed),
        1 => Just(Step::Return),
        1 => Just(Step::Backspace),
        2 => ("[ABCDEFGJK]", prop::option::of(0_usize..5)).prop_map(control),
        1 => ("[ABCGF]", prop::option::of(0_usize..90)).prop_map(control),
    ];
    prop::collection::vec(step, 0..300)
}

fn control((letter, number): (String, Option<usize>)) -> Step {
    Step::Control(letter.chars().next().unwrap(), number)
}

impl Step {
    fn bytes(&self) -> String {
        match self {
            Self::Print(text) => text.clone(),
            Self::LineFeed => "\n".to_owned(),
            Self::Return => "\r".to_owned(),
            Self::Backspace => "\x08".to_owned(),
            Self::Control(letter, None) => format!("\x1b[{letter}"),
            Self::Control(letter, Some(number)) => format!("\x1b[{number}{letter}"),
        }
    }
}

struct Grid {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The first row on the screen.
    top: usize,
}

impl Grid {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Print(text) => text.chars().for_each(|ch| self.put(ch)),
            Step::LineFeed => {
                self.row += 1;
                self.column = 0;
                if self.row == self.rows.len() {
                    self.rows.push(Vec::new());
                    self.top = self.top.max(self.rows.len().saturating_sub(HEIGHT));
                }
            }
            Step::Return => self.column = 0,
            Step::Backspace => self.column = self.column.saturating_sub(1),
            Step::Control(letter, number) => self.control(*letter, *number),
        }
    }

    fn put(&mut self, ch: char) {
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = ch;
        self.column += 1;
    }

    fn control(&mut self, letter: char, number: Option<usize>) {
        let count = number.unwrap_or(1).max(1);
        let right_end = self.rows[self.row].len().max(MARGIN);
        match letter {
            'A' | 'F' => self.row = self.row.saturating_sub(count).max(self.top),
            'B' | 'E' => self.row = (self.row + count).min(self.rows.len() - 1),
            'C' => self.column = (self.column + count).min(right_end),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = (count - 1).min(right_end),
            'J' if number.unwrap_or(0) == 0 => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            'K' => match number.unwrap_or(0) {
                0 => self.rows[self.row].truncate(self.column),
                1 => self.rows[self.row].iter_mut().take(self.column + 1).for_each(|ch| *ch = ' '),
                _ => self.rows[self.row].clear(),
            },
            _ => {}
        }
        if matches!(letter, 'E' | 'F') {
            self.column = 0;
        }
    }
}

proptest! {
    #[test]
    fn the_screen_shows_what_the_obvious_terminal_shows(steps in steps(), times in 1_usize..20) {
        let mut grid = Grid { rows: vec![Vec::new()], row: 0, column: 0, top: 0 };
        let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
        for step in std::iter::repeat_n(&steps, times).flatten() {
            grid.take(step);
            sink.write(Stream::Stdout, step.bytes().as_bytes());
        }
        let rows: Vec<String> = grid.rows.iter().map(|row| row.iter().collect()).collect();
        prop_assert_eq!(sink.finish().text, rows.join("\n"));
    }
}
