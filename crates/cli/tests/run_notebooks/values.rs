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

#[test]
fn parameters_are_numbers_where_papermill_takes_them_for_numbers() {
    let desk = Desk::with(&[code("a", "[type(v).__name__ for v in (a, b, c, d, e)], a, b, d, e")]);
    fs::write(desk.path().join("p.yaml"), "d: .nan\ne: [.inf, 1]\n").unwrap();
    let (exit, _, stderr) =
        desk.run(&["a.ipynb", "-q", "-p", "a=.5", "-p", "b=007", "-p", "c=NaN", "-f", "p.yaml"]);
    assert_eq!(exit, 0, "{stderr}");
    let shown = "(['float', 'int', 'float', 'float', 'list'], 0.5, 7, nan, [inf, 1])";
    assert_eq!(desk.shown("a.ipynb")[1], shown);
}

#[test]
fn parameters_are_written_in_the_language_of_the_notebook() {
    for (language, written) in [
        ("python", "# Parameters\na = [1, \"it's\"]\nb = True\nc = float('nan')"),
        ("R", "# Parameters\na = list(1, \"it's\")\nb = TRUE\nc = NaN"),
        ("bash", "# Parameters\na=(1 'it'\"'\"'s')\nb=true\nc=nan"),
        ("scala", "// Parameters\nval a = Seq(1, \"it's\")\nval b = true\nval c = Double.NaN"),
        ("matlab", "% Parameters\na = {1, \"it's\"};\nb = true;\nc = NaN;"),
        ("C#", "// Parameters\nvar a = new [] { 1, \"it's\" };\nvar b = true;\nvar c = double.NaN;"),
        ("F#", "(* Parameters *)\nlet a = [ 1; \"it's\" ]\nlet b = true\nlet c = nan"),
        ("PowerShell", "# Parameters\n$a = @(1, 'it''s')\n$b = $True\n$c = [double]::NaN"),
    ] {
        let desk = Desk::with(&[code("a", "1")]);
        let mut notebook = desk.notebook("a.ipynb");
        notebook["metadata"]["language_info"] = serde_json::json!({"name": language});
        fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
        let list = "a=[1, \"it's\"]";
        // It is not run in its language here, but what is run is in the notebook.
        let arguments = ["a.ipynb", "-q", "--kernel", "runner", "-o", "b.ipynb"];
        desk.run(&[&arguments[..], &["-p", list, "-p", "b=true", "-p", "c=NaN"]].concat());
        let source = &desk.notebook("b.ipynb")["cells"][0]["source"];
        let source = source.as_str().map_or_else(
            || source.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect(),
            str::to_owned,
        );
        assert_eq!(source, written, "{language}");
    }
    let desk = Desk::with(&[code("a", "1")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-p", "my.rows=5"]);
    assert!(exit == 1 && stderr.contains("`my.rows` cannot be the name of a variable"), "{stderr}");
    let mut notebook = desk.notebook("a.ipynb");
    notebook["metadata"]["language_info"] = serde_json::json!({"name": "R"});
    fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
    desk.run(&["a.ipynb", "-q", "--kernel", "runner", "-o", "b.ipynb", "-p", "my.rows=5"]);
    assert!(fs::read_to_string(desk.path().join("b.ipynb")).unwrap().contains("my.rows = 5"));
}

#[test]
fn cells_that_are_tagged_not_to_run_are_skipped_in_the_report() {
    let desk = Desk::with(&[code("a", "1"), super::tagged("b", "boom", &["skip-execution"]), code("c", "2")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "--junit", "report.xml"]);
    assert_eq!(exit, 0, "{stderr}");
    let report = fs::read_to_string(desk.path().join("report.xml")).unwrap();
    assert!(report.contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"1\""), "{report}");
    let places = ["cell 0: 1", "cell 1: boom", "cell 2: 2"].map(|name| report.find(name).unwrap());
    assert!(places.is_sorted(), "{report}");
}

#[test]
fn a_python_notebook_whose_kernel_is_not_installed_gets_advice() {
    let desk = Desk::with(&[code("a", "1")]);
    let mut notebook = desk.notebook("a.ipynb");
    notebook["metadata"]["kernelspec"] = serde_json::json!({"name": "my-env-42", "language": "python"});
    fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
    for more in [&[][..], &["-p", "x=1"]] {
        let (exit, _, stderr) = desk.run(&[&["a.ipynb"], more].concat());
        assert!(exit == 1 && stderr.contains("no kernel named `my-env-42`"), "{stderr}");
        assert!(stderr.contains("`--kernel runner` runs it all the same"), "{stderr}");
    }
}
