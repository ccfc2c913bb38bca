//! One suite over every transport: the same cells, the same expectations, and where a kernel cannot keep one, a row of
//! `docs/kernels.md`.

mod case;
mod document;
mod kernels;
mod table;

use cellwright_kernel::CodeCompleteness;
use kernels::{Fixture, Kind};

async fn check(kind: Kind) {
    let mut fixture = Fixture::start(kind).await;
    let mut wrong = Vec::new();
    for case in table::CASES {
        fixture.renew().await;
        wrong.extend(case.check(&mut fixture).await);
    }
    assert!(wrong.is_empty(), "on {kind:?}\n{}", wrong.join("\n"));
    answers_questions(&mut fixture).await;
    let open = fixture.kernel.completeness("for x in y:").await.unwrap();
    let expected = match kind {
        Kind::Runner => CodeCompleteness::Unknown,
        _ => CodeCompleteness::Incomplete { indent: "    ".to_owned() },
    };
    assert_eq!(open, expected);
    fixture.kernel.shutdown().await;
}

/// What can be asked of a kernel beside running cells.
async fn answers_questions(fixture: &mut Fixture) {
    // Jedi takes seconds to come up, and is not what is tested.
    fixture.run("import sys\nif 'ipykernel' in sys.modules: get_ipython().Completer.use_jedi = False").await;
    fixture.run("import math\nanswer = 42\ndef greet(name):\n    'Says hello.'").await;
    let kernel = &fixture.kernel;
    kernel.ping().await.unwrap();
    let completions = kernel.complete("ans", 3).await.unwrap();
    assert!(completions.matches.contains(&"answer".to_owned()), "{completions:?}");
    assert_eq!((completions.start, completions.end), (0, 3));
    let help = kernel.inspect("greet", 3, 0).await.unwrap().expect("it is there");
    assert!(help.data.text("text/plain").unwrap().contains("Says hello."), "{help:?}");
    assert_eq!(kernel.inspect("nowhere_to_be_found", 3, 0).await.unwrap(), None);
    let variables = kernel.variables(1000).await.unwrap();
    let answer = variables.listed.iter().find(|variable| variable.name == "answer").expect("it is listed");
    assert_eq!((answer.kind.as_str(), answer.preview.as_str()), ("int", "42"));
    // Neither what the prelude and the modules brought, nor imports.
    let names: Vec<_> = variables.listed.iter().map(|variable| variable.name.as_str()).collect();
    assert!(!["bash", "extended", "math", "In", "exit"].iter().any(|name| names.contains(name)), "{names:?}");
    assert_eq!(kernel.variables(1).await.unwrap().listed.len(), 1);
}

#[tokio::test]
async fn the_runner_conforms() {
    check(Kind::Runner).await;
}

#[tokio::test]
async fn ipykernel_over_ipc_conforms() {
    check(Kind::Ipc).await;
}

#[tokio::test]
async fn ipykernel_over_tcp_conforms() {
    check(Kind::Tcp).await;
}

#[tokio::test]
async fn a_kernel_gateway_conforms() {
    check(Kind::KernelGateway).await;
}

#[tokio::test]
async fn a_jupyter_server_conforms() {
    check(Kind::JupyterServer).await;
}
