//! The limit of open files of this process, which connections need.

/// Raises the limit to what the system allows: the default of many systems is 1,024. A failure leaves it as it is.
pub(super) fn raise() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
