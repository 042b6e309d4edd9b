//! [`IdentityCheck`]: whether what a credential proved before is still true, asked while its request is answered already.

use std::fmt;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Shared, select};

/// Tells whether an identity is what its credential proves at this request.
///
/// A request under it may read at once. Nobody gets what it read, and nothing is changed, before the identity is known to
/// hold: the service keeps the answer until then, and [`crate::Engine::confirm_actor`] comes before everything that cannot be
/// taken back.
#[derive(Clone)]
pub struct IdentityCheck(Shared<BoxFuture<'static, bool>>);

impl IdentityCheck {
    pub fn new(check: impl Future<Output = bool> + Send + 'static) -> IdentityCheck {
        IdentityCheck(check.boxed().shared())
    }

    /// Waits until it is known.
    pub async fn holds(&self) -> bool {
        self.0.clone().await
    }

    /// What `answering` gives, once the identity is known to hold. If it does not, `None` as soon as that is known: nobody
    /// waits for an answer that is not theirs, so that the time until they are refused says nothing about it.
    pub async fn confirmed<F: Future + Unpin>(&self, answering: F) -> Option<F::Output> {
        let holds = pin!(self.holds());
        match select(holds, answering).await {
            Either::Left((true, answering)) => Some(answering.await),
            Either::Left((false, _)) => None,
            Either::Right((answer, holds)) => holds.await.then_some(answer),
        }
    }
}

impl PartialEq for IdentityCheck {
    fn eq(&self, other: &IdentityCheck) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl fmt::Debug for IdentityCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdentityCheck").field(&self.0.peek()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Poll;

    use super::*;

    /// Tells it when it is asked for the second time.
    fn told_later(holds: bool) -> IdentityCheck {
        let mut is_asked = false;
        IdentityCheck::new(std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut is_asked, true) {
                return Poll::Ready(holds);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    #[test]
    fn answers_wait_for_the_check_and_not_the_check_for_answers() {
        let never = IdentityCheck::new(pending());
        assert_eq!(never.confirmed(ready(7)).now_or_never(), None);
        for (holds, expected) in [(true, Some(7)), (false, None)] {
            let check = IdentityCheck::new(ready(holds));
            assert_eq!(check.confirmed(ready(7)).now_or_never(), Some(expected));
        }
        let refused = IdentityCheck::new(ready(false));
        assert_eq!(refused.confirmed(pending::<i32>()).now_or_never(), Some(None));
        let held = IdentityCheck::new(ready(true));
        assert_eq!(held.confirmed(pending::<i32>()).now_or_never(), None);
    }

    #[tokio::test]
    async fn answers_that_come_first_are_kept_until_it_is_known() {
        assert_eq!(told_later(true).confirmed(ready(7)).await, Some(7));
        assert_eq!(told_later(false).confirmed(ready(7)).await, None);
        assert_eq!(told_later(false).confirmed(pending::<i32>()).await, None);
    }
}
