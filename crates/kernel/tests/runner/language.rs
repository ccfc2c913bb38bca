//! What Python people take for granted, as far as the kernel's two sides meet in it.

use cellwright_kernel::{CellUpdate, Event, KernelCell, Outcome, Stdin};

use super::support::{Fixture, Ran};

#[tokio::test]
async fn a_cell_prints_and_has_a_result() {
    let fixture = Fixture::start().await;
    let ran = fixture.run("print('hello'); 1 + 1").await;
    assert_eq!(ran.finished.outcome, Outcome::Completed);
    assert_eq!(ran.finished.execution_count, Some(1));
    assert_eq!(ran.sequence(), ["out hello\n", "show 2"]);
    let ran = fixture.run("def f():\n    raise KeyError('x')\nf()").await;
    let Outcome::Raised(exception) = &ran.finished.outcome else { panic!("{ran:?}") };
    assert_eq!((exception.name.as_str(), exception.message.as_str()), ("KeyError", "'x'"));
    assert!(exception.traceback.iter().any(|line| line.contains("raise KeyError('x')")), "{exception:?}");
}

#[tokio::test]
async fn k7_questions_to_nobody_fail_at_once() {
    let fixture = Fixture::start().await;
    for code in ["input('name? ')", "import getpass; getpass.getpass()"] {
        let ran = fixture.run(code).await;
        assert!(ran.raised().is_some(), "{code} {ran:?}");
    }
    for code in ["quit()", "exit()", "import pdb; pdb.set_trace()"] {
        let ran = fixture.run(code).await;
        assert!(
            !matches!(ran.finished.outcome, Outcome::Died(_) | Outcome::Stopped { .. }),
            "{code} {ran:?}"
        );
    }
    assert_eq!(fixture.run("1").await.result(), Some("1"));
}

#[tokio::test]
async fn input_is_asked_for_and_answered_or_refused() {
    let fixture = Fixture::start().await;
    let asking =
        || KernelCell { stdin: Stdin::Forwarded, ..KernelCell::new("print('hello', input('name? '))") };
    let mut execution = fixture.kernel.execute(asking()).await;
    let request = loop {
        match execution.next().await {
            CellUpdate::Event(Event::InputRequest(request)) => break request,
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => panic!("{finished:?}"),
        }
    };
    assert_eq!((request.prompt.as_str(), request.password), ("name? ", false));
    request.answer("Ada");
    let ran = Ran::of(execution).await;
    assert!(ran.stdout().contains("hello Ada\n"), "{ran:?}");

    let mut execution = fixture.kernel.execute(asking()).await;
    let finished = loop {
        match execution.next().await {
            CellUpdate::Event(Event::InputRequest(request)) => request.refuse("nobody is here"),
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => break finished,
        }
    };
    let Outcome::Raised(exception) = finished.outcome else { panic!("{finished:?}") };
    assert!(exception.message.contains("nobody is here"), "{exception:?}");
}

#[tokio::test]
async fn k14_classes_of_cells_can_be_pickled_and_have_sources() {
    let fixture = Fixture::start().await;
    fixture.run("import pickle, inspect\nclass Point:\n    def x(self):\n        return 1").await;
    let ran = fixture.run("type(pickle.loads(pickle.dumps(Point()))).__name__").await;
    assert_eq!(ran.result(), Some("'Point'"), "{ran:?}");
    let ran = fixture.run("inspect.getsource(Point.x).strip().splitlines()[0]").await;
    assert_eq!(ran.result(), Some("'def x(self):'"), "{ran:?}");
    let code = "import multiprocessing\ndef double(x):\n    return 2 * x\n\
        with multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(double, [1, 2, 3]))";
    assert_eq!(fixture.stdout(code).await, "[2, 4, 6]\n");
}

#[tokio::test]
async fn questions_are_answered() {
    let fixture = Fixture::start().await;
    fixture.run("alphabet = ['a', 'b']; number = 1").await;
    fixture.kernel.ping().await.unwrap();
    let completions = fixture.kernel.complete("alph", 4).await.unwrap();
    assert_eq!((completions.matches, completions.start, completions.end), (vec!["alphabet".into()], 0, 4));
    let found = fixture.kernel.inspect("len", 3, 0).await.unwrap().unwrap();
    assert!(found.data.text("text/plain").unwrap().contains("number of items"));
    assert_eq!(fixture.kernel.inspect("no_such_thing", 3, 0).await.unwrap(), None);
    let variables = fixture.kernel.variables(1).await.unwrap();
    assert_eq!((variables.total, variables.listed.len()), (2, 1));
    assert_eq!((variables.listed[0].name.as_str(), variables.listed[0].kind.as_str()), ("alphabet", "list"));
    let memory = fixture.kernel.memory().await.unwrap();
    assert!((1 << 20..1 << 30).contains(&memory), "{memory}");
}
