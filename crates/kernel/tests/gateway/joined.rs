//! Kernels that others started on a server.

use std::path::Path;
use std::time::Duration;

use cellwright_kernel::gateway::{Address, GatewayLaunch};
use cellwright_kernel::{Exit, Outcome};
use cellwright_testkit::servers::Server;

use super::{launch, run, start};

#[tokio::test]
async fn a_kernel_that_runs_on_a_server_is_joined_by_its_id_and_outlives_us() {
    let server = Server::jupyter_server().await;
    let owner = start(server.address()).await;
    assert_eq!(run(&owner, "x = 5").await.outcome, Outcome::Completed);
    let join = GatewayLaunch { name: Some(owner.id.clone()), ..launch(server.address(), Path::new("/")) };
    let guest = join.start().await.unwrap();
    assert_eq!((guest.id.as_str(), guest.spec.as_str()), (owner.id.as_str(), "python3"));
    assert_eq!(run(&guest, "print(x)").await.text, "5\n");
    assert!(matches!(guest.kernel.shutdown().await, Exit::Left(_)));
    drop(guest);
    assert_eq!(run(&owner, "print(x)").await.text, "5\n");

    let missing = "00000000-0000-4000-8000-000000000000".to_owned();
    let missing = GatewayLaunch { name: Some(missing), ..launch(server.address(), Path::new("/")) };
    let error = missing.start().await.unwrap_err().to_string();
    assert!(error.contains("has no kernel `00000000-0000-4000-8000-000000000000` that runs"), "{error}");
}

#[tokio::test]
async fn a_server_that_only_takes_a_password_is_named_as_such() {
    // `passwd("x", "sha1")` of jupyter_server.
    let hash = "sha1:82f62597579a:3913c6fb0b669a211cfc70b3343fd3852841030c";
    let password = format!("--PasswordIdentityProvider.hashed_password={hash}");
    let server = Server::jupyter_server_with(&["--PasswordIdentityProvider.token=", &password]).await;
    let url = format!("http://127.0.0.1:{}/user/ada/lab", server.port);
    let address = Address::new(&url, None).unwrap();
    let error = address.kernels(Duration::from_mins(1)).await.unwrap_err().to_string();
    assert!(error.contains("only accepts a password"), "{error}");
}
