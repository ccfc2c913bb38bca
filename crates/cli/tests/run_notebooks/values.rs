//! What values are in the notebook.

use std::fs;

use super::{Desk, code};

#[test]
fn numbers_in_json_keep_every_digit() {
    let source = "display({'application/json': {'big': 10**40, 'floats': [0.1, 1e-05, 5e-324]}}, raw=True)";
    let desk = Desk::with(&[code("a", source)]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q"]);
    assert_eq!(exit, 0, "{stderr}");
    let text = fs::read_to_string(desk.path().join("a.ipynb")).unwrap();
    assert!(text.contains("\"big\": 10000000000000000000000000000000000000000,"), "{text}");
    let written = &desk.notebook("a.ipynb")["cells"][0]["outputs"][0]["data"]["application/json"]["floats"];
    assert_eq!(*written, serde_json::json!([0.1, 1e-5, 5e-324]));
}

#[test]
fn parameters_that_would_be_rounded_are_refused_wherever_they_stand() {
    let desk = Desk::with(&[code("a", "d")]);
    let big = "123456789012345678901234567890";
    let refused = "has too many digits for a number here";
    for text in [format!("d: {big}\n"), format!("d: [1, -{big}]\n"), format!("{{\"d\": {big}}}")] {
        fs::write(desk.path().join("p.yaml"), text).unwrap();
        let (exit, _, stderr) = desk.run(&["a.ipynb", "-f", "p.yaml"]);
        assert!(exit == 1 && stderr.contains(&format!("{big} in p.yaml {refused}")), "{stderr}");
    }
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-p", &format!("d=[1, {big}]")]);
    assert!(exit == 1 && stderr.contains(&format!("{big} {refused}")), "{stderr}");
    fs::write(desk.path().join("p.yaml"), format!("d: '{big}'\ne: 1e30\n")).unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-f", "p.yaml"]);
    assert_eq!(exit, 0, "{stderr}");
    assert_eq!(desk.shown("a.ipynb")[1], format!("'{big}'"));
}
