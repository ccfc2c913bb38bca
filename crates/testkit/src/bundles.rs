//! Displayed values of every kind, for tests that put them through a door.

use serde_json::{Value, json};

/// A picture of two pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

/// A kind of bundle, and what its text has and lacks at every door.
#[derive(Debug)]
pub struct BundleCase {
    /// What it is called.
    pub kind: &'static str,
    /// The bundle.
    pub data: Value,
    /// What is shown of it.
    pub shown: &'static str,
    /// What is not.
    pub hidden: &'static str,
}

impl BundleCase {
    /// Fails if `text`, which a door shows of the bundle, is not what all show.
    #[track_caller]
    pub fn check(&self, door: &str, text: &str) {
        let Self { kind, shown, hidden, .. } = self;
        assert!(text.contains(shown) && !text.contains(hidden), "{kind} at {door}:\n{text}");
    }
}

/// One of each kind.
pub fn bundle_cases() -> Vec<BundleCase> {
    let figure = json!({"data": [{"type": "bar", "x": [1, 2]}], "layout": {"title": "Sales"}});
    let digits: Value = serde_json::from_str(r#"{"n": 18446744073709551615}"#).unwrap();
    [
        ("plain", json!({"text/plain": "plain words"}), "plain words", "object>"),
        (
            "markdown",
            json!({"text/markdown": "marked words", "text/plain": "<Markdown object>"}),
            "marked words",
            "object>",
        ),
        (
            "html",
            json!({"text/html": "<p>html words</p>", "text/plain": "<HTML object>"}),
            "html words",
            "object>",
        ),
        (
            "html table",
            json!({"text/html": "<table><tr><td>tabled</td></tr></table>", "text/plain": "0  tabled"}),
            "tabled",
            "<table",
        ),
        ("json", json!({"application/json": digits}), "\"n\": 18446744073709551615", "object>"),
        (
            "png",
            json!({"image/png": PICTURE, "text/plain": "<Figure size 2x1>"}),
            "2x1, 72 bytes",
            "<Figure",
        ),
        (
            "vector image",
            json!({"image/svg+xml": "<svg><g/></svg>", "text/plain": "<SVG object>"}),
            "image/svg+xml",
            "<g/>",
        ),
        (
            "latex",
            json!({"text/latex": "$\\alpha$", "text/plain": "<Latex object>"}),
            "\\alpha",
            "object>",
        ),
        (
            "plotly",
            json!({"application/vnd.plotly.v1+json": figure, "text/html": "<div>a page of scripts</div>"}),
            "[plotly figure \"Sales\": 1 trace: bar (2 points)]",
            "scripts",
        ),
        (
            "vega",
            json!({"application/vnd.vegalite.v5+json": {"mark": "bar"}, "text/plain": "<VegaLite 5 object>"}),
            "[vega-lite chart: 1 mark: bar]",
            "object>",
        ),
        (
            "widget",
            json!({"application/vnd.jupyter.widget-view+json": {"model_id": "abc"}, "text/plain": "IntSlider(value=5)"}),
            "IntSlider(value=5)",
            "model_id",
        ),
        (
            "javascript",
            json!({"application/javascript": "alert(1)", "text/plain": "<Javascript object>"}),
            "<Javascript object>",
            "alert",
        ),
        (
            "stream-like",
            json!({"application/vnd.jupyter.stdout": "streamed"}),
            "[display that text cannot show: application/vnd.jupyter.stdout, 8 bytes]",
            "streamed",
        ),
        (
            "unknown",
            json!({"application/x-unknown": "zzz"}),
            "[display that text cannot show: application/x-unknown, 3 bytes]",
            "zzz",
        ),
    ]
    .map(|(kind, data, shown, hidden)| BundleCase { kind, data, shown, hidden })
    .into()
}
