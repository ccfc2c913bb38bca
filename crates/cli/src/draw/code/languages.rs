//! The words of other languages: comments, strings, keywords and constants, no more.

use super::{COMMENT, CodePiece, DEFINED, KEYWORD, MAGIC, NUMBER, STRING, blank, number};
use crate::draw::style::TextStyle;

/// What distinguishes the words of a language.
pub(super) struct LanguageWords {
    /// What kernels and Markdown call it, in lower case.
    names: &'static [&'static str],
    /// What starts a comment that ends with its line.
    comments: &'static [&'static str],
    /// What encloses a comment that may have several lines.
    block: Option<(&'static str, &'static str)>,
    /// What encloses a string; those of three characters may have several lines, and so may backquotes.
    quotes: &'static [&'static str],
    /// Separated by spaces.
    keywords: &'static str,
    constants: &'static str,
    /// Keywords after which a name is defined.
    defining: &'static str,
    /// Characters of names beside letters, digits and underscores.
    letters: &'static str,
    ignores_case: bool,
}

const PLAIN: LanguageWords = LanguageWords {
    names: &[],
    comments: &["#"],
    block: None,
    quotes: &["\"", "'"],
    keywords: "",
    constants: "true false null nil",
    defining: "",
    letters: "",
    ignores_case: false,
};

const C_LIKE: LanguageWords = LanguageWords { comments: &["//"], block: Some(("/*", "*/")), ..PLAIN };

static LANGUAGES: &[LanguageWords] = &[
    LanguageWords {
        names: &["r", "ir"],
        keywords: "if else repeat while function for in next break return library require",
        constants: "TRUE FALSE NULL NA NaN Inf T F",
        letters: ".",
        ..PLAIN
    },
    LanguageWords {
        names: &["julia", "jl"],
        block: Some(("#=", "=#")),
        quotes: &["\"\"\"", "\"", "'", "`"],
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for function \
                   global if import in let local macro module mutable primitive quote return struct try type using where while",
        constants: "true false nothing missing NaN Inf pi",
        defining: "function macro struct module",
        letters: "!",
        ..PLAIN
    },
    LanguageWords {
        names: &["javascript", "js", "node", "typescript", "ts", "jsx", "tsx", "deno", "ecmascript"],
        quotes: &["\"", "'", "`"],
        keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum \
                   export extends finally for from function get if implements import in instanceof interface let namespace new \
                   of private protected public readonly return set static super switch throw try type typeof var void while yield",
        constants: "true false null undefined NaN Infinity this",
        defining: "function class interface enum type namespace",
        letters: "$",
        ..C_LIKE
    },
    LanguageWords {
        names: &["rust", "rs", "evcxr"],
        quotes: &["\""],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move \
                   mut pub ref return static struct super trait type unsafe use where while",
        constants: "true false None Some Ok Err self Self",
        defining: "fn struct enum trait mod type",
        ..C_LIKE
    },
    LanguageWords {
        names: &["c", "cpp", "c++", "cc", "cxx", "h", "hpp", "xcpp", "xcpp17", "cling", "cuda"],
        keywords: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum \
                   explicit extern float for friend goto if inline int long namespace new noexcept operator override private \
                   protected public register return short signed sizeof static struct switch template this throw try typedef \
                   typename union unsigned using virtual void volatile while",
        constants: "true false nullptr NULL",
        defining: "struct class enum union namespace",
        ..C_LIKE
    },
    LanguageWords {
        names: &[
            "java", "kotlin", "kt", "scala", "groovy", "csharp", "c#", "cs", ".net", "fsharp", "f#", "swift",
            "dart",
        ],
        quotes: &["\"\"\"", "\"", "'"],
        keywords: "abstract as async await break case catch class const continue data def default do else enum extends extension \
                   final finally for foreach fun func given goto guard if implements implicit import in init int interface internal \
                   is lazy let long match namespace native new object open operator out override package private protected protocol \
                   public readonly return sealed static string struct super switch synchronized then throw throws trait try type \
                   typeof using val var virtual void when where while with yield",
        constants: "true false null this nil None Some self",
        defining: "class interface object trait enum struct fun func def",
        ..C_LIKE
    },
    LanguageWords {
        names: &["go", "golang", "gophernotes"],
        quotes: &["\"", "'", "`"],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map \
                   package range return select struct switch type var",
        constants: "true false nil iota",
        defining: "func type",
        ..C_LIKE
    },
    LanguageWords {
        names: &["sql", "sqlite", "postgresql", "postgres", "mysql", "duckdb"],
        comments: &["--"],
        block: Some(("/*", "*/")),
        keywords: "add all alter and as asc between by case cast column create cross delete desc distinct drop else end except \
                   exists from full group having if in index inner insert intersect into is join left like limit not offset on or \
                   order outer over partition primary key references replace returning right rollback select set table then union \
                   unique update using values view when where window with",
        constants: "null true false",
        ignores_case: true,
        ..PLAIN
    },
    LanguageWords {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "system"],
        keywords: "case do done elif else esac export fi for function if in local return select set source then trap until \
                   unset while",
        constants: "true false",
        defining: "function",
        letters: "-",
        ..PLAIN
    },
    LanguageWords {
        names: &["ruby", "rb", "iruby", "crystal", "elixir"],
        keywords: "alias and begin break case class def defined do else elsif end ensure for if in module next not or redo \
                   require rescue retry return super then undef unless until when while yield",
        constants: "true false nil self",
        defining: "def class module",
        letters: "?!",
        ..PLAIN
    },
    LanguageWords {
        names: &["lua"],
        comments: &["--"],
        block: Some(("--[[", "]]")),
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        defining: "function",
        ..PLAIN
    },
    LanguageWords {
        names: &["perl", "pl", "raku"],
        keywords: "and cmp do else elsif eq for foreach given if last local my ne next no not or our package print return sub \
                   unless until use when while",
        constants: "undef",
        defining: "sub package",
        letters: "$@",
        ..PLAIN
    },
    LanguageWords {
        names: &["haskell", "hs", "ihaskell", "ocaml", "ml", "elm"],
        comments: &["--"],
        block: Some(("{-", "-}")),
        quotes: &["\""],
        keywords: "and as begin case class data default deriving do else end exception forall fun function hiding if import in \
                   instance let match module mutable newtype of open qualified rec sig then try type where with",
        constants: "True False true false Nothing Just Left Right None Some",
        defining: "data newtype class module type",
        letters: "'",
        ..PLAIN
    },
    LanguageWords {
        names: &["octave", "matlab", "scilab"],
        comments: &["%", "#"],
        keywords: "break case catch continue do else elseif end endfor endfunction endif endwhile for function global if \
                   otherwise persistent return switch try until while",
        constants: "true false pi inf nan NaN Inf",
        defining: "function",
        ..PLAIN
    },
    LanguageWords {
        names: &["lisp", "clojure", "scheme", "racket", "emacs-lisp", "elisp"],
        comments: &[";"],
        quotes: &["\""],
        keywords: "and begin cond def define defmacro defn defun do else fn for if lambda let let* loop not ns or quote recur \
                   require set! when",
        constants: "nil true false t",
        defining: "def define defn defun defmacro",
        letters: "-*!?",
        ..PLAIN
    },
    LanguageWords {
        names: &["json", "jsonc", "json5", "geojson"],
        comments: &["//"],
        quotes: &["\""],
        ..PLAIN
    },
    LanguageWords {
        names: &[
            "yaml",
            "yml",
            "toml",
            "ini",
            "dockerfile",
            "makefile",
            "make",
            "cmake",
            "nix",
            "hcl",
            "terraform",
        ],
        constants: "true false null yes no on off",
        keywords: "FROM RUN COPY ENV CMD ENTRYPOINT WORKDIR ARG let in with if else endif",
        letters: "-",
        ..PLAIN
    },
    LanguageWords {
        names: &["html", "xml", "svg", "css", "javascript+html"],
        comments: &[],
        block: Some(("<!--", "-->")),
        letters: "-",
        ..PLAIN
    },
    LanguageWords {
        names: &["latex", "tex"],
        comments: &["%"],
        quotes: &[],
        keywords: "begin end section subsection documentclass usepackage newcommand frac sum int",
        ..PLAIN
    },
];

impl LanguageWords {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        LANGUAGES.iter().find(|language| language.names.contains(&name))
    }

    /// The source in pieces; together they are the source.
    pub(super) fn pieces<'a>(&self, source: &'a str) -> Vec<CodePiece<'a>> {
        let mut pieces = Vec::new();
        let (mut rest, mut starts_line, mut defines) = (source, true, false);
        while !rest.is_empty() {
            let (style, length) = self.next(rest, starts_line, defines);
            let (piece, after) = rest.split_at(length);
            let is_space = piece.trim().is_empty();
            starts_line = piece.ends_with('\n') || (starts_line && is_space);
            defines = has(self.defining, piece, false) || (defines && is_space);
            pieces.push((style, piece));
            rest = after;
        }
        pieces
    }

    /// The style and length of the first token.
    fn next(&self, rest: &str, starts_line: bool, defines: bool) -> CodeToken {
        let line = rest.find('\n').unwrap_or(rest.len());
        if starts_line && (rest.starts_with("%%") || rest.starts_with("#!")) {
            return (MAGIC, line);
        }
        if let Some((open, close)) = self.block
            && let Some(body) = rest.strip_prefix(open)
        {
            return (COMMENT, body.find(close).map_or(rest.len(), |at| open.len() + at + close.len()));
        }
        if self.comments.iter().any(|mark| rest.starts_with(mark)) {
            return (COMMENT, line);
        }
        if let Some(quote) = self.quotes.iter().find(|quote| rest.starts_with(**quote)) {
            return (STRING, quoted(rest, quote));
        }
        let first = rest.chars().next().expect("there is text left");
        let is_letter = |c: char| c.is_alphanumeric() || c == '_' || self.letters.contains(c);
        match first {
            '0'..='9' => (NUMBER, number(rest)),
            _ if first.is_whitespace() => (TextStyle::PLAIN, blank(rest)),
            _ if is_letter(first) => {
                let word = &rest[..rest.find(|c| !is_letter(c)).unwrap_or(rest.len())];
                let style = match word {
                    _ if defines => DEFINED,
                    _ if has(self.keywords, word, self.ignores_case) => KEYWORD,
                    _ if has(self.constants, word, self.ignores_case) => NUMBER,
                    _ => TextStyle::PLAIN,
                };
                (style, word.len())
            }
            _ => (TextStyle::PLAIN, first.len_utf8()),
        }
    }
}

/// A token's style and its length.
type CodeToken = (TextStyle, usize);

fn has(words: &str, word: &str, ignores_case: bool) -> bool {
    words
        .split_ascii_whitespace()
        .any(|known| known == word || (ignores_case && known.eq_ignore_ascii_case(word)))
}

/// The length of a string that starts with its quote. Without an end it goes to the line's end, or to the text's.
fn quoted(rest: &str, quote: &str) -> usize {
    let spans_lines = quote.len() == 3 || quote == "`";
    let mut at = quote.len();
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return at + quote.len();
        }
        let mut letters = rest[at..].chars();
        match letters.next().expect("there is text left") {
            '\\' => at += 1 + letters.next().map_or(0, char::len_utf8),
            '\n' if !spans_lines => return at,
            letter => at += letter.len_utf8(),
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces that are not plain.
    #[track_caller]
    fn styled<'a>(language: &str, source: &'a str) -> Vec<CodePiece<'a>> {
        let pieces = LanguageWords::named(language).unwrap().pieces(source);
        assert_eq!(pieces.iter().map(|(_, text)| *text).collect::<String>(), source);
        pieces.into_iter().filter(|(style, _)| *style != TextStyle::PLAIN).collect()
    }

    #[test]
    fn words_of_other_languages_are_distinguished() {
        assert_eq!(
            styled("r", "f.x <- function(n) n + 1.5e-3 # Σ"),
            [(KEYWORD, "function"), (NUMBER, "1.5e-3"), (COMMENT, "# Σ")]
        );
        assert_eq!(
            styled("rust", "fn main() { /* a\nb */ \"x\\\"y\" }"),
            [(KEYWORD, "fn"), (DEFINED, "main"), (COMMENT, "/* a\nb */"), (STRING, "\"x\\\"y\"")]
        );
        assert_eq!(
            styled("sql", "Select 'a' -- b"),
            [(KEYWORD, "Select"), (STRING, "'a'"), (COMMENT, "-- b")]
        );
        assert_eq!(styled("js", "`a\nb` 'c\nd"), [(STRING, "`a\nb`"), (STRING, "'c")]);
        assert_eq!(styled("julia", "#= a =# end"), [(COMMENT, "#= a =#"), (KEYWORD, "end")]);
    }

    #[test]
    fn no_language_has_two_tables() {
        let names: Vec<_> = LANGUAGES.iter().flat_map(|language| language.names).collect();
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(names.len(), once.len());
        assert!(LANGUAGES.len() >= 15);
    }
}
