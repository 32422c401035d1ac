//! Sending to receivers, with a resolver under control.
