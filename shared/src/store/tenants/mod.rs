//! Tenants: creation, deletion, verification, and counting of requests.

pub(in crate::store) mod leases;
pub(in crate::store) mod registry;
pub(in crate::store) mod tenant_deletion;
pub(in crate::store) mod verify_tenant;
