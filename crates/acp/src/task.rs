//! Tasks that end with their owner.

use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;

/// Does work beside its owner, until it is done or the owner drops it. All these tasks are of one
/// type to the runtime, so the code that runs them is compiled once.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    let work: BoxFuture<'static, ()> = Box::pin(work);
    AbortOnDropHandle::new(tokio::spawn(work))
}
