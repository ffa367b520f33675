//! The gateway between parts that nobody here wrote: the official clients and servers, and servers and clients that mean harm.

mod hostile;
