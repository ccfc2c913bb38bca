//! MIME bundles in, what can be shown of them out.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cellwright_output::{
    ArtifactKind, Artifacts, Display, Image, ImageFormat, ImageLimits, JSON_SHOWN, PixelSize, json_text,
};
use serde_json::{Value, json};

fn display(bundle: &Value) -> Display {
    Display::from_bundle(&bundle.as_object().unwrap().clone().into())
}

#[track_caller]
fn check_text(bundle: &Value, expected: &str) {
    let found = display(bundle);
    let is_markdown = found.is_markdown;
    assert_eq!(found, Display { text: Some(expected.to_owned()), is_markdown, ..Display::default() });
}

const PANDAS: &str = r#"<div>
<style scoped>
    .dataframe tbody tr th:only-of-type { vertical-align: middle; }
</style>
<table border="1" class="dataframe">
  <thead>
    <tr style="text-align: right;"><th></th><th>name</th><th>a|b</th></tr>
  </thead>
  <tbody>
    <tr><th>0</th><td>x_y</td><td>1.5</td></tr>
    <tr><th>1</th><td>&lt;z&gt;</td><td>2.0</td></tr>
  </tbody>
</table>
<p>2 rows × 2 columns</p>
</div>"#;

#[test]
fn markdown_beats_plain_text_beats_html() {
    check_text(&json!({"text/html": "<b>h</b>", "text/plain": "p", "text/markdown": "*m*"}), "*m*");
    check_text(&json!({"text/html": "<b>h</b>", "text/plain": "p"}), "p");
    check_text(&json!({"text/html": "<b>h</b>"}), "**h**");
    check_text(&json!({"text/plain": ["two\n", "pieces"]}), "two\npieces");
}

#[test]
fn a_text_that_only_names_the_object_gives_way() {
    check_text(
        &json!({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<i>hi</i>"}),
        "*hi*",
    );
    check_text(&json!({"text/plain": "<IPython.core.display.Latex object>", "text/latex": "$x^2$"}), "$x^2$");
    check_text(&json!({"text/plain": "<Thing at 0x7f>"}), "<Thing at 0x7f>");
    check_text(&json!({"text/plain": "<a>\n<b>", "text/html": "h"}), "<a>\n<b>");
}

#[test]
fn markdown_is_marked_as_such() {
    for (bundle, is_markdown) in [
        (json!({"text/markdown": "*m*"}), true),
        (json!({"text/html": "<b>h</b>"}), true),
        (json!({"text/html": "<b>h</b>", "text/plain": "*p*"}), false),
        (json!({"text/latex": "$x$"}), false),
    ] {
        assert_eq!(display(&bundle).is_markdown, is_markdown, "{bundle}");
    }
}

#[test]
fn a_pandas_table_keeps_its_columns() {
    let table = display(&json!({"text/html": PANDAS})).text.unwrap();
    insta::assert_snapshot!(table, @r"
    |     | name | a\|b |
    | --- | ---- | ---- |
    | 0   | x_y  | 1.5  |
    | 1   | <z>  | 2.0  |

    2 rows × 2 columns
    ");
}

#[test]
fn html_without_words_or_with_scripts_and_data_stays_short() {
    let html = format!(
        "<script>{}</script>seen<img alt='dot' src='data:image/png;base64,{}'>",
        "if (a < b) x();".repeat(1000),
        "A".repeat(10_000)
    );
    insta::assert_snapshot!(display(&json!({"text/html": html})).text.unwrap(), @"seen dot");
    let long = "<p>x</p>".repeat(1_000_000);
    insta::assert_snapshot!(display(&json!({"text/html": long})).text.unwrap(), @"[HTML of 8,000,000 bytes, too long to show as text]");
}

#[test]
fn html_nested_deeply_is_shown_and_does_not_overflow_the_stack() {
    // Threads of a runtime have two mebibytes.
    let converted = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(|| {
        let deep = format!("<p>top</p>{}bottom{}", "<div>".repeat(20_000), "</div>".repeat(20_000));
        let list = format!("{}bottom", "<ul><li>".repeat(10_000));
        let table = format!("{}bottom", "<table><tr><td>".repeat(10_000));
        [deep, list, table].map(|html| display(&json!({"text/html": html})).text.unwrap())
    });
    for text in converted.unwrap().join().unwrap() {
        assert!(text.ends_with("bottom"), "{text}");
    }
}

#[test]
fn json_stays_a_structure_in_its_own_order() {
    let value = json!({"b": 1, "a": [1, {"z": null}]});
    let shown =
        display(&json!({"application/json": value, "text/plain": "<IPython.core.display.JSON object>"}));
    assert_eq!(shown, Display { json: Some(value.clone().into()), ..Display::default() });
    assert_eq!(json_text(&value.clone().into(), None).text, serde_json::to_string_pretty(&value).unwrap());
    let geo = json!({"type": "Point"});
    assert_eq!(display(&json!({"application/geo+json": geo})).json, Some(geo.into()));
}

#[test]
fn long_json_is_cut_and_stored_whole() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let value = json!({"text": "x".repeat(2000), "numbers": (0..5000).collect::<Vec<_>>()});
    let shown = json_text(&value.clone().into(), Some(&artifacts));
    assert!(shown.text.len() < JSON_SHOWN + 300);
    let truncation = shown.truncation.unwrap();
    let id = truncation.full.artifact().unwrap();
    insta::assert_snapshot!(truncation.to_string().replace(id.as_str(), "k3v9x2mq"), @"[… 4,189 of 5,005 lines omitted: lines 815-5003, 41,700 of 50,925 bytes. 1 shown line cut at 768 bytes, 1,245 bytes missing. Full output: artifact://k3v9x2mq]");
    let artifact = artifacts.open(id).unwrap();
    assert_eq!(artifact.kind, ArtifactKind::Json);
    let stored: Value = serde_json::from_slice(&artifact.content(u64::MAX).unwrap().unwrap()).unwrap();
    assert_eq!(stored, value);
}

#[test]
fn status_events_are_structure_under_each_of_their_names() {
    for mime in ["application/x-cellwright-status", "application/x-omp-status", "application/x-pisces-status"]
    {
        let shown = display(&json!({mime: {"op": "read"}}));
        assert_eq!(shown, Display { status: Some(json!({"op": "read"}).into()), ..Display::default() });
    }
}

#[test]
fn a_plotly_figure_is_summarised_in_a_line() {
    let figure = json!({
        "data": [
            {"type": "bar", "name": "sales", "x": ["a", "b", "c"], "y": [1, 2, 3]},
            {"y": {"dtype": "f8", "bdata": BASE64_STANDARD.encode([0; 800])}},
        ],
        "layout": {"title": {"text": "Sales by month"}, "xaxis": {"title": {"text": "month"}}, "template": {"x": 1}},
    });
    let bundle = json!({
        "application/vnd.plotly.v1+json": figure,
        "text/html": "<div>huge</div>", "text/plain": "Figure({…})",
    });
    insta::assert_snapshot!(display(&bundle).text.unwrap(), @r#"[plotly figure "Sales by month": 2 traces: bar "sales" (3 points), scatter (100 points); x: "month"]"#);
    check_text(&json!({"application/vnd.plotly.v1+json": {}}), "[plotly figure: no traces]");
}

#[test]
fn vega_charts_are_summarised_in_a_line() {
    let layered = json!({
        "title": "Cars", "datasets": {"d1": [{"a": 1}, {"a": 2}]}, "data": {"name": "d1"},
        "layer": [
            {"mark": {"type": "bar"}, "encoding": {"x": {"field": "a", "type": "quantitative"}, "y": {"aggregate": "count"}}},
            {"mark": "rule", "encoding": {"x": {"field": "a"}}},
        ],
    });
    let text =
        display(&json!({"application/vnd.vegalite.v5+json": layered, "text/plain": "<VegaLite 5 object>"}))
            .text;
    insta::assert_snapshot!(text.unwrap(), @r#"[vega-lite chart "Cars": 2 marks: bar, rule; x: a, y: count; 2 rows]"#);
    let marks: Vec<_> = (0..12).map(|_| json!({"type": "rect"})).collect();
    let text =
        display(&json!({"application/vnd.vega.v5+json": {"marks": marks, "data": [{"name": "t"}]}})).text;
    insta::assert_snapshot!(text.unwrap(), @"[vega chart: 12 marks: rect, rect, rect, rect, rect, rect, rect, rect, 4 more; 1 data set]");
}

#[test]
fn widgets_and_unknown_types_leave_a_word() {
    let widget = json!({"model_id": "0123", "version_major": 2, "version_minor": 0});
    check_text(
        &json!({"application/vnd.jupyter.widget-view+json": widget, "text/plain": "IntSlider(value=0)"}),
        "IntSlider(value=0)",
    );
    let alone = display(&json!({"application/vnd.jupyter.widget-view+json": widget})).text.unwrap();
    insta::assert_snapshot!(alone, @"[display that text cannot show: application/vnd.jupyter.widget-view+json, 55 bytes]");
    let unknown =
        display(&json!({"application/x-thing": "AAAA", "application/javascript": "alert(1)"})).text.unwrap();
    insta::assert_snapshot!(unknown, @"[display that text cannot show: application/x-thing, 4 bytes; application/javascript, 8 bytes]");
    assert_eq!(display(&json!({})), Display::default());
}

fn png(width: u32, height: u32, noisy: bool) -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| x + y)).flat_map(|sum| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [red, green, blue, _] = if noisy { state.to_be_bytes() } else { [sum.to_le_bytes()[0]; 4] };
        [red, green, blue, 255]
    });
    let pixels: Vec<u8> = pixels.collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file
}

#[test]
fn k11_an_image_in_two_formats_is_one_image() {
    let file = png(6, 4, false);
    // Notebooks break the lines of base64.
    let encoded = format!("{}\n", BASE64_STANDARD.encode(&file));
    let bundle = json!({
        "image/png": encoded, "image/jpeg": "/9j/4AAQ", "image/svg+xml": "<svg/>",
        "text/plain": "<Figure size 640x480 with 1 Axes>",
    });
    let shown = display(&bundle);
    assert_eq!(shown.text, None);
    let image = shown.image.unwrap();
    assert_eq!((image.format, image.size), (ImageFormat::Png, Some(PixelSize { width: 6, height: 4 })));
    assert_eq!(image.bytes, file);
}

#[test]
fn image_sizes_are_read_from_their_headers() {
    let check = |bytes: &[u8], format, size: Option<(u32, u32)>| {
        let image = Image::new(bytes.to_vec()).unwrap();
        let size = size.map(|(width, height)| PixelSize { width, height });
        assert_eq!((image.format, image.size), (format, size));
    };
    check(b"GIF89a\x07\x00\x05\x00\x00\x00\x00", ImageFormat::Gif, Some((7, 5)));
    let webp =
        b"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x02\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    check(webp, ImageFormat::Webp, Some((3, 2)));
    check(
        b"<?xml version='1.0'?><svg width=\"12.5pt\" height='8' viewBox='0 0 1 1'>",
        ImageFormat::Svg,
        Some((13, 8)),
    );
    check(b"<svg stroke-width=\"3\" viewBox=\"0 0 30,20\"></svg>", ImageFormat::Svg, Some((30, 20)));
    check(b"<svg></svg>", ImageFormat::Svg, None);
    assert_eq!(Image::new(b"no image".to_vec()), None);
}

#[test]
fn data_that_is_not_an_image_is_reported() {
    check_text(&json!({"image/png": "bm90IGFuIGltYWdl"}), "[image/png that is not an image]");
    let broken = display(&json!({"image/png": "!!", "text/plain": "p"})).text.unwrap();
    insta::assert_snapshot!(broken, @r"
    p
    [image/png that could not be decoded: Invalid symbol 33, offset 0.]
    ");
}

#[test]
fn images_are_made_to_fit() {
    let small = Image::new(png(64, 32, false)).unwrap();
    assert!(matches!(small.bounded(ImageLimits::default()).unwrap(), Cow::Borrowed(_)));

    let wide = Image::new(png(400, 200, false)).unwrap();
    let fitted = wide.bounded(ImageLimits { side: 100, ..ImageLimits::default() }).unwrap();
    assert_eq!((fitted.format, fitted.size), (ImageFormat::Png, Some(PixelSize { width: 100, height: 50 })));

    // Noise does not compress: as PNG it would be far over the limit.
    let noise = Image::new(png(400, 300, true)).unwrap();
    let limits = ImageLimits { bytes: 60_000, side: 400 };
    let fitted = noise.bounded(limits).unwrap();
    assert_eq!(fitted.format, ImageFormat::Jpeg);
    assert!(fitted.bytes.len() <= limits.bytes);

    let refused = noise.bounded(ImageLimits { bytes: 100, side: 400 }).unwrap_err().to_string();
    insta::assert_snapshot!(refused, @"image/png, 400x300, 480,403 bytes not shown: it is too long even when scaled down");
    let svg = Image::new(b"<svg width='1' height='1'/>".to_vec()).unwrap();
    insta::assert_snapshot!(svg.bounded(ImageLimits::default()).unwrap_err(), @"image/svg+xml, 1x1, 27 bytes not shown: models take no SVG; it is text");
}

#[test]
fn an_image_that_claims_to_be_gigantic_is_not_decoded() {
    let mut bomb = png(1, 1, false);
    bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]); // 65,536 by 65,536 in the header
    insta::assert_snapshot!(Image::new(bomb).unwrap().bounded(ImageLimits::default()).unwrap_err(), @"image/png, 65536x65536, 73 bytes not shown: it is too large to be decoded");
}
