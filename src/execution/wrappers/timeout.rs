//! A `timeout` policy: gives up what is inside after a time.

use super::{Next, Wrap, WrapResult};
use crate::call::Verdict;
use crate::host::{BoxFuture, ToolError, ToolExecutor, with_deadline};
use crate::kernel::CallResponse;
use crate::middleware::Timeout;

impl Wrap for Timeout {
    fn wrap<'a, E: ToolExecutor>(&'a self, mut next: Next<'a, '_, E>) -> BoxFuture<'a, WrapResult> {
        Box::pin(async move {
            let (clock, leads) = (&next.chain.context.services.clock, next.chain.leads);
            if let Some(result) = with_deadline(next.run(), || clock.sleep(self.after)).await {
                return result;
            }
            // Flights that were led inside were given up with the rest.
            next.chain.leads = leads;
            let by = next.policy.reference;
            next.chain.trace.amend(by, Verdict::Deny);
            let message = format!(
                "`{}` took longer than {} and was given up; it may still have taken effect",
                next.call.tool, self.source
            );
            Ok(CallResponse::failed_by(by, ToolError::new(message).with_kind("timeout")))
        })
    }
}
