//! What is kept about people besides records and histories (docs/privacy.md).

use super::views::KeptData;

pub(super) const KEPT: [KeptData; 8] = [
    KeptData {
        what: "Responses stored for repeated requests",
        content: "The response, with names, of a request with an Idempotency-Key",
        kept_for: "24 hours",
        removed_by: "the erasure",
    },
    KeptData {
        what: "Snapshots of lists",
        content: "Names and e-mail addresses of users; names, tags and serial numbers of assets",
        kept_for: "at most 7 days",
        removed_by: "the erasure",
    },
    KeptData {
        what: "Records of deliveries to webhooks",
        content: "IDs of events, and what the receiver responded, unless it repeats values about people",
        kept_for: "30 days after the last attempt",
        removed_by: "deleting the webhook",
    },
    KeptData {
        what: "Logs",
        content: "IDs of requests, keys and resources; no names and no values",
        kept_for: "as long as the operator has set",
        removed_by: "the operator",
    },
    KeptData {
        what: "The record of an erasure",
        content: "The user's ID and the times of the erasure",
        kept_for: "as long as the organization exists",
        removed_by: "deleting the organization",
    },
    KeptData {
        what: "Backups",
        content: "Everything, as it was at the time",
        kept_for: "35 days, unless the operator makes others",
        removed_by: "nothing; after a restore, the operator repeats the erasures",
    },
    KeptData {
        what: "Copies with receivers of webhooks and of the EventBridge bus",
        content: "The entries that they were sent",
        kept_for: "as the receiver decides",
        removed_by: "the receiver, whom the operator tells",
    },
    KeptData {
        what: "Receipts and exports that were handed out",
        content: "What they show",
        kept_for: "as their holder decides",
        removed_by: "their holder",
    },
];
