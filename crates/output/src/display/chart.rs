//! Charts in words: what a plotly or vega specification draws, in a line instead of megabytes.

use std::fmt::Write as _;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cellwright_cell::MimeData;
use serde_json::Value;

use crate::lines::Counted;

/// How many parts are listed. For more, only their number is given.
const LISTED: usize = 8;

/// Longest title or name that is quoted in full, in characters.
const QUOTED: usize = 80;

/// Describes the chart in a bundle, if there is one.
pub(super) fn summary(bundle: &MimeData) -> Option<String> {
    bundle.iter().find_map(|(mime, value)| {
        let flavour = mime.strip_prefix("application/vnd.")?;
        if flavour.starts_with("plotly.") {
            Some(plotly(&value.json().value()))
        } else if flavour.starts_with("vegalite.") {
            Some(vega_lite(&value.json().value()))
        } else if flavour.starts_with("vega.") {
            Some(vega(&value.json().value()))
        } else {
            None
        }
    })
}

fn plotly(figure: &Value) -> String {
    let traces = figure["data"].as_array().map_or(&[][..], Vec::as_slice);
    let described = traces.iter().map(|trace| {
        let mut text = trace["type"].as_str().unwrap_or("scatter").to_owned();
        if let Some(name) = title(&trace["name"]) {
            write!(text, " {name}").expect("writing to a string cannot fail");
        }
        if let Some(points) = points(trace) {
            write!(text, " ({})", Counted(points as u64, "point")).expect("writing to a string cannot fail");
        }
        text
    });
    let layout = &figure["layout"];
    let mut parts = vec![listed(traces.len(), "trace", described)];
    for (axis, name) in [("xaxis", "x"), ("yaxis", "y")] {
        parts.extend(title(&layout[axis]["title"]).map(|title| format!("{name}: {title}")));
    }
    chart("plotly figure", &layout["title"], &parts)
}

/// How many points a trace has: the length of its longest data array.
fn points(trace: &Value) -> Option<usize> {
    let arrays = ["x", "y", "z", "values", "labels", "lat", "lon", "locations", "r", "theta", "a", "open"];
    arrays.iter().filter_map(|name| array_len(&trace[*name])).max()
}

/// Plotly writes arrays as JSON or, since version 6, as base64 of their bytes.
fn array_len(array: &Value) -> Option<usize> {
    if let Some(values) = array.as_array() {
        return Some(values.len());
    }
    let bytes = BASE64_STANDARD.decode(array["bdata"].as_str()?).ok()?.len();
    let item = match array["dtype"].as_str()? {
        "i1" | "u1" | "int8" | "uint8" => 1,
        "i2" | "u2" | "int16" | "uint16" => 2,
        "i4" | "u4" | "f4" | "int32" | "uint32" | "float32" => 4,
        _ => 8,
    };
    Some(bytes / item)
}

fn vega_lite(spec: &Value) -> String {
    let mut marks = Vec::new();
    let mut channels = Vec::new();
    collect(spec, &mut marks, &mut channels);
    let mut parts = vec![listed(marks.len(), "mark", marks.into_iter())];
    if !channels.is_empty() {
        parts.push(channels.join(", "));
    }
    parts.extend(rows(spec).map(|rows| Counted(rows as u64, "row").to_string()));
    chart("vega-lite chart", &spec["title"], &parts)
}

/// Gathers marks and encodings of a specification and of the views within it.
fn collect(view: &Value, marks: &mut Vec<String>, channels: &mut Vec<String>) {
    let mark = &view["mark"];
    marks.extend(mark.as_str().or_else(|| mark["type"].as_str()).map(clipped));
    for (channel, encoding) in view["encoding"].as_object().into_iter().flatten() {
        let field = encoding["field"].as_str().or_else(|| encoding["aggregate"].as_str());
        if let Some(field) = field {
            let text = format!("{channel}: {}", clipped(field));
            if channels.len() < LISTED && !channels.contains(&text) {
                channels.push(text);
            }
        }
    }
    for inner in ["layer", "hconcat", "vconcat", "concat"] {
        for view in view[inner].as_array().into_iter().flatten() {
            collect(view, marks, channels);
        }
    }
    if view["spec"].is_object() {
        collect(&view["spec"], marks, channels);
    }
}

fn rows(spec: &Value) -> Option<usize> {
    let own = spec["data"]["values"].as_array().map(Vec::len);
    let shared = spec["datasets"].as_object();
    own.or_else(|| shared.map(|sets| sets.values().filter_map(Value::as_array).map(Vec::len).sum()))
}

fn vega(spec: &Value) -> String {
    let marks = spec["marks"].as_array().map_or(&[][..], Vec::as_slice);
    let types = marks.iter().map(|mark| clipped(mark["type"].as_str().unwrap_or("mark")));
    let mut parts = vec![listed(marks.len(), "mark", types)];
    let sets = spec["data"].as_array().map_or(0, Vec::len);
    parts.push(Counted(sets as u64, "data set").to_string());
    chart("vega chart", &spec["title"], &parts)
}

fn chart(kind: &str, named: &Value, parts: &[String]) -> String {
    let title = title(named).map(|title| format!(" {title}")).unwrap_or_default();
    format!("[{kind}{title}: {}]", parts.join("; "))
}

fn listed(count: usize, noun: &'static str, items: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = items.take(LISTED).collect();
    if count > LISTED {
        shown.push(format!("{} more", count - LISTED));
    }
    match count {
        0 => format!("no {noun}s"),
        _ => format!("{}: {}", Counted(count as u64, noun), shown.join(", ")),
    }
}

/// A title, which is a string or an object around one.
fn title(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value["text"].as_str())?.trim();
    (!text.is_empty()).then(|| format!("\"{}\"", clipped(text)))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
