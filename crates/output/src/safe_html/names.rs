//! The elements and attributes that harmless HTML may hold.

/// What becomes of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// It stays.
    Known,
    /// It stays, and has neither contents nor an end.
    Empty,
    /// A picture, whose address is looked at.
    Picture,
    /// A style sheet.
    Sheet,
    /// It goes with its contents.
    Harmful,
    /// It goes, its contents stay.
    Unknown,
}

const KNOWN: &[&str] = &[
    "a",
    "abbr",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "caption",
    "center",
    "cite",
    "code",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "i",
    "ins",
    "kbd",
    "label",
    "li",
    "main",
    "mark",
    "meter",
    "nav",
    "ol",
    "p",
    "pre",
    "progress",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
];

/// Elements of drawings and formulas, which may close themselves. Names are as tokens have them: in small letters.
const FOREIGN: &[&str] = &[
    "svg",
    "circle",
    "clippath",
    "defs",
    "ellipse",
    "g",
    "line",
    "lineargradient",
    "marker",
    "mask",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialgradient",
    "rect",
    "stop",
    "symbol",
    "text",
    "tspan",
    "use",
    "math",
    "menclose",
    "mfrac",
    "mi",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
    "semantics",
];

const HARMFUL: &[&str] = &[
    "annotation",
    "annotation-xml",
    "applet",
    "audio",
    "button",
    "canvas",
    "foreignobject",
    "frame",
    "frameset",
    "iframe",
    "metadata",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "plaintext",
    "script",
    "select",
    "template",
    "textarea",
    "title",
    "video",
    "xmp",
];

/// What any element may have.
const ATTRIBUTES: &[&str] = &[
    "align",
    "alt",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "checked",
    "class",
    "color",
    "colspan",
    "datetime",
    "dir",
    "disabled",
    "for",
    "height",
    "hidden",
    "high",
    "id",
    "lang",
    "low",
    "max",
    "min",
    "open",
    "optimum",
    "reversed",
    "role",
    "rowspan",
    "scope",
    "size",
    "span",
    "start",
    "title",
    "type",
    "valign",
    "value",
    "width",
];

/// What elements of drawings and formulas may have besides.
const FOREIGN_ATTRIBUTES: &[&str] = &[
    "clip-path",
    "clip-rule",
    "clippathunits",
    "cx",
    "cy",
    "d",
    "display",
    "displaystyle",
    "dominant-baseline",
    "dx",
    "dy",
    "fill",
    "fill-opacity",
    "fill-rule",
    "font-family",
    "font-size",
    "font-style",
    "font-weight",
    "fx",
    "fy",
    "gradienttransform",
    "gradientunits",
    "marker-end",
    "marker-mid",
    "marker-start",
    "markerheight",
    "markerunits",
    "markerwidth",
    "mathvariant",
    "offset",
    "opacity",
    "orient",
    "patternunits",
    "points",
    "preserveaspectratio",
    "r",
    "refx",
    "refy",
    "rx",
    "ry",
    "stop-color",
    "stop-opacity",
    "stretchy",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
    "transform",
    "version",
    "viewbox",
    "x",
    "x1",
    "x2",
    "xmlns",
    "y",
    "y1",
    "y2",
];

pub(super) fn element_kind(name: &str) -> ElementKind {
    match name {
        "style" => ElementKind::Sheet,
        "img" => ElementKind::Picture,
        "br" | "col" | "hr" | "input" | "wbr" => ElementKind::Empty,
        _ if KNOWN.contains(&name) || is_foreign(name) => ElementKind::Known,
        _ if HARMFUL.contains(&name) => ElementKind::Harmful,
        _ => ElementKind::Unknown,
    }
}

/// Whether an element belongs to a drawing or a formula.
pub(super) fn is_foreign(name: &str) -> bool {
    FOREIGN.contains(&name)
}

/// Whether an element may have this attribute, apart from addresses and styles.
pub(super) fn is_attribute(element: &str, key: &str) -> bool {
    ATTRIBUTES.contains(&key)
        || (is_foreign(element) && FOREIGN_ATTRIBUTES.contains(&key))
        || key.strip_prefix("aria-").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Whether an open element ends where another begins.
pub(super) fn is_closed_by(open: &str, next: &str) -> bool {
    match open {
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "tfoot"),
        "p" => matches!(
            next,
            "p" | "div"
                | "ul"
                | "ol"
                | "dl"
                | "table"
                | "pre"
                | "blockquote"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
        ),
        _ => false,
    }
}
