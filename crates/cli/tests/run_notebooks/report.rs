//! `cellwright run --report`

use super::*;

#[test]
fn a_report_lists_every_notebook_with_a_page_for_each() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("sub")).unwrap();
    desk.put("good.ipynb", &[code("a", "print('fine')")]);
    desk.put("sub/bad.ipynb", &[code("a", "x = 1"), code("b", "raise ValueError('<oops>')"), code("c", "2")]);
    let (exit, _, shown) = desk.run(&[
        "good.ipynb",
        "sub/bad.ipynb",
        "missing.ipynb",
        "--report",
        "out/pages",
        "--junit",
        "j.xml",
    ]);
    assert_eq!(exit, 1, "{shown}");
    let read = |name: &str| fs::read_to_string(desk.path().join("out/pages").join(name)).unwrap();
    let index = read("index.html");
    assert!(index.contains("<p>3 notebooks: 1 passed, 2 failed</p>"), "{index}");
    assert!(index.contains("<a href=\"good.html\">good.ipynb</a></td><td>1 of 1</td>"), "{index}");
    assert!(index.contains("<a href=\"sub-bad.html\">sub/bad.ipynb</a></td><td>1 of 3</td>"), "{index}");
    assert!(index.contains("<a href=\"sub-bad.html#cell-1\">cell 1</a> ValueError: &lt;oops&gt;"), "{index}");
    // What could not run has a reason and no page.
    assert!(index.contains("</span></td><td>missing.ipynb</td>"), "{index}");
    assert!(!desk.path().join("out/pages/missing.html").exists());
    let bad = read("sub-bad.html");
    assert!(bad.contains("<span class=\"badge failed\">failed</span>"), "{bad}");
    assert!(bad.contains("<section class=\"cell\" id=\"cell-1\">"), "{bad}");
    assert!(bad.contains("ValueError"), "{bad}");
    assert!(read("good.html").contains("<pre>fine</pre>"));
    assert!(desk.path().join("j.xml").is_file());
}

#[test]
fn notebooks_of_one_name_have_pages_of_their_own() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("a")).unwrap();
    desk.put("a-b.ipynb", &[code("a", "1")]);
    desk.put("a/b.ipynb", &[code("a", "2")]);
    desk.put("index.ipynb", &[code("a", "3")]);
    assert_eq!(desk.run(&["a-b.ipynb", "a/b.ipynb", "index.ipynb", "--report", "out", "-q"]).0, 0);
    let mut names: Vec<_> = fs::read_dir(desk.path().join("out"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a-b-2.html", "a-b.html", "index-2.html", "index.html"]);
}

#[test]
fn a_page_of_a_check_shows_what_differs_below_the_cell() {
    let desk = Desk::new();
    let mut cell = code("a", "print('new')");
    cell["execution_count"] = 1.into();
    cell["outputs"] = json!([{"output_type": "stream", "name": "stdout", "text": ["old\n"]}]);
    desk.put("a.ipynb", &[cell]);
    assert_eq!(desk.run(&["a.ipynb", "--check", "--report", "out", "-q"]).0, 1);
    let page = fs::read_to_string(desk.path().join("out/a.html")).unwrap();
    assert!(
        page.contains(
            "<aside class=\"remark failed\"><strong>shows something else than what is stored</strong>"
        ),
        "{page}"
    );
    assert!(page.contains("  - old\n  + new\n"), "{page}");
}
