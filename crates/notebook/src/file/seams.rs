//! Places in a save where tests let others act.

use std::cell::RefCell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seam {
    /// The file was compared with what was read for the last time.
    BeforeRename,
    /// The file is begun, and will be read again.
    BeforeNextLook,
}

type Hook = Box<dyn FnOnce()>;

thread_local! {
    static HOOK: RefCell<Option<(Seam, Hook)>> = const { RefCell::new(None) };
}

/// Does something once, when this thread reaches `seam`.
pub(super) fn at(seam: Seam, hook: impl FnOnce() + 'static) {
    HOOK.with_borrow_mut(|slot| *slot = Some((seam, Box::new(hook))));
}

pub(super) fn reach(seam: Seam) {
    let hook = HOOK.with_borrow_mut(|slot| slot.take_if(|(wanted, _)| *wanted == seam));
    if let Some((_, hook)) = hook {
        hook();
    }
}
