//! Assignments in the languages of notebooks, as papermill writes them.

use cellwright_notebook::Notebook;
use serde_json::{Number, Value};

use super::{Parameter, ParameterValue, UnwritableParameter};

/// A language that parameters can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterLanguage {
    Python,
    R,
    Julia,
    Scala,
    Matlab,
    CSharp,
    FSharp,
    PowerShell,
    Bash,
}

impl ParameterLanguage {
    pub(super) fn of(notebook: &Notebook) -> Result<Self, UnwritableParameter> {
        let by_kernel = notebook.kernel_name().and_then(|kernel| match kernel.as_str() {
            ".net-csharp" => Some(Self::CSharp),
            ".net-fsharp" => Some(Self::FSharp),
            ".net-powershell" => Some(Self::PowerShell),
            "pysparkkernel" => Some(Self::Python),
            "sparkkernel" => Some(Self::Scala),
            "sparkrkernel" => Some(Self::R),
            _ => None,
        });
        if let Some(known) = by_kernel {
            return Ok(known);
        }
        let language = notebook.language().unwrap_or_else(|| "python".to_owned());
        match language.to_lowercase().as_str() {
            "python" | "python2" | "python3" | "ipython" => Ok(Self::Python),
            "r" => Ok(Self::R),
            "julia" => Ok(Self::Julia),
            "scala" => Ok(Self::Scala),
            "matlab" | "octave" => Ok(Self::Matlab),
            "c#" | "csharp" => Ok(Self::CSharp),
            "f#" | "fsharp" => Ok(Self::FSharp),
            "powershell" | "pwsh" => Ok(Self::PowerShell),
            "bash" => Ok(Self::Bash),
            _ => Err(UnwritableParameter::Language { language }),
        }
    }

    pub(super) fn comment(self) -> &'static str {
        match self {
            Self::Python | Self::R | Self::Julia | Self::PowerShell | Self::Bash => "# Parameters",
            Self::Scala | Self::CSharp => "// Parameters",
            Self::Matlab => "% Parameters",
            Self::FSharp => "(* Parameters *)",
        }
    }

    pub(super) fn assignment(self, parameter: &Parameter) -> Result<String, UnwritableParameter> {
        // As in papermill: R has no names that begin so.
        let name = if self == Self::R { parameter.name.trim_start_matches('_') } else { &parameter.name };
        if !self.is_name(name) {
            return Err(UnwritableParameter::Name { name: parameter.name.clone() });
        }
        let value = self.literal(&parameter.value).ok_or_else(|| UnwritableParameter::Value {
            name: parameter.name.clone(),
            language: self.title(),
        })?;
        Ok(match self {
            Self::Python | Self::R | Self::Julia => format!("{name} = {value}"),
            Self::Scala => format!("val {name} = {value}"),
            Self::Matlab => format!("{name} = {value};"),
            Self::CSharp => format!("var {name} = {value};"),
            Self::FSharp => format!("let {name} = {value}"),
            Self::PowerShell => format!("${name} = {value}"),
            Self::Bash => format!("{name}={value}"),
        })
    }

    fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::R => "R",
            Self::Julia => "Julia",
            Self::Scala => "Scala",
            Self::Matlab => "Matlab",
            Self::CSharp => "C#",
            Self::FSharp => "F#",
            Self::PowerShell => "PowerShell",
            Self::Bash => "bash",
        }
    }

    fn is_name(self, name: &str) -> bool {
        let fits = |(at, c): (usize, char)| match self {
            Self::Bash | Self::Matlab | Self::PowerShell => {
                c == '_' || c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit()
            }
            // R has names with dots. One dot and a digit would be a number.
            Self::R => c.is_alphabetic() || c == '.' || at > 0 && (c == '_' || c.is_alphanumeric()),
            Self::Python | Self::Julia | Self::Scala | Self::CSharp | Self::FSharp => {
                c == '_' || c.is_alphabetic() || at > 0 && c.is_alphanumeric()
            }
        };
        let is_number =
            name.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        !name.is_empty()
            && name.chars().enumerate().all(fits)
            && !is_number
            && !self.reserved().contains(&name)
    }

    /// Words that cannot be variables, where a mistake would not show by itself.
    fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Python => &[
                "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
                "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
                "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
                "while", "with", "yield",
            ],
            Self::R => &[
                "FALSE", "Inf", "NA", "NULL", "NaN", "TRUE", "break", "else", "for", "function", "if", "in",
                "next", "repeat", "while",
            ],
            Self::Julia => &[
                "baremodule",
                "begin",
                "break",
                "catch",
                "const",
                "continue",
                "do",
                "else",
                "elseif",
                "end",
                "export",
                "false",
                "finally",
                "for",
                "function",
                "global",
                "if",
                "import",
                "let",
                "local",
                "macro",
                "module",
                "quote",
                "return",
                "struct",
                "true",
                "try",
                "using",
                "while",
            ],
            Self::Scala | Self::Matlab | Self::CSharp | Self::FSharp | Self::PowerShell | Self::Bash => &[],
        }
    }

    /// The value in the language. `None` if the language has no such value.
    fn literal(self, value: &ParameterValue) -> Option<String> {
        Some(match value {
            ParameterValue::Null => self.null().to_owned(),
            ParameterValue::Bool(value) => self.truth(*value).to_owned(),
            ParameterValue::Number(number) => self.number(number),
            ParameterValue::NotFinite(number) => self.not_finite(*number).to_owned(),
            ParameterValue::String(text) => self.text(text),
            ParameterValue::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.literal(item)).collect::<Option<_>>()?;
                self.list(&items)
            }
            ParameterValue::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| Some((self.text(name), self.literal(value)?)))
                    .collect::<Option<_>>()?;
                self.mapping(&members)?
            }
        })
    }

    fn null(self) -> &'static str {
        match self {
            Self::Python | Self::Scala | Self::FSharp => "None",
            Self::R => "NULL",
            Self::Julia => "nothing",
            Self::Matlab => "NaN",
            Self::CSharp => "(object)null",
            Self::PowerShell => "$Null",
            Self::Bash => "",
        }
    }

    fn truth(self, value: bool) -> &'static str {
        match (self, value) {
            (Self::Python, true) => "True",
            (Self::Python, false) => "False",
            (Self::R, true) => "TRUE",
            (Self::R, false) => "FALSE",
            (Self::PowerShell, true) => "$True",
            (Self::PowerShell, false) => "$False",
            (Self::Julia | Self::Scala | Self::Matlab | Self::CSharp | Self::FSharp | Self::Bash, value) => {
                if value {
                    "true"
                } else {
                    "false"
                }
            }
        }
    }

    fn number(self, number: &Number) -> String {
        let is_long = number.as_i64().is_some_and(|number| i32::try_from(number).is_err())
            || number.is_u64() && !number.is_i64();
        let has_two_sizes = matches!(self, Self::Scala | Self::CSharp | Self::FSharp);
        if has_two_sizes && is_long { format!("{number}L") } else { number.to_string() }
    }

    fn not_finite(self, number: f64) -> &'static str {
        let [nan, positive, negative] = match self {
            Self::Python => ["float('nan')", "float('inf')", "float('-inf')"],
            Self::R | Self::Julia | Self::Matlab => ["NaN", "Inf", "-Inf"],
            Self::Scala => ["Double.NaN", "Double.PositiveInfinity", "Double.NegativeInfinity"],
            Self::CSharp => ["double.NaN", "double.PositiveInfinity", "double.NegativeInfinity"],
            Self::FSharp => ["nan", "infinity", "-infinity"],
            Self::PowerShell => ["[double]::NaN", "[double]::PositiveInfinity", "[double]::NegativeInfinity"],
            Self::Bash => ["nan", "inf", "-inf"],
        };
        match number {
            number if number.is_nan() => nan,
            number if number > 0.0 => positive,
            _ => negative,
        }
    }

    fn text(self, text: &str) -> String {
        // JSON's escapes are also most languages' ones.
        let json = || Value::from(text).to_string();
        match self {
            Self::Python | Self::R | Self::Scala | Self::CSharp | Self::FSharp => json(),
            Self::Julia => json().replace('$', "\\$"),
            Self::Matlab => format!("\"{}\"", text.replace('"', "\"\"").replace('\n', "\" + newline + \"")),
            Self::PowerShell => {
                // It takes typographic quotes for quotes.
                let mut quoted = "'".to_owned();
                for c in text.chars() {
                    quoted.extend(std::iter::repeat_n(c, if "'‘’‚‛".contains(c) { 2 } else { 1 }));
                }
                quoted + "'"
            }
            Self::Bash => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
                if !text.is_empty() && text.chars().all(is_plain) {
                    return text.to_owned();
                }
                format!("'{}'", text.replace('\'', "'\"'\"'"))
            }
        }
    }

    fn list(self, items: &[String]) -> String {
        let joined = items.join(", ");
        match self {
            Self::Python | Self::Julia => format!("[{joined}]"),
            Self::R => format!("list({joined})"),
            Self::Scala => format!("Seq({joined})"),
            Self::Matlab => format!("{{{joined}}}"),
            Self::CSharp if items.is_empty() => "new object[] { }".to_owned(),
            Self::CSharp => format!("new [] {{ {joined} }}"),
            Self::FSharp => format!("[ {} ]", items.join("; ")),
            Self::PowerShell => format!("@({joined})"),
            Self::Bash => format!("({})", items.join(" ")),
        }
    }

    fn mapping(self, members: &[(String, String)]) -> Option<String> {
        let pairs = |between: &str, separator: &str| {
            let pairs = members.iter().map(|(name, value)| format!("{name}{between}{value}"));
            pairs.collect::<Vec<_>>().join(separator)
        };
        Some(match self {
            Self::Python => format!("{{{}}}", pairs(": ", ", ")),
            Self::R => format!("list({})", pairs(" = ", ", ")),
            Self::Julia => format!("Dict({})", pairs(" => ", ", ")),
            Self::Scala => format!("Map({})", pairs(" -> ", ", ")),
            Self::Matlab => {
                let (names, values): (Vec<_>, Vec<_>) =
                    members.iter().map(|(name, value)| (name.as_str(), value.as_str())).unzip();
                format!("containers.Map({{{}}}, {{{}}})", names.join(", "), values.join(", "))
            }
            Self::CSharp => {
                let pairs = members.iter().map(|(name, value)| format!("{{ {name} , {value} }}"));
                format!("new Dictionary<string,Object>{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }
            Self::FSharp => {
                let pairs = members.iter().map(|(name, value)| format!("({name}, {value} :> IComparable)"));
                format!("[ {} ] |> Map.ofList", pairs.collect::<Vec<_>>().join("; "))
            }
            Self::PowerShell => format!("@{{{}}}", pairs(" = ", "; ")),
            // It has none that could be written as one value.
            Self::Bash => return None,
        })
    }
}
