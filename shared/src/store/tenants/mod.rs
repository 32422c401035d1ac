//! Tenants: their creation, deletion and verification, and the use of their keys.

pub(in crate::store) mod leases;
pub(in crate::store) mod registry;
pub(in crate::store) mod tenant_deletion;
pub(in crate::store) mod verify_tenant;
