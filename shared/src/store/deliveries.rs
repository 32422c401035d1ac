//! The records of deliveries to webhooks.
